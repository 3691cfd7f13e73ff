"""Turns in Redis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from brainq.contracts.claim import (
    CallsRefused,
    CancelWord,
    PlannedCall,
    StepBegun,
    StepSpent,
    StepStart,
    TurnClaim,
    TurnDropped,
    TurnEnded,
    TurnStart,
)
from brainq.contracts.due_hook import DueHook
from brainq.contracts.event import EventKind
from brainq.contracts.kept import Kept
from brainq.contracts.limits import Limits
from brainq.contracts.message import Message
from brainq.contracts.model import ModelRetry
from brainq.contracts.status import Ending, StopReason, TraceStatus
from brainq.contracts.turn import TurnRequest
from brainq.contracts.usage import Spend
from brainq.contracts.view import TurnView


class Turns(Protocol):
    """Turn state; every write of an owner is fenced. See `state.turns.RedisTurns` for what each returns."""

    def submit(
        self,
        request: TurnRequest,
        limits: Limits,
        *,
        lost_reason: str = ...,
        children: int = ...,
        kept: Kept = ...,
    ) -> tuple[Literal["ACTIVE", "QUEUED", "EXISTS", "BUSY"], str, tuple[str, ...]]: ...
    def cancel(
        self, session_id: str, turn_id: str, reason: str, *, queued_only: bool = ...
    ) -> CancelWord: ...
    def claim(
        self, session_id: str, turn_id: str, fence: int, owner: str, most_lost: int = ...
    ) -> TurnClaim | TurnDropped: ...
    def release(self, claim: TurnClaim) -> Literal["RELEASED", "CLEARED", "GONE"]: ...
    def let_wait(
        self,
        claim: TurnClaim,
        ring_s: float,
        wait_s: float,
        why: str,
        stands: str,
        lost: Sequence[Spend] = ...,
    ) -> Literal["WAITS", "LOST"]: ...
    def beat(self, claim: TurnClaim) -> Literal["OK", "CANCEL", "LOST"]: ...
    def mark(self, claim: TurnClaim) -> str: ...
    def look(self, claim: TurnClaim) -> TurnView: ...
    def parked_calls(self, claim: TurnClaim, step: int) -> tuple[tuple[str, int], ...]: ...
    def due_hooks(self, claim: TurnClaim, calls: Sequence[str]) -> Sequence[DueHook]: ...
    def hooks_done(self, claim: TurnClaim, calls: Sequence[str]) -> Literal["DONE", "LOST"]: ...
    def begin(self, claim: TurnClaim, start: TurnStart) -> bool: ...
    def begin_step(
        self, claim: TurnClaim, step: StepStart, mark: str
    ) -> StepBegun | StepSpent | Literal["LOST"]: ...
    def tell_delta(
        self, claim: TurnClaim, step: int, attempt: int, text: str, mark: str = ..., kind: EventKind = ...
    ) -> bool: ...
    def tell_retry(self, claim: TurnClaim, step: int, attempt: int, retry: ModelRetry) -> bool: ...
    def commit_calls(
        self,
        claim: TurnClaim,
        step: int,
        message: Message,
        plan: Sequence[PlannedCall],
        spend: Spend,
        tail: str,
        block_tools: Sequence[str] = ...,
        problem: str = ...,
        notes: Sequence[Message] = ...,
        lost: Sequence[Spend] = ...,
    ) -> CallsRefused | Literal["COMMITTED", "LOST"]: ...
    def end(
        self,
        claim: TurnClaim,
        *,
        ending: Ending,
        stop_reason: StopReason,
        text: str,
        error: str,
        answer: Message | None,
        marker: Message | None,
        outcome: Message | None,
        open_status: TraceStatus,
        open_text: str,
        first_step: str,
        spend: Spend | None,
        tail: str,
        last: str = ...,
        diff: str = ...,
        n_changes: int = ...,
        lost: Sequence[Spend] | None = ...,
    ) -> TurnEnded | Literal["MORE", "CHANGED", "LOST"]: ...
    def said_so_far(self, claim: TurnClaim) -> str: ...
    def changes(self, claim: TurnClaim) -> Sequence[Mapping[str, str | None]]: ...
