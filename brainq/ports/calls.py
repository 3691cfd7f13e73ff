"""Calls in Redis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from brainq.contracts.claim import CallClaim, CallDropped, CallFacts, CallRef, SettleReply
from brainq.contracts.message import Message
from brainq.contracts.outcome import ToolOutcome
from brainq.contracts.progress import Progress
from brainq.contracts.status import TraceStatus
from brainq.contracts.trace import ToolTraceEntry


class Calls(Protocol):
    """Call state; every write of a runner is fenced by owner and attempt. Fitted by `state.calls.RedisCalls`.

    start      the last look before the function of a call that changes something: `OK`, `CLOSED` or `LOST`
    settle     with it the call leaves its lanes, unless its function `still_runs`: then with the one that says it ended
    park       `PARKED`, `SETTLED` (the outside result was there before), `LATE` or `LOST`
    tell_progress   tells readers how far it is; `number` counts what this attempt has told
    give_token   notes that the call gives a token away: that one, or the one an earlier attempt gave. Returns it
    fence_unstarted   whether an attempt whose worker is gone surely never started; from now on it cannot
    facts      (status, tool, effect, attempt, idempotent, step, client_arguments), or None when Redis no longer
               knows the call
    """

    def claim(self, ref: CallRef, attempt: int, owner: str) -> CallClaim | CallDropped: ...
    def start(self, claim: CallClaim) -> str: ...
    def beat(self, claim: CallClaim) -> Literal["OK", "CLOSED", "LOST"]: ...
    def tell_progress(self, claim: CallClaim, number: int, progress: Progress) -> None: ...
    def give_token(self, claim: CallClaim, token: str) -> str: ...
    def settle(
        self,
        claim: CallClaim,
        *,
        status: TraceStatus,
        message: Message,
        detail: str,
        latency_ms: int,
        retryable: bool = ...,
        sources: Sequence[Mapping[str, str]] = ...,
        block_tool: bool = ...,
        notice: Message | None = ...,
        changes: Sequence[Mapping[str, str]] = ...,
        still_runs: bool = ...,
    ) -> SettleReply: ...
    def park(
        self,
        claim: CallClaim,
        *,
        park: Literal["outside", "child"],
        token: str,
        timeout_s: float,
        sources: Sequence[Mapping[str, str]] = ...,
        block_tool: bool = ...,
        changes: Sequence[Mapping[str, str]] = ...,
    ) -> SettleReply: ...
    def rung_again_ms(self, ref: CallRef) -> int | None: ...
    def facts(self, ref: CallRef) -> CallFacts | None: ...
    def traceparent(self, ref: CallRef) -> str | None: ...
    def arguments(self, ref: CallRef) -> dict[str, Any]: ...
    def trace(self, session_id: str, turn_id: str) -> tuple[ToolTraceEntry, ...]: ...
    def fence_unstarted(self, ref: CallRef, attempt: int) -> bool: ...
    def ask_again(self, ref: CallRef, attempt: int) -> Literal["AGAIN", "ALIVE", "GONE"]: ...
    def give_up(
        self,
        ref: CallRef,
        attempt: int,
        *,
        status: TraceStatus,
        message: Message,
        detail: str,
        retryable: bool = ...,
        outcome: ToolOutcome | None = ...,
    ) -> SettleReply: ...
    def expire(self, session_id: str, turn_id: str) -> tuple[Literal["EXPIRED", "CANCEL", "NONE"], str]: ...
