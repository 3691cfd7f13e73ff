"""What running a call needs of the world. `wiring.py` fits Redis, SQL and the brain in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from brainq.contracts.claim import CallClaim, CallRef, SettleReply
from brainq.contracts.effect import Effect
from brainq.contracts.message import Message
from brainq.contracts.outcome import ToolOutcome
from brainq.contracts.snapshot import BudgetSnapshot
from brainq.contracts.status import TraceStatus


class Calls(Protocol):
    """Call state in Redis; every write is fenced by owner and attempt."""

    def claim(self, ref: CallRef, attempt: int, owner: str) -> CallClaim | str: ...
    def beat(self, claim: CallClaim) -> str: ...
    def settle(
        self,
        claim: CallClaim,
        *,
        status: TraceStatus,
        message: Message,
        detail: str,
        latency_ms: int,
        sources: Sequence[Mapping[str, str]] = (),
        block_tool: bool = False,
        notice: Message | None = None,
    ) -> SettleReply: ...
    def dispatch(self, ref: CallRef) -> str: ...
    def lanes_of(self, ref: CallRef) -> tuple[str, ...]: ...


class Lanes(Protocol):
    """Lanes: lines of calls, one holder each."""

    def take(self, ref: CallRef, lanes: Sequence[str]) -> bool: ...
    def free(self, ref: CallRef) -> list[CallRef]: ...
    def reap(self, ref: CallRef, mark: str) -> list[CallRef]: ...
    def beat(self, ref: CallRef) -> str: ...


class Intents(Protocol):
    """Intents of non-read calls in SQL: a row before the call starts, its outcome when it ended."""

    def start(
        self,
        *,
        turn_id: str,
        call_id: str,
        attempt: int,
        session_id: str,
        tool: str,
        effect: Effect,
        args_hash: str,
        args_json: str | None,
        idempotency_key: str,
        owner: str,
    ) -> bool: ...
    def record_outcome(
        self, turn_id: str, call_id: str, attempt: int, outcome: ToolOutcome, late: bool
    ) -> bool: ...


class Budgets(Protocol):
    def snapshot(self, session_id: str, turn_id: str) -> BudgetSnapshot: ...
