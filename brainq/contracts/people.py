"""People's actions on a turn: approvals, holds, mid-turn input; and the part of them that SQL restores to Redis."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pydantic import JsonValue

from brainq.contracts.base import UserText, Wire
from brainq.contracts.message import Attachment
from brainq.contracts.status import Effect

DecideResult = Literal["APPROVED", "DENIED", "DECIDED", "EXPIRED", "STALE", "ENDED", "GONE"]
"""The result of a decision about an approval."""
ApprovalState = Literal["pending", "approved", "denied", "expired", "void"]
"""`void`: its turn ended before anybody decided."""
HoldPolicy = Literal["deny", "release", "cancel"]
"""What happens to a hold after its timeout: waiting calls are denied, or released, or the turn is cancelled."""
DEFAULT_HOLD_S = 3_600.0
PutResult = Literal["ACCEPTED", "ALREADY", "SEALED", "FULL", "GONE", "MOVED", "MOVING"]
SubmitWord = Literal["ACTIVE", "QUEUED", "EXISTS", "BUSY", "FORBIDDEN", "MOVED", "MOVING", "UNSERVED"]
"""The result of a submit."""
ReceiptState = Literal["accepted", "consumed", "bounced", "refused"]
BrakeKind = Literal["hold", "flag", "cancel"]
"""`flag`: a readiness flag of a session until a turn takes it, and of that turn from then on."""


class ApprovalRequirement(Wire):
    """Why one planned call needs an approval, and how long the call may wait for it."""

    reason: str
    timeout_s: float


class Approval(Wire):
    """One call that needs, or needed, an approval.

    id: of the call, unique over all turns: `TURN-CALL`.
    arguments: the arguments that will run, including a person's edit. None if they are no longer kept.
    args_hash: binds a decision to these arguments. One made for other arguments is refused.
    edited: whether the person who approved it changed the arguments.
    decided_by: the name that the person gave, or "" if nobody decided.
    comment: the comment on the decision.
    message: the beginning of the user's message that led to the call, or "" if content is not kept.
    brain: the brain that its turn names, or None for the default.
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

    arguments_json: the JSON that its worker reads, as of `call_json`, with `"edited": true`.
    args_hash: the hash of the new arguments, which is also in `arguments_json`.
    lanes: the lanes that it needs now. Empty for a read.
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
    """A call that needs an approval. It is written to SQL before its step is committed.

    args_json: None if no content is kept.
    """

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
    """A hold that is to be placed.

    `timeout_s` counts from the moment it is placed. For a readiness flag it counts from when the turn reads the flag.
    """

    id: str
    reason: str = ""
    timeout_s: float = DEFAULT_HOLD_S
    on_timeout: HoldPolicy = "deny"


def readiness_hold_id(client_message_id: str) -> str:
    """Return the id of the hold that an input with `readiness=False` places when it is read."""
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

    client_message_id: unique in its session. A repeated id is the same message.
    readiness: True releases the turn's readiness hold, False places one, and None changes nothing.
    attachments: images and files. Their bytes are in SQL.
    merged: whether it is a part of the question itself, because it came before the turn began.
    """

    client_message_id: str
    text: UserText
    readiness: bool | None = None
    merged: bool = False
    attachments: tuple[Attachment, ...] = ()


class Receipt(Wire):
    """The outcome of an input.

    turn_id: the turn that it was sent to.
    step: the model call that read it, once it is `consumed`.
    bounced_turn_id: the turn that it became, once it is `bounced`.
    """

    client_message_id: str
    session_id: str
    turn_id: str
    state: ReceiptState
    step: int | None = None
    bounced_turn_id: str | None = None


class Brake(Wire):
    """A brake in force, in SQL. `remaining_s` is 0 or less once its time is up, by SQL's clock."""

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
        """The brake as a hold for the remaining time."""
        return HoldSpec(
            id=self.id, reason=self.reason, timeout_s=max(0.0, self.remaining_s), on_timeout=self.on_timeout
        )


class RestoredState(Wire):
    """The state of a turn in SQL that Redis may have lost.

    brakes: of the turn, and the flags of its session that no turn has taken, in the order they were promised.
    inputs: accepted inputs that a step of the turn has read or will read, in order.
    """

    brakes: tuple[Brake, ...] = ()
    inputs: tuple[TurnInput, ...] = ()


NOTHING_TO_RESTORE = RestoredState()


def cancel_brake_id(turn_id: str) -> str:
    """Return the id of a turn's one cancel among its session's brakes."""
    return f"cancel:{turn_id}"
