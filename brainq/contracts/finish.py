"""Why a model stopped writing, in one set of words for every service."""

from __future__ import annotations

from enum import StrEnum


class Finish(StrEnum):
    """Whether a reply is whole. Only calls of a whole one run."""

    WHOLE = "whole"
    LENGTH = "length"  # cut off at its length limit, or at the end of the model's context
    FILTERED = "filtered"  # stopped by a content filter, or refused
    BROKEN = "broken"  # the service gave it up, or says so in a word that is not known


_WORDS = {
    # A service that gives no word has sent a whole stream: one that was cut raises ProviderError.
    Finish.WHOLE: ("", "stop", "tool_calls", "function_call", "end_turn", "stop_sequence", "tool_use", "eos"),
    Finish.LENGTH: ("length", "max_tokens", "model_length", "model_context_window_exceeded"),
    Finish.FILTERED: ("content_filter", "refusal", "safety", "recitation", "blocklist", "prohibited_content"),
}
_FINISHES = {word: finish for finish, words in _WORDS.items() for word in words}


def finish_of(word: str) -> Finish:
    """What a service's finish reason means."""
    return _FINISHES.get(word.lower(), Finish.BROKEN)
