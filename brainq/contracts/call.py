"""A call: its outcome, progress, trace and intent. A call that waits for its result has a token, a server's
task or a child turn.
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
"""The `error_type` of a call whose intent is in SQL and whose function was surely never called. No exception's name
has a dot, so no tool can say this."""
MAX_MESSAGE_CHARS = 300
OUTSIDE_TOKEN_PREFIX = "out_"
_NONCE_BYTES = 16
_NONCE = re.compile(r"[A-Za-z0-9_-]{16,64}", re.ASCII)  # 96 bits at least
_MAX_TOKEN_CHARS = 500


class ToolSuccess(Wire):
    """The function returned. `partial` says that a cooperative tool stopped early and gave what it had.

    attachments   the files it returned, once they are kept
    files_lost    why they were not kept
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
    """The function raised, or its process died. `error` is one line for the model.

    own_words   `error` is what the tool wrote for the model, of any length
    where       `file:line` of the raise, for people; empty where that is not known
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
    """The deadline passed first. A function that ignores its token may still be running."""

    kind: Literal["timeout"] = "timeout"
    after_ms: int
    still_running: bool = False
    latency_ms: int = 0
    retryable: bool = True


class ToolDenied(Wire):
    """A gate refused the call before it started. `repairs` of its arguments were tried."""

    kind: Literal["denied"] = "denied"
    reason: DenialReason
    message: str = ""
    repairs: int = 0
    latency_ms: int = 0
    retryable: bool = False


class ToolUnknown(Wire):
    """A non-read call started and did not report its end: it may or may not have taken effect.

    why   a word for people: what kept it from reporting; empty: its worker was lost
    """

    kind: Literal["unknown"] = "unknown"
    message: str = ""
    why: str = ""
    latency_ms: int = 0
    retryable: bool = False


ToolOutcome = Annotated[ToolSuccess | ToolFailure | ToolTimeout | ToolDenied | ToolUnknown, Field(discriminator="kind")]
"""How a call ended. A closed union: every reader matches all five."""


@dataclass(frozen=True, slots=True)
class CallReport:
    """What Redis records of a call's end.

    message    answers the call
    detail     a few words for people, without content
    notice     what the model reads where a write ends after it was given up
    block_tool   deny every later call of the tool in this turn
    sources, changes   rows that are kept with the turn: what it cited and rendered, and the files it changed
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
    """How far a running call is.

    done, total   in units of the tool's own; `total` is None where it is not known
    message          a short line for people
    """

    done: float
    total: float | None = None
    message: str = ""


def check_progress(done: object, total: object, message: object) -> Progress:
    """Raises InvalidInput for what is no finite number, or no text; a long message is cut."""
    if not isinstance(message, str):
        raise InvalidInput("message", f"it must be a text, not {type(message).__name__}")
    line = " ".join(message.split())[:MAX_MESSAGE_CHARS]
    line = line.encode("utf-8", "replace").decode()
    return Progress(done=_number("done", done), total=None if total is None else _number("total", total), message=line)


def _number(field: str, given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        raise InvalidInput(field, f"{given!r} is no finite number; say how many are done, such as 3")
    return float(given)


class ToolTraceEntry(Wire):
    """One call's trace. Instants are Redis time in ms; 0 means not yet.

    lane_wait_ms   how long it waited for its lanes, the last time that it did
    repairs     mends of the arguments that were tried, also of a call that was denied
    retryable   its tool, or how it ended, says that it may be tried again
    park   what a parked call waits for: approval, hold, outside, child or client; empty for any other
    stop   what operators have paused that a parked call waits for: `tool send_email`; empty for any other
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
        """Return `tool`, under the name that it has in a single-process harness."""
        return self.tool

    @property
    def trace_id(self) -> str:
        """Return `call_id`, under the name that it has in a single-process harness."""
        return self.call_id


class Intent(TypedDict):
    """What SQL has of an attempt at a non-read call before it starts. `args_json` is None where no content is kept."""

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
    """A call that no worker ended, as the brain's hook gets it, with the arguments that it was to run with."""

    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    outcome: ToolOutcome


@dataclass(frozen=True, slots=True)
class ChildTurn:
    """The call parks until a turn in another session has ended; that turn's answer is the call's result.

    session_id   of the child; another one than the parent's. None: a new session, named after the call,
                 with the parent's prefix: `acme:42` has children in `acme:ch-...`
    message      the child's user message
    brain        the name of the brain that is to have it; None: its parent's
    options      more fields of the TurnRequest: model, system_prompt, limits, metadata, ...
    timeout_s    how long to wait for it at most, its waiting in its session's queue included
    """

    message: str
    session_id: str | None = None
    timeout_s: float = 3_600.0
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    brain: str | None = None


@dataclass(frozen=True, slots=True)
class ServerTask:
    """What the function of a server's tool returns in place of the result.

    task_id     the server's name of the task
    poll_ms     how often the server wants to be asked; 0: it does not say
    timeout_s   how long the call waits at most
    held_by     the one connection that can ask; "": any
    """

    task_id: str
    poll_ms: int
    timeout_s: float
    held_by: str = ""


@dataclass(frozen=True, slots=True)
class ServerTaskWatch:
    """A server's task, and the attempt of a call that waits for it.

    brain, effect   whose processes ask: those that run calls of this effect of this brain ("": the default one)
    token           completes the call
    begun_ms        when it was given, by Redis' clock
    row             as it is in Redis
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
    """A token for this call that nobody can guess. Whoever has it can complete the call; it is a secret."""
    text = f"{ref.session_id} {ref.turn_id} {ref.call_id} {secrets.token_urlsafe(_NONCE_BYTES)}"
    return OUTSIDE_TOKEN_PREFIX + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def parse_outside_token(token: str) -> CallRef | None:
    """The call that a token of `new_outside_token` names, or None for any other text.

    That the token is genuine it does not say: only the call itself knows which one it was given.
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
    """What is in the place of a token where the client's own call waits. It is no secret, and completes nothing
    but through `TurnHandle.give_result`."""
    return f"client {call_id}"
