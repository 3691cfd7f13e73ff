"""Model calls: the request, the reply and its finish reason, the tokens and the money used, and the error of a turn
whose model failed."""

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
# brainq's words, which are OpenAI's, and the corresponding words of other services.
_VENDOR_FINISH_REASONS = {
    "stop": ("eos", "eos_token", "end_turn", "stop_sequence"),
    "tool_calls": ("function_call", "tool_use"),
    "length": ("max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"),
    "content_filter": ("refusal", "safety", "recitation", "blocklist", "prohibited_content"),
}
_STANDARD_FINISH_REASONS = {
    reason: standard for standard, others in _VENDOR_FINISH_REASONS.items() for reason in others
}
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
"""Maps a provider, a model and its usage to US dollars, or to None if the price is unknown."""


def unknown_price(provider: str, model: str, usage: TokenUsage) -> float | None:
    """Return None for every model."""
    return None


class Spend(Wire):
    """The cost of one model call of a turn.

    kind: `step`; `lost` for a request that broke off; `child` for a whole child turn; or the purpose of a call beside
        the steps. `memory` and `judge` come after the result, and are in SQL only.
    model: the model that was called, by its own name, never that of a `Fallback`.
    cost_usd: None if the price of the model is unknown.
    estimated: whether some tokens were not counted by the service. For a request that broke off, the usage reported so
        far counts, or else estimates of the input and of the streamed output.
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
    """Whether a reply is whole. Only the calls of a whole reply run."""

    WHOLE = "whole"
    LENGTH = "length"  # cut off at its length limit, or at the end of the model's context
    FILTERED = "filtered"  # stopped by a content filter, or refused
    BROKEN = "broken"  # the service gave it up, or gives an unknown reason

    @classmethod
    def of(cls, finish_reason: str) -> FinishKind:
        """Return the meaning of a finish reason, in brainq's words or a service's."""
        return _FINISH_KINDS.get(finish_reason.lower(), cls.BROKEN)


_FINISH_KINDS = {
    # The service gives no reasons; its stream was whole, because a cut stream raises ProviderError.
    "": FinishKind.WHOLE,
    "stop": FinishKind.WHOLE,
    "tool_calls": FinishKind.WHOLE,
    "length": FinishKind.LENGTH,
    "content_filter": FinishKind.FILTERED,
}
_FINISH_KINDS.update({reason: _FINISH_KINDS[standard] for reason, standard in _STANDARD_FINISH_REASONS.items()})


def standard_finish_reason(reason: object) -> str:
    """Return brainq's word for a service's finish reason. An unknown one is returned in lower case."""
    word = str(reason or "").lower()
    return _STANDARD_FINISH_REASONS.get(word, word)


class ModelRequest(Wire):
    """One model call.

    step, session_id, turn_id, attempt: where the call belongs. Scripted models answer by them.
    turn_number: the number of the turn in its session, from 1, or 0 for a call beside the steps.
    metadata: the metadata that the turn's producer gave. None for a call beside the steps.
    purpose: the purpose of the answer. Only a `step` advances a turn.
    options: the model's options. A service ignores those that it does not support.
    output_schema: the JSON schema of the final text, if the provider can enforce it.
    timeout_s: the time within which the whole call, retries included, must end. A provider that cannot answer in time
        raises ProviderError(kind="timeout").
    estimate: the tokens of messages and tools, if the caller has estimated them.
    first_token_s, idle_s: how long a stream may be silent before its first output, and between two pieces. None means
        as long as `timeout_s` allows.
    in_line: whether it may wait in the queue of a limited model. A Fallback with another model left does not.
    blobs: the bytes of the messages' attachments, by their sha256.
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
    """The name of a provider, and of a model as it was requested there."""

    provider: str
    model: str


class ModelReply(Wire):
    """A whole reply: text, the calls in the model's order, and the usage.

    Call ids are the provider's own here. The coordinator replaces them with `c<step>-<index>`.

    finish_reason: `stop`, `tool_calls`, `length` (cut at the output limit), `content_filter`, or a service's own word.
        `finish` has its meaning for a turn.
    reasoning: the model's reasoning in order.
    answered_by: the one of several models that answered (a `Fallback`), or None for the requested model.
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
        return FinishKind.of(self.finish_reason)


class ModelRetry(Wire):
    """A retry after `wait_s` seconds, because the model was unavailable (`kind`: rate_limited, server, ...).

    model: the model that is called next, or "" for the same one.
    """

    kind: str
    wait_s: float
    model: str = ""


class ModelChunk(Wire):
    """A part of a streamed reply: retries, text and reasoning deltas, then one chunk with the whole `reply`.

    arguments: a part of a call: its name, or a piece of its arguments. It is not shown, and counts if the stream breaks
        off.
    """

    text: str = ""
    reasoning: str = ""
    arguments: str = ""
    reply: ModelReply | None = None
    retry: ModelRetry | None = None


@dataclass(frozen=True, slots=True)
class ModelFailure:
    """Why a turn's model could not be called, if the caller may act on the reason. The turn's error begins with it: a
    result crosses processes of several releases, and older ones read it as text.

    retry_after_s: when the service accepts requests again, if it gave a time.
    """

    kind: FailureKind
    retry_after_s: int | None = None


def render_failure(kind: str, message: str, retry_after_s: float | None = None) -> str:
    """Return the error of a turn, from a ProviderError's kind and message."""
    begin = _FAILURE_PREFIXES.get(kind)
    if begin is None:
        return message
    again = f" (again in {max(1, math.ceil(retry_after_s))} s)" if retry_after_s else ""
    return f"{begin}{again}: {message}"


def parse_failure(error: str | None) -> ModelFailure | None:
    """Read the text of `render_failure`. Returns None for any other error."""
    for kind, begin in _FAILURE_PREFIXES.items():
        if error and error.startswith(begin):
            again = _RETRY_HINT.match(error, len(begin))
            return ModelFailure(kind, None if again is None else int(again[1]))  # pyright: ignore[reportArgumentType]
    return None
