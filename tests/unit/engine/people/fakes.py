"""Stand-ins for what the desks need of the world: one call, one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from brainq.contracts.call import ToolOutcome
from brainq.contracts.claim import CallFacts, CallRef, SettleReply, SettleResult
from brainq.contracts.ids import full_call_id, is_within
from brainq.contracts.message import Message
from brainq.contracts.people import Approval, ApprovalStatus, DecideResult, EditedCall
from brainq.contracts.rows import ApprovalRow
from brainq.contracts.status import Effect, TraceStatus
from brainq.contracts.turn import TurnRequest

SESSION, TURN, CALL = "s1", "turn-1", "c1-0"
ID = full_call_id(TURN, CALL)


def approval(number: int = 0, *, age_s: float = 60.0, **fields: Any) -> Approval:
    """One in SQL; `number` tells it from others of its turn."""
    now = datetime.now(UTC)
    values: dict[str, Any] = {
        "id": full_call_id(TURN, f"c1-{number}"),
        "session_id": SESSION,
        "turn_id": TURN,
        "call_id": f"c1-{number}",
        "tool": "write",
        "effect": Effect.LOCAL_WRITE,
        "arguments": {"name": "a"},
        "args_hash": "h1",
        "created_at": now - timedelta(seconds=age_s),
        "expires_at": now + timedelta(hours=1),
    }
    return Approval.model_validate(values | fields)


def asked(**fields: Any) -> ApprovalStatus:
    """How one stands in Redis: pending, unless said otherwise."""
    state = ApprovalStatus(
        state="pending",
        by="",
        why="",
        args_hash="h1",
        edited=False,
        arguments={"name": "a"},
        expires_in_ms=60_000,
        decided_at_ms=None,
    )
    return replace(state, **fields)


@dataclass
class Rows:
    """SQL's approvals; the newest is the last of `rows`."""

    rows: list[Approval]
    is_down: bool = False
    told: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def get(self, turn_id: str, call_id: str) -> Approval | None:
        return next((row for row in self.rows if row.id == full_call_id(turn_id, call_id)), None)

    def of_turn(self, turn_id: str) -> Sequence[Approval]:
        return [row for row in self.rows if row.turn_id == turn_id]

    def decided_of_open_turns(self, after_row: int, limit: int) -> Sequence[ApprovalRow]:
        placed = [ApprovalRow(place, row) for place, row in enumerate(self.rows, start=1)]
        decided = [row for row in placed if row.approval.state in ("approved", "denied")]
        return [row for row in decided if row.row > after_row][:limit]

    def list(
        self,
        session_id: str | None = None,
        state: str | None = None,
        limit: int = 50,
        before_row: int | None = None,
        sessions: Sequence[str] | None = None,
    ) -> Sequence[ApprovalRow]:
        placed = [ApprovalRow(place, row) for place, row in enumerate(self.rows, start=1)]
        found = [
            row
            for row in reversed(placed)
            if session_id in (None, row.approval.session_id)
            and state in (None, row.approval.state)
            and (before_row is None or row.row < before_row)
            and (sessions is None or is_within(sessions, row.approval.session_id))
        ]
        return found[:limit]

    def decided(self, turn_id: str, call_id: str, status: ApprovalStatus) -> bool:
        if self.is_down:
            raise ConnectionError("SQL is away")
        args = status.arguments if status.edited else None
        said = {"call": call_id, "state": status.state, "by": status.by, "comment": status.why, "args": args}
        self.told.append(said)
        for place, row in enumerate(self.rows):
            if row.call_id == call_id and row.state == "pending":
                changed = {
                    "state": status.state,
                    "decided_by": status.by,
                    "comment": status.why,
                    "edited": status.edited,
                }
                self.rows[place] = row.model_copy(update=changed)
                return True
        return False


@dataclass
class Asks:
    """Redis' approvals, by call. `word` is what the next decision is answered, if it is not as they stand."""

    states_of: dict[str, ApprovalStatus]
    word: tuple[DecideResult, str] | None = None
    decided: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def approvals(self, refs: Sequence[CallRef]) -> Sequence[ApprovalStatus | None]:
        return [self.states_of.get(ref.call_id) for ref in refs]

    def decide_approval(
        self,
        ref: CallRef,
        *,
        args_hash: str,
        decision: Literal["approved", "denied"],
        by: str,
        why: str,
        edited: EditedCall | None = None,
    ) -> tuple[DecideResult, str]:
        self.decided.append({"hash": args_hash, "decision": decision, "edited": edited})
        if self.word is not None:
            return self.word
        state = self.states_of.get(ref.call_id)
        if state is None:
            return "GONE", ""
        if state.state != "pending":
            return "DECIDED", state.state
        if state.args_hash != args_hash:
            return "STALE", ""
        changed: dict[str, Any] = {"state": decision, "by": by, "why": why}
        if edited is not None:
            changed |= {"edited": True, "args_hash": edited.args_hash}
        self.states_of[ref.call_id] = replace(state, **changed)
        return ("APPROVED" if decision == "approved" else "DENIED"), ""


class Requests:
    def request(self, turn_id: str) -> TurnRequest | None:
        return TurnRequest(turn_id=turn_id, session_id=SESSION, user_message="hello")


@dataclass
class Outside:
    """One call that waits; `word` is what becomes of its result."""

    word: SettleResult = "SETTLED"
    known: dict[str, CallRef] = field(default_factory=dict[str, CallRef])
    messages: list[Message] = field(default_factory=list[Message])
    notices: list[Message | None] = field(default_factory=list[Message | None])
    statuses: list[TraceStatus] = field(default_factory=list[TraceStatus])

    def find(self, token: str) -> CallRef | None:
        return self.known.get(token)

    def complete(
        self,
        ref: CallRef,
        token: str,
        *,
        status: TraceStatus,
        message: Message,
        detail: str = "",
        retryable: bool = False,
        notice: Message | None = None,
        outcome: Any = None,
    ) -> SettleReply:
        self.messages.append(message)
        self.notices.append(notice)
        self.statuses.append(status)
        return SettleReply(self.word)


@dataclass
class Facts:
    effect: Effect = Effect.LOCAL_WRITE
    is_gone: bool = False

    def facts(self, ref: CallRef) -> CallFacts | None:
        found = CallFacts(TraceStatus.PARKED, "order", self.effect, attempt=2, idempotent=False, step=3)
        return None if self.is_gone else found


@dataclass(frozen=True)
class Intent:
    call_id: str = CALL
    attempt: int = 2
    args_json: str | None = '{"item": "tea"}'


@dataclass
class Intents:
    rows: list[Intent] = field(default_factory=lambda: [Intent()])
    is_down: bool = False
    recorded: list[tuple[int, ToolOutcome, bool]] = field(default_factory=list[tuple[int, ToolOutcome, bool]])

    def of_turn(self, turn_id: str) -> Sequence[Intent]:
        return self.rows

    def record_outcome(self, turn_id: str, call_id: str, attempt: int, outcome: ToolOutcome, late: bool) -> bool:
        if self.is_down:
            raise ConnectionError("SQL is away")
        self.recorded.append((attempt, outcome, late))
        return True
