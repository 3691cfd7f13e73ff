"""The arguments of a brain's callbacks, and the answer with which one of them may refuse a call.

Callbacks are functions, plain or async, that run in brainq's own workers. Those of the finalizer (`on_usage`,
`on_turn_end`) run at least once: after a crash they may run again with the same `step_key`, and `on_post_tool_use` with
the same `call_key`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields
from typing import Any

from pydantic import JsonValue

from brainq.contracts.call import ToolOutcome
from brainq.contracts.ids import full_call_id
from brainq.contracts.message import ToolCall
from brainq.contracts.model import TokenUsage
from brainq.contracts.tool import ToolSpec
from brainq.contracts.turn import TurnRequest, TurnResult


@dataclass(frozen=True, slots=True)
class TurnCallback:
    """The turn that a callback is called for."""

    turn_id: str
    session_id: str


@dataclass(frozen=True, slots=True)
class TurnInfo(TurnCallback):
    """A turn as it begins. `turn_number` counts the turns of the session from 1."""

    user_message: str
    prompt_id: str | None = None
    prompt_version: str | None = None
    prompt_tags: tuple[str, ...] = ()
    metadata: dict[str, JsonValue] | None = None
    turn_number: int = 1

    @classmethod
    def from_request(cls, request: TurnRequest, turn_number: int) -> TurnInfo:
        return cls(
            turn_id=request.turn_id,
            session_id=request.session_id,
            user_message=request.user_message,
            prompt_id=request.prompt_id,
            prompt_version=request.prompt_version,
            prompt_tags=request.prompt_tags,
            metadata=request.metadata,
            turn_number=turn_number,
        )


@dataclass(frozen=True, slots=True)
class UsageInfo(TurnCallback):
    """The tokens of a whole turn. `cost_usd` is None if the price of the model is unknown."""

    step_key: str
    usage: TokenUsage
    model: str = ""
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class PreToolUse(TurnCallback):
    """A call before it is judged. `call.arguments` come from the model, and are not validated yet."""

    call: ToolCall
    spec: ToolSpec


@dataclass(frozen=True, slots=True)
class Deny:
    """The answer of `on_pre_tool_use` that refuses a call.

    message: shown to the model.
    block_tool: whether to refuse every later call of this tool in the turn, too.
    """

    message: str
    block_tool: bool = False


@dataclass(frozen=True, slots=True)
class PostToolUse(PreToolUse):
    """A call that ended, with its outcome.

    call_key: unique to this call, and the same whenever the hook is called again for it.
    """

    outcome: ToolOutcome

    @property
    def call_key(self) -> str:
        return full_call_id(self.turn_id, self.call.id)


@dataclass(frozen=True, slots=True)
class StreamChunk(TurnCallback):
    """A part of the model's text. A higher `attempt` of a step replaces the text of a lower one."""

    step: int
    attempt: int
    text: str


@dataclass(frozen=True, slots=True)
class TurnEnd(TurnCallback):
    """A turn that ended, with any ending."""

    result: TurnResult
    step_key: str


PreToolAnswer = Deny | dict[str, Any] | None
PreToolHook = Callable[[PreToolUse], PreToolAnswer]
AsyncPreToolHook = Callable[[PreToolUse], Awaitable[PreToolAnswer]]


@dataclass(frozen=True, slots=True)
class Callbacks:
    """The functions that a brain calls at fixed points of a turn. Each is optional. An async function runs on the
    process's event loop, and its end is awaited.

    on_turn_start, on_turn_end: called for turns that call the model, and not for those that compact a session
        (`kind="compact"`).
    on_pre_tool_use: returns None to allow the call, `Deny` to refuse it, or a dict with other arguments. If it raises,
        the call is denied.
    """

    on_turn_start: Callable[[TurnInfo], object] | None = None
    on_usage: Callable[[UsageInfo], object] | None = None
    on_pre_tool_use: PreToolHook | AsyncPreToolHook | None = None
    on_post_tool_use: Callable[[PostToolUse], object] | None = None
    on_stream_chunk: Callable[[StreamChunk], object] | None = None
    on_turn_end: Callable[[TurnEnd], object] | None = None


CALLBACK_NAMES: tuple[str, ...] = tuple(field.name for field in fields(Callbacks))
