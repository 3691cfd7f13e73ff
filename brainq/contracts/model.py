"""What is asked of a language model and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import JsonValue

from brainq.contracts.base import Wire
from brainq.contracts.finish import Finish, finish_of
from brainq.contracts.message import Message, ToolCall
from brainq.contracts.options import NO_OPTIONS, ModelOptions
from brainq.contracts.reasoning import Reasoning
from brainq.contracts.tool import ToolSpec
from brainq.contracts.usage import TokenUsage

Purpose = Literal["step", "reflection", "compaction", "memory", "judge"]


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
    def finish(self) -> Finish:
        return finish_of(self.finish_reason)


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
