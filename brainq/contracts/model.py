"""Model calls: the request, the reply and its finish reason, the tokens and money it used, and the error of a
turn whose model failed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from pydantic import JsonValue

from brainq.contracts.base import Wire
from brainq.contracts.message import Message, Reasoning, ToolCall
from brainq.contracts.model_options import NO_OPTIONS, ModelOptions
from brainq.contracts.tool import ToolSpec
from brainq.contracts.usage import TokenUsage

SpendKind = Literal["step", "lost", "reflection", "compaction", "child", "memory", "judge"]
# Our words, which are OpenAI's, and what other services say for them.
_VENDOR_FINISH_REASONS = {
    "stop": ("eos", "eos_token", "end_turn", "stop_sequence"),
    "tool_calls": ("function_call", "tool_use"),
    "length": ("max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"),
    "content_filter": ("refusal", "safety", "recitation", "blocklist", "prohibited_content"),
}
_STANDARD_FINISH_REASONS = {theirs: ours for ours, others in _VENDOR_FINISH_REASONS.items() for theirs in others}
Purpose = Literal["step", "reflection", "compaction", "memory", "judge"]
FailureKind = Literal["too_long", "over_limit", "filtered", "rate_limited", "quota"]
_FAILURE_PREFIXES: dict[str, str] = {
    "too_long": "The conversation is longer than the model takes",
    "over_limit": "The request alone is more than its model's service allows in a minute",
    "filtered": "The model's service refuses to answer this content",
    "rate_limited": "The model's service takes no more requests now",
    "quota": "The account at the model's service is used up",
}
_RETRY_HINT = re.compile(r" \(again in (\d{1,6}) s\)")


Price = Callable[[str, str, TokenUsage], float | None]
"""From a provider, a model and what it used to US dollars; None where the price is not known."""


def unknown_price(provider: str, model: str, usage: TokenUsage) -> float | None:
    """The Price of who knows none."""
    return None


class Spend(Wire):
    """What one model call of a turn used.

    kind       `step`; `lost`: a request that broke off; `child`: all of a child turn; or a call beside the steps.
               `memory` and `judge` come after the result: SQL has them
    model      the one that was asked, by its own name: never that of a `Fallback`
    cost_usd   None where the price of the model is not known
    estimated  the service did not count the tokens, or not all of them. So it is with what broke off: what the stream
               had reported of usage is taken, else the input is estimated, and output from what had been streamed
    """

    kind: SpendKind = "step"
    step: int
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_creation_tokens: int = 0
    cost_usd: float | None = None
    estimated: bool = False

    @classmethod
    def from_usage(cls, kind: SpendKind, step: int, model: str, usage: TokenUsage, cost_usd: float | None) -> Spend:
        return cls(
            kind=kind,
            step=step,
            model=model,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_creation_tokens=usage.cache_creation_tokens,
            cost_usd=cost_usd,
            estimated=usage.estimated,
        )

    @property
    def usage(self) -> TokenUsage:
        return TokenUsage(
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cache_read_tokens=self.cache_read_tokens,
            cache_creation_tokens=self.cache_creation_tokens,
            estimated=self.estimated,
        )


class FinishKind(StrEnum):
    """Whether a reply is whole. Only calls of a whole one run."""

    WHOLE = "whole"
    LENGTH = "length"  # cut off at its length limit, or at the end of the model's context
    FILTERED = "filtered"  # stopped by a content filter, or refused
    BROKEN = "broken"  # the service gave it up, or says so in a word that is not known

    @classmethod
    def of(cls, finish_reason: str) -> FinishKind:
        """Return what a finish reason means, in our words or a service's."""
        return _FINISH_KINDS.get(finish_reason.lower(), cls.BROKEN)


_FINISH_KINDS = {
    "": FinishKind.WHOLE,  # a service that gives no word has sent a whole stream: one that was cut raises ProviderError
    "stop": FinishKind.WHOLE,
    "tool_calls": FinishKind.WHOLE,
    "length": FinishKind.LENGTH,
    "content_filter": FinishKind.FILTERED,
}
_FINISH_KINDS.update({theirs: _FINISH_KINDS[ours] for theirs, ours in _STANDARD_FINISH_REASONS.items()})


def standard_finish_reason(reason: object) -> str:
    """Our word for a service's finish reason; an unknown one as it is, in lower case."""
    word = str(reason or "").lower()
    return _STANDARD_FINISH_REASONS.get(word, word)


class ModelRequest(Wire):
    """One model call.

    step, session_id, turn_id, attempt   where the call belongs; scripted models answer by them
    turn_number     which turn of its session it is, counted from 1; 0 for a call beside the steps
    metadata        the turn's, as its producer gave it; None for a call beside the steps
    purpose         what the answer is for; only a `step` moves a turn, the others are calls beside it
    options         how it is asked; what a service does not take is left out
    output_schema   JSON schema the final text should follow, where the provider can hold the model to it
    timeout_s       the whole call, retries included, must end within this; a provider raises
                    ProviderError(kind="timeout") when it cannot
    estimate        tokens of the messages and tools, where whoever asks has estimated them already
    first_token_s, idle_s   how long a stream may say nothing before its first output, and between two
                    pieces; None: as long as `timeout_s` allows
    in_line         whether it may wait in line where its model is limited; a Fallback that has another to ask does not
    blobs           the bytes of the messages' attachments, by their sha256
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    output_schema: dict[str, Any] | None = None
    max_output_tokens: int | None = None
    options: ModelOptions = NO_OPTIONS
    timeout_s: float
    first_token_s: float | None = None
    idle_s: float | None = None
    session_id: str = ""
    turn_id: str = ""
    step: int = 0
    attempt: int = 1
    turn_number: int = 0
    metadata: dict[str, JsonValue] | None = None
    purpose: Purpose = "step"
    estimate: int | None = None
    in_line: bool = True
    blobs: Mapping[str, bytes] = {}


class AnsweredBy(Wire):
    """A provider's name and a model's, as it was asked for there."""

    provider: str
    model: str


class ModelReply(Wire):
    """A whole reply: text, the calls in the model's order, and what it used.

    Call ids are the provider's own here; the coordinator replaces them by `c<step>-<index>`.

    finish_reason   `stop`, `tool_calls`, `length` (cut at the output limit), `content_filter`, or a service's own word;
                    what a turn makes of it is `finish`
    reasoning       what the model thought, in its order
    answered_by     who of several answered (a `Fallback`); None: who was asked
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: TokenUsage = TokenUsage()
    model: str = ""
    finish_reason: str = ""
    reasoning: tuple[Reasoning, ...] = ()
    answered_by: AnsweredBy | None = None

    @property
    def finish(self) -> FinishKind:
        """What its finish reason means, in our words or a service's."""
        return FinishKind.of(self.finish_reason)


class ModelRetry(Wire):
    """The model could not be had (`kind`: rate_limited, server, ...), and is asked again after `wait_s` seconds.

    model   who is asked then, where that is one of several; empty: the same one
    """

    kind: str
    wait_s: float
    model: str = ""


class ModelChunk(Wire):
    """A part of a streamed reply: retries, text and reasoning deltas, then one chunk that carries the whole `reply`.

    arguments   what came of a call: its name, or a part of its arguments. Nobody is shown it; it is counted, should the
                stream break off
    """

    text: str = ""
    reasoning: str = ""
    arguments: str = ""
    reply: ModelReply | None = None
    retry: ModelRetry | None = None


@dataclass(frozen=True, slots=True)
class ModelFailure:
    """Why a turn's model could not be asked, where its caller may act on the reason. It is how the turn's error begins:
    a result crosses processes of several releases, and older ones read it as a text.

    retry_after_s   when the service takes requests again, where it gave a time
    """

    kind: FailureKind
    retry_after_s: int | None = None


def render_failure(kind: str, message: str, retry_after_s: float | None = None) -> str:
    """The error of a turn, from a ProviderError's kind and message."""
    begin = _FAILURE_PREFIXES.get(kind)
    if begin is None:
        return message
    again = f" (again in {max(1, math.ceil(retry_after_s))} s)" if retry_after_s else ""
    return f"{begin}{again}: {message}"


def parse_failure(error: str | None) -> ModelFailure | None:
    """The text of `render_failure`; None of any other error."""
    for kind, begin in _FAILURE_PREFIXES.items():
        if error and error.startswith(begin):
            again = _RETRY_HINT.match(error, len(begin))
            return ModelFailure(kind, None if again is None else int(again[1]))  # pyright: ignore[reportArgumentType]
    return None
