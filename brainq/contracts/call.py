"""A call: its outcome, progress, trace and intent.

A call that waits for a result from outside has a token, a server's task or a child turn.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypedDict

from pydantic import Field, JsonValue

from brainq.contracts.base import Wire
from brainq.contracts.claim import CallRef
from brainq.contracts.ids import check_id, check_turn_id
from brainq.contracts.message import Attachment, Message
from brainq.contracts.status import Effect, TraceStatus
from brainq.errors import InvalidInput

DenialReason = Literal[
    "duplicate", "blocked", "pre_hook", "validation", "budget", "approval", "hold", "cut", "too_many"
]
NOT_STARTED = "brainq.NotStarted"
"""The `error_type` of a call with an intent in SQL whose function was certainly never called. No exception's name has a
dot, so no tool can report this."""
MAX_MESSAGE_CHARS = 300
OUTSIDE_TOKEN_PREFIX = "out_"
_NONCE_BYTES = 16
_NONCE = re.compile(r"[A-Za-z0-9_-]{16,64}", re.ASCII)  # 96 bits at least
_MAX_TOKEN_CHARS = 500


class ToolSuccess(Wire):
    """The outcome of a function that returned.

    partial: a cooperative tool stopped early and returned what it had.
    attachments: the files that it returned, once they are stored.
    files_lost: why its files could not be stored.
    """

    kind: Literal["success"] = "success"
    value: JsonValue = None
    partial: bool = False
    latency_ms: int = 0
    retryable: bool = False
    block_tool: bool = False  # the tool asked not to be called again in this turn
    attachments: tuple[Attachment, ...] = ()
    files_lost: str = ""


class ToolFailure(Wire):
    """The outcome of a function that raised, or whose process died. `error` is one line for the model.

    own_words: whether the tool wrote `error` for the model. It may then have any length.
    where: `file:line` of the raise, for people. Empty if unknown.
    """

    kind: Literal["failure"] = "failure"
    error: str
    error_type: str = ""
    latency_ms: int = 0
    retryable: bool = False
    block_tool: bool = False
    own_words: bool = False
    where: str = ""


class ToolTimeout(Wire):
    """The outcome of a call whose deadline passed first. A function that ignores its token may still be running."""

    kind: Literal["timeout"] = "timeout"
    after_ms: int
    still_running: bool = False
    latency_ms: int = 0
    retryable: bool = True


class ToolDenied(Wire):
    """The outcome of a call that a gate refused before it started.

    `repairs` counts the attempts to repair its arguments.
    """

    kind: Literal["denied"] = "denied"
    reason: DenialReason
    message: str = ""
    repairs: int = 0
    latency_ms: int = 0
    retryable: bool = False


class ToolUnknown(Wire):
    """The outcome of a non-read call that started and did not report its end: it may or may not have taken effect.

    why: the reason in a word, for people. Empty if its worker was lost.
    """

    kind: Literal["unknown"] = "unknown"
    message: str = ""
    why: str = ""
    latency_ms: int = 0
    retryable: bool = False


ToolOutcome = Annotated[ToolSuccess | ToolFailure | ToolTimeout | ToolDenied | ToolUnknown, Field(discriminator="kind")]
"""How a call ended. The union is closed: every reader matches all five."""


@dataclass(frozen=True, slots=True)
class CallReport:
    """The end of a call, as Redis records it.

    message: the tool message that answers the call.
    detail: a few words for people, without content.
    notice: the message for the model if a write ends after it was given up.
    block_tool: whether to deny every later call of the tool in this turn.
    sources, changes: rows that are kept with the turn: its citations and rendered files, and the files it changed.
    """

    status: TraceStatus
    message: Message
    detail: str = ""
    latency_ms: int = 0
    retryable: bool = False
    notice: Message | None = None
    block_tool: bool = False
    sources: Sequence[Mapping[str, str]] = ()
    changes: Sequence[Mapping[str, str]] = ()


class Progress(Wire):
    """The progress of a running call.

    done, total: in the tool's own units. `total` is None if it is unknown.
    message: a short line for people.
    """

    done: float
    total: float | None = None
    message: str = ""


def check_progress(done: object, total: object, message: object) -> Progress:
    """Return the progress, with a long message cut. Raises InvalidInput for a number that is not finite, or a message
    that is not text."""
    if not isinstance(message, str):
        raise InvalidInput("message", f"it must be a text, not {type(message).__name__}")
    line = " ".join(message.split())[:MAX_MESSAGE_CHARS]
    line = line.encode("utf-8", "replace").decode()
    return Progress(done=_number("done", done), total=None if total is None else _number("total", total), message=line)


def _number(field: str, given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        raise InvalidInput(field, f"{given!r} is not a finite number; give the amount that is done, such as 3")
    return float(given)


class ToolTraceEntry(Wire):
    """The trace of one call. Times are Redis time in ms; 0 means not yet.

    lane_wait_ms: how long it last waited for its lanes.
    repairs: the attempts to repair its arguments, also of a denied call.
    retryable: whether its tool, or its outcome, allows another try.
    park: what a parked call waits for: approval, hold, outside, child or client. Empty for any other call.
    stop: the paused subject that a parked call waits for, such as `tool send_email`. Empty for any other call.
    """

    call_id: str
    tool: str
    effect: Effect
    status: TraceStatus
    step: int
    wave: int
    attempt: int = 1
    args_hash: str = ""
    lanes: tuple[str, ...] = ()
    dispatched_at_ms: int = 0
    started_at_ms: int = 0
    ended_at_ms: int = 0
    latency_ms: int = 0
    lane_wait_ms: int = 0
    owner: str = ""
    repairs: int = 0
    retryable: bool = False
    detail: str = ""
    park: str = ""
    stop: str = ""

    @property
    def tool_name(self) -> str:
        """Return `tool`, under its name in a single-process harness."""
        return self.tool

    @property
    def trace_id(self) -> str:
        """Return `call_id`, under its name in a single-process harness."""
        return self.call_id


class Intent(TypedDict):
    """The row that SQL gets before an attempt at a non-read call starts. `args_json` is None if no content is kept."""

    turn_id: str
    call_id: str
    attempt: int
    session_id: str
    tool: str
    effect: Effect
    args_hash: str
    args_json: str | None
    idempotency_key: str
    owner: str


@dataclass(frozen=True, slots=True)
class DueHook:
    """A call that no worker finished, with the arguments that it was to run with, for the brain's
    `on_post_tool_use`."""

    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    outcome: ToolOutcome


@dataclass(frozen=True, slots=True)
class ChildTurn:
    """A result that parks the call until a turn in another session has ended. That turn's answer becomes the call's
    result.

    session_id: the child's session, which differs from the parent's. None means a new session, named after the call,
        with the parent's prefix: `acme:42` has children in `acme:ch-...`.
    message: the child's user message.
    brain: the name of the child's brain, or None for the parent's.
    options: more fields of the TurnRequest: model, system_prompt, limits, metadata, ...
    timeout_s: how long to wait for it at most, including its wait in its session's queue.
    """

    message: str
    session_id: str | None = None
    timeout_s: float = 3_600.0
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    brain: str | None = None


@dataclass(frozen=True, slots=True)
class ServerTask:
    """The answer of a server's tool whose result will come later.

    task_id: the server's name of the task.
    poll_ms: how often the server wants to be polled, or 0 if it does not say.
    timeout_s: how long the call waits at most.
    held_by: the one connection that can poll the task, or "" for any.
    """

    task_id: str
    poll_ms: int
    timeout_s: float
    held_by: str = ""


@dataclass(frozen=True, slots=True)
class ServerTaskWatch:
    """A server's task, and the attempt of a call that waits for it.

    brain, effect: select the processes that poll the task: those that run calls of this effect of this brain ("" for
        the default one).
    token: the secret that completes the call.
    begun_ms: when the task was returned, by Redis' clock.
    row: the text of this task in Redis.
    """

    ref: CallRef
    attempt: int
    owner: str
    brain: str
    effect: Effect
    tool: str
    token: str
    task: ServerTask
    begun_ms: int
    row: str = field(default="", compare=False)


def new_outside_token(ref: CallRef) -> str:
    """Return a token for this call. It is a secret: whoever has it can complete the call."""
    text = f"{ref.session_id} {ref.turn_id} {ref.call_id} {secrets.token_urlsafe(_NONCE_BYTES)}"
    return OUTSIDE_TOKEN_PREFIX + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def parse_outside_token(token: str) -> CallRef | None:
    """Return the call that a token of `new_outside_token` names, or None for any other text.

    It does not prove that the token is genuine: only the call itself knows its token.
    """
    if not token.startswith(OUTSIDE_TOKEN_PREFIX) or len(token) > _MAX_TOKEN_CHARS:
        return None
    body = token.removeprefix(OUTSIDE_TOKEN_PREFIX)
    try:
        text = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True).decode()
        session_id, turn_id, call_id, nonce = text.split(" ")
        check_id("session_id", session_id)
        check_turn_id("turn_id", turn_id)
        check_id("call_id", call_id)
    except (InvalidInput, ValueError, binascii.Error):
        return None
    return CallRef(session_id, turn_id, call_id) if _NONCE.fullmatch(nonce) else None


def client_token(call_id: str) -> str:
    """Return the text in place of a token for a call that the client runs itself. It is not secret, and completes
    nothing except through `TurnHandle.give_result`."""
    return f"client {call_id}"
