"""What requests send and what they are answered, where no contract says it already. Bodies are taken as they are:
nothing is made a number that was sent as text, and unknown fields are refused."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from brainq.client.checks import MAX_COMMENT_CHARS, MAX_HOLD_S, MAX_REASON_CHARS
from brainq.client.options import Cancelled
from brainq.contracts.approval import Approval
from brainq.contracts.brain_seen import BrainSeen
from brainq.contracts.brought import MAX_BROUGHT
from brainq.contracts.client_tool import (
    DEFAULT_CLIENT_S,
    MAX_CLIENT_S,
    MAX_CLIENT_TOOLS,
    MAX_DESCRIPTION_CHARS,
)
from brainq.contracts.file import MAX_FILES, MAX_NAME_CHARS, read_files
from brainq.contracts.history import HistoryTurn, TurnCall
from brainq.contracts.hold import DEFAULT_HOLD_S, HoldPolicy, StandingHold
from brainq.contracts.ids import MAX_ID_LENGTH
from brainq.contracts.listing import ListedSession, ListedTurn
from brainq.contracts.mailbox import Receipt
from brainq.contracts.message import Message
from brainq.contracts.options import TurnOptions
from brainq.contracts.schedule import Missed, OnRunning, Schedule
from brainq.contracts.snapshot import TurnSnapshot
from brainq.contracts.turn import (
    MAX_EXTRA_CHARS,
    MAX_MESSAGE_CHARS,
    LimitsOverride,
    OnBusy,
    Priority,
    TurnKind,
)
from brainq.contracts.webhook import DeliveryState
from brainq.http.gateway import ID, TURN_ID
from brainq.tools.with_files import WithFiles

MAX_BY_CHARS = 90  # with the caller's name before it
SESSIONS = r"^([A-Za-z0-9]|\{date\}|\{time\})([A-Za-z0-9._:@+=-]|\{date\}|\{time\})*$"
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Body(BaseModel):
    """What a request sends."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Answer(BaseModel):
    """What a request is answered."""

    model_config = ConfigDict(frozen=True)


class TurnLimits(LimitsOverride):
    """Limits of one turn that differ from the brain's."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class OptionsBody(TurnOptions):
    """How a turn's model is asked, where that differs from the brain's."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class BroughtCall(Body):
    """A call that the assistant made. `id` tells it from the others of its message."""

    id: str = Field(min_length=1, max_length=200)
    name: str = Field(min_length=1, max_length=200)
    arguments: dict[str, JsonValue]


class FileBody(Body):
    """An image or a file: its bytes as base64 text, or as a `data:` URL. Without a type it is found from the bytes."""

    data: str = Field(min_length=1)
    media_type: str = Field(default="", max_length=200)
    name: str = Field(default="", max_length=MAX_NAME_CHARS)


class BroughtMessage(Body):
    """A message of a conversation that was had elsewhere. `calls` are the assistant's; a `tool` message names one."""

    role: Literal["user", "assistant", "tool"]
    content: str = Field(default="", max_length=MAX_MESSAGE_CHARS)
    calls: list[BroughtCall] = []
    call_id: str = Field(default="", max_length=200)
    name: str = Field(default="", max_length=200)
    is_error: bool = False
    attachments: list[FileBody] = Field(default=[], max_length=MAX_FILES)


class ClientToolBody(Body):
    """A tool that the caller runs itself; `parameters` is the JSON schema, of an object, of its arguments."""

    name: str = Field(pattern="^[A-Za-z_][A-Za-z0-9_-]{0,63}$")
    description: str = Field(default="", max_length=MAX_DESCRIPTION_CHARS)
    parameters: dict[str, JsonValue] = {"type": "object", "properties": {}}
    timeout_s: float = Field(default=DEFAULT_CLIENT_S, gt=0, le=MAX_CLIENT_S, allow_inf_nan=False)


class TurnBody(Body):
    """What a turn is asked, and how it differs from others; see `Client.submit`."""

    user_message: str = Field(min_length=1, max_length=MAX_MESSAGE_CHARS)
    model: str | None = None
    provider: str | None = None
    system_prompt: str | None = Field(default=None, max_length=MAX_EXTRA_CHARS)
    skill_context: str | None = Field(default=None, max_length=MAX_EXTRA_CHARS)
    output_schema: dict[str, Any] | None = None
    cwd: str | None = Field(default=None, max_length=4096)
    limits: TurnLimits | None = None
    options: OptionsBody | None = None
    show_citations: bool | None = None
    prompt_id: str | None = Field(default=None, max_length=200)
    prompt_version: str | None = Field(default=None, max_length=200)
    prompt_tags: list[str] = []
    metadata: dict[str, JsonValue] | None = None
    on_busy: OnBusy = "enqueue"
    priority: Priority = "normal"
    kind: TurnKind = "chat"
    seed: Literal["session", "empty"] = "session"
    greeting: str | None = Field(default=None, min_length=1, max_length=MAX_MESSAGE_CHARS)
    history: list[BroughtMessage] = Field(default=[], max_length=MAX_BROUGHT)
    client_tools: list[ClientToolBody] = Field(default=[], max_length=MAX_CLIENT_TOOLS)
    brain: str | None = Field(default=None, pattern=ID)

    def given(self) -> list[str]:
        """The fields that say something; null says nothing."""
        return [name for name in sorted(self.model_fields_set) if getattr(self, name) is not None]


class SubmitBody(TurnBody):
    """One user message to one session, and how its turn differs from others."""

    session_id: str = Field(pattern=ID)
    readiness: bool | None = None
    attachments: list[FileBody] = Field(default=[], max_length=MAX_FILES)


_AT = "write a text such as 2031-01-05T09:00:00+01:00"


def _instant(given: object) -> datetime:
    if not isinstance(given, str):
        raise ValueError(_AT)
    try:
        at = datetime.fromisoformat(given)
    except ValueError:
        raise ValueError(_AT) from None
    if at.tzinfo is None:
        raise ValueError(f"it needs a time zone; {_AT}")
    return at


def _spelled(given: object) -> object:
    if isinstance(given, bool) or not isinstance(given, str | int | float | None):
        raise ValueError("write a crontab, such as `*/5 9-17 * * mon-fri`, or a span in seconds")
    if not isinstance(given, str | None) and not given > 0:
        raise ValueError("a span in seconds is above 0")
    return given


class ScheduleBody(TurnBody):
    """Turns that begin at a time; give one of `when` and `at`.

    name         begins with its tenant's prefix, as its session does; the same name again sets the schedule anew
    session_id   {date} and {time} in it are those of each due instant in `zone`
    when         repeated: a crontab's five fields, such as `*/5 9-17 * * mon-fri`, or a span in seconds
    at           once
    """

    name: str = Field(pattern=ID)
    session_id: str = Field(pattern=SESSIONS, max_length=MAX_ID_LENGTH)
    when: Annotated[Annotated[str, Field(max_length=200)] | Seconds | None, BeforeValidator(_spelled)] = None
    at: Annotated[AwareDatetime, BeforeValidator(_instant, json_schema_input_type=str)] | None = None
    zone: str = Field(default="UTC", max_length=100)
    on_running: OnRunning = "skip"
    missed: Missed = "once"


class Scheduled(Answer):
    """A schedule that was set, paused or resumed. `next_at` null: it has no run any more."""

    name: str
    paused: bool
    next_at: datetime | None


class SchedulePage(Answer):
    """By name. `next`, given as `after`, is the page behind this one; null: this is the last."""

    schedules: tuple[Schedule, ...]
    next: str | None


class Submitted(Answer):
    """An accepted turn.

    created   False: this `Idempotency-Key` was sent before, and this is the first turn
    receipt   where `on_busy` put the message into another turn, which this then is
    """

    turn_id: str
    session_id: str
    created: bool
    receipt: Receipt | None = None


class TurnSeen(Answer):
    """How a turn stands.

    state      `queued active parked closing`, an ending, `rejected`, or `accepted` where only SQL knows it yet
    snapshot   what Redis knows, until it lets the ended turn go
    """

    turn_id: str
    session_id: str
    state: str
    snapshot: TurnSnapshot | None = None


class Explained(Answer):
    """What happens next to a turn, and why, in one sentence."""

    turn_id: str
    session_id: str
    next: str


class Transcript(Answer):
    """A page of a turn's messages, in order."""

    turn_id: str
    session_id: str
    messages: tuple[Message, ...]


class Calls(Answer):
    """A page of a turn's calls, in the model's order."""

    turn_id: str
    session_id: str
    calls: tuple[TurnCall, ...]


class BrainsSeen(Answer):
    """The deployment's brains, the default one first."""

    brains: tuple[BrainSeen, ...]


class Health(Answer):
    status: Literal["ok"] = "ok"


class InputBody(Body):
    """Follow-up input. With `readiness` or `attachments` the text may be empty."""

    text: str = Field(default="", max_length=MAX_MESSAGE_CHARS)
    client_message_id: str | None = Field(default=None, pattern=ID)
    readiness: bool | None = None
    expected_turn_id: str | None = Field(default=None, pattern=TURN_ID)
    attachments: list[FileBody] = Field(default=[], max_length=MAX_FILES)


class ReasonBody(Body):
    reason: str = Field(default="", max_length=MAX_REASON_CHARS)


class HoldBody(Body):
    """What a hold, or a readiness flag, is for, how long it may stand, and what becomes of it then."""

    reason: str = Field(default="", max_length=MAX_REASON_CHARS)
    timeout_s: float = Field(default=DEFAULT_HOLD_S, gt=0, le=MAX_HOLD_S, allow_inf_nan=False)
    on_timeout: HoldPolicy = "deny"


class ApproveBody(Body):
    """`by`: the person who decides, beside the caller; `args_hash`: only if the arguments still are those of it."""

    by: str = Field(default="", max_length=MAX_BY_CHARS)
    args_hash: str | None = Field(default=None, max_length=200)


class DenyBody(Body):
    """The model reads the reason."""

    by: str = Field(default="", max_length=MAX_BY_CHARS)
    reason: str = Field(default="", max_length=MAX_COMMENT_CHARS)


class EditBody(Body):
    """The call runs with these arguments in place of the model's; `args_hash` is of those that were edited."""

    by: str = Field(default="", max_length=MAX_BY_CHARS)
    args_hash: str | None = Field(default=None, max_length=200)
    arguments: dict[str, JsonValue]


class OutsideResult(Body):
    """The result that a call waits for, and files beside it; `partial`: a part of what was asked for."""

    result: JsonValue
    files: list[FileBody] = Field(default=[], max_length=MAX_FILES)
    partial: bool = False


class OutsideError(Body):
    """There is no result; the model reads why."""

    error: str = Field(min_length=1, max_length=2_000)


class RetryBody(Body):
    """A step, `judge:NAME`, `judges`; empty: all that is dead."""

    step: str = Field(default="", max_length=300)


class CancelAnswer(Answer):
    """`cancelled`: it had not begun; `requested`: it is asked to stop; `ended`: there was nothing to cancel."""

    cancelled: Cancelled


class Holds(Answer):
    holds: tuple[StandingHold, ...]


class Placed(Answer):
    """A hold, or a readiness flag, by whose id it is released."""

    id: str
    session_id: str
    turn_id: str | None = None


class Released(Answer):
    """False: it stood no longer."""

    released: bool


class Approvals(Answer):
    approvals: tuple[Approval, ...]


class TakenAnswer(Answer):
    """`settled`: the call has it; `early`: it will, once its tool has returned; `late`: nobody waits any more."""

    taken: Literal["settled", "early", "late"]


class TurnPage(Answer):
    """Turns, the newest first. `next`, given as `before`, is the page behind this one; null: this is the last."""

    turns: tuple[ListedTurn, ...]
    next: str | None


class SessionPage(Answer):
    """Sessions, the one with the newest turn first; `next` as of `TurnPage`."""

    sessions: tuple[ListedSession, ...]
    next: str | None


class Waiting(Answer):
    """A turn that waits for the live one; place 1 is next."""

    turn_id: str
    place: int
    created_at: datetime


class SessionSeen(Answer):
    """How a session stands: its live turn, those that wait, and the readiness flags that no turn has taken."""

    session_id: str
    live: str | None
    waiting: tuple[Waiting, ...]
    is_paused: bool
    flags: tuple[str, ...]


class History(Answer):
    """Turns of a session, the oldest first; `before` the first of them is the page before."""

    session_id: str
    turns: tuple[HistoryTurn, ...]


class Changed(Answer):
    """False: it was so before."""

    changed: bool


class Touched(Answer):
    """The turn that it made live, or cancelled; null: none."""

    turn_id: str | None


class RetriedStep(Answer):
    """`taken`: a worker has it at this moment."""

    step: str
    outcome: Literal["done", "failed", "taken"]
    error: str


class RetryAnswer(Answer):
    turn_id: str
    steps: tuple[RetriedStep, ...]


class Delivery(Answer):
    """What a webhook was, or is to be, sent. Of where to only the host is told: a path may hold a secret."""

    id: int
    message_id: str
    host: str
    event: str
    session_id: str
    turn_id: str
    state: DeliveryState
    tries: int
    due_at: datetime
    created_at: datetime
    updated_at: datetime
    error: str | None


class Deliveries(Answer):
    """The newest first; `next` is the next page's `before`."""

    deliveries: tuple[Delivery, ...]
    next: int | None


def result_of(body: OutsideResult) -> object:
    """As the client takes it. Raises InvalidInput for what is no file."""
    if not body.files:
        return body.result
    return WithFiles(body.result, read_files("files", [file.model_dump() for file in body.files]))
