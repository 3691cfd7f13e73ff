"""Approvals: a call that a person has to let through before it may start."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pydantic import JsonValue

from brainq.contracts.base import Wire
from brainq.contracts.effect import Effect

DecideWord = Literal["APPROVED", "DENIED", "DECIDED", "EXPIRED", "STALE", "ENDED", "GONE"]
"""What deciding an approval did."""

ApprovalState = Literal["pending", "approved", "denied", "expired", "void"]
"""`void`: its turn ended before anybody decided."""


class ApprovalAsk(Wire):
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
    comment      what was said with the decision
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
class AskState:
    """How an approval stands in Redis. `arguments` are None once the call's step is over."""

    state: ApprovalState
    by: str
    why: str
    args_hash: str
    edited: bool
    arguments: dict[str, Any] | None
    expires_in_ms: int
    decided_at_ms: int | None


@dataclass(frozen=True, slots=True)
class AskedCall:
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
