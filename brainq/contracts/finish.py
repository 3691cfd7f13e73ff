"""Why a model stopped writing, in one set of words for every service."""

from __future__ import annotations

from enum import StrEnum


class Finish(StrEnum):
    """Whether a reply is whole. Only calls of a whole one run."""

    WHOLE = "whole"
    LENGTH = "length"  # cut off at its length limit, or at the end of the model's context
    FILTERED = "filtered"  # stopped by a content filter, or refused
    BROKEN = "broken"  # the service gave it up, or says so in a word that is not known


# Our words, which are OpenAI's, and what other services say for them.
_SAID_FOR = {
    "stop": ("eos", "eos_token", "end_turn", "stop_sequence"),
    "tool_calls": ("function_call", "tool_use"),
    "length": ("max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"),
    "content_filter": ("refusal", "safety", "recitation", "blocklist", "prohibited_content"),
}
_OURS = {theirs: ours for ours, others in _SAID_FOR.items() for theirs in others}
_FINISHES = {
    "": Finish.WHOLE,  # a service that gives no word has sent a whole stream: one that was cut raises ProviderError
    "stop": Finish.WHOLE,
    "tool_calls": Finish.WHOLE,
    "length": Finish.LENGTH,
    "content_filter": Finish.FILTERED,
}


def finish_word(said: object) -> str:
    """Our word for a service's finish reason; an unknown one as it is, in lower case."""
    word = str(said or "").lower()
    return _OURS.get(word, word)


def finish_of(word: str) -> Finish:
    """What a finish reason means, in our words or a service's."""
    return _FINISHES.get(finish_word(word), Finish.BROKEN)
