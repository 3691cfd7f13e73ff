"""What people do to a turn: approvals, holds, mid-turn input; and what of it SQL restores to Redis."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pydantic import JsonValue

from brainq.contracts.base import UserText, Wire
from brainq.contracts.message import Attachment
from brainq.contracts.status import Effect

DecideResult = Literal["APPROVED", "DENIED", "DECIDED", "EXPIRED", "STALE", "ENDED", "GONE"]
"""What deciding an approval did."""
ApprovalState = Literal["pending", "approved", "denied", "expired", "void"]
"""`void`: its turn ended before anybody decided."""
HoldPolicy = Literal["deny", "release", "cancel"]
"""What becomes of a hold that outlives its timeout: the calls that wait are denied, or may go, or the turn is
cancelled."""
DEFAULT_HOLD_S = 3_600.0
PutResult = Literal["ACCEPTED", "ALREADY", "SEALED", "FULL", "GONE", "MOVED", "MOVING"]
SubmitWord = Literal["ACTIVE", "QUEUED", "EXISTS", "BUSY", "FORBIDDEN", "MOVED", "MOVING", "UNSERVED"]
"""What putting an input into a mailbox did."""
ReceiptState = Literal["accepted", "consumed", "bounced", "refused"]
BrakeKind = Literal["hold", "flag", "cancel"]
"""`flag`: a readiness flag of a session, until a turn takes it, and of that turn from then on."""


class ApprovalRequirement(Wire):
    """Why one planned call needs an approval, and for how long it may be waited for."""

    reason: str
    timeout_s: float


class Approval(Wire):
    """One call that needs, or needed, an approval.

    id           of the call, unique over all turns: `TURN-CALL`
    arguments    as they will run (edited ones after an edit); None where they are no longer kept
    args_hash    what a decision is bound to: one made for other arguments is refused
    edited       the person who approved it changed the arguments
    decided_by   who, as the decider named himself; empty where nobody did
    comment      the comment on the decision
    message      how the user's message begins, which led to the call; empty where content is not kept
    brain        the one that its turn names; None: the default
    """

    id: str
    session_id: str
    turn_id: str
    call_id: str
    tool: str
    effect: Effect
    arguments: dict[str, JsonValue] | None = None
    args_hash: str
    reason: str = ""
    state: ApprovalState = "pending"
    edited: bool = False
    created_at: datetime
    expires_at: datetime
    decided_at: datetime | None = None
    decided_by: str = ""
    comment: str = ""
    message: str = ""
    brain: str | None = None


@dataclass(frozen=True, slots=True)
class EditedCall:
    """A call with the arguments that a person put in place of the model's.

    arguments_json   what its worker reads, as a plan makes it, with `"edited": true`
    args_hash        of the new arguments; also in `arguments_json`
    lanes            what it must hold now; empty for a read
    """

    arguments_json: str
    args_hash: str
    fingerprint: str
    lanes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ApprovalStatus:
    """An approval's state in Redis. `arguments` are None once the call's step is over."""

    state: ApprovalState
    by: str
    why: str
    args_hash: str
    edited: bool
    arguments: dict[str, Any] | None
    expires_in_ms: int
    decided_at_ms: int | None


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A call that needs an approval, as SQL keeps it from before it is committed. `args_json` is None where no
    content is kept."""

    session_id: str
    turn_id: str
    call_id: str
    tool: str
    effect: Effect
    args_hash: str
    args_json: str | None
    reason: str
    timeout_s: float


class HoldSpec(Wire):
    """A hold as it is placed. `timeout_s` counts from then on; a readiness flag's from when its turn takes it."""

    id: str
    reason: str = ""
    timeout_s: float = DEFAULT_HOLD_S
    on_timeout: HoldPolicy = "deny"


def readiness_hold_id(client_message_id: str) -> str:
    """The hold that an input with `readiness=False` places when it is read."""
    return f"ready:{client_message_id}"


class StandingHold(Wire):
    """A hold of a turn. `kind` is `hold`, or `readiness` for its readiness flag."""

    id: str
    kind: Literal["hold", "readiness"]
    reason: str = ""
    on_timeout: HoldPolicy = "deny"
    ends_in_ms: int


class TurnInput(Wire):
    """One follow-up input.

    client_message_id   unique in its session: the same one twice is one message
    readiness           True lifts the turn's readiness hold, False sets one, None leaves it as it is
    attachments         images and files; their bytes are in SQL
    merged              it belongs to the question itself, because it came before the turn began
    """

    client_message_id: str
    text: UserText
    readiness: bool | None = None
    merged: bool = False
    attachments: tuple[Attachment, ...] = ()


class Receipt(Wire):
    """What became of an input.

    turn_id            the turn it was sent to
    step               the model call that read it, once `consumed`
    bounced_turn_id    the turn it became, once `bounced`
    """

    client_message_id: str
    session_id: str
    turn_id: str
    state: ReceiptState
    step: int | None = None
    bounced_turn_id: str | None = None


class Brake(Wire):
    """A brake in force, as SQL has it. `left_s` is what is left of its time, by SQL's clock: 0 or less when it is
    up."""

    kind: BrakeKind
    id: str
    session_id: str
    turn_id: str | None
    reason: str
    on_timeout: HoldPolicy
    timeout_s: float
    remaining_s: float

    @property
    def hold(self) -> HoldSpec:
        """The brake as a hold with the time that is left."""
        return HoldSpec(
            id=self.id, reason=self.reason, timeout_s=max(0.0, self.remaining_s), on_timeout=self.on_timeout
        )


class RestoredState(Wire):
    """What SQL knows of a turn that Redis may have lost.

    brakes   of the turn, and the flags of its session that no turn has taken, in the order they were promised
    inputs   that were accepted and that a step of the turn has read or will read, in the order they came
    """

    brakes: tuple[Brake, ...] = ()
    inputs: tuple[TurnInput, ...] = ()


NOTHING_TO_RESTORE = RestoredState()


def cancel_brake_id(turn_id: str) -> str:
    """The id of a turn's cancel among its session's brakes: a turn has one."""
    return f"cancel:{turn_id}"
