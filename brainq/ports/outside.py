"""Results from outside, in Redis."""

from __future__ import annotations

from typing import Protocol

from brainq.contracts.claim import CallRef, SettleReply
from brainq.contracts.message import Message
from brainq.contracts.outcome import ToolOutcome
from brainq.contracts.status import TraceStatus
from brainq.contracts.usage import Spend


class Outside(Protocol):
    """Calls that wait for a result from outside. Fitted by `state.outside.RedisOutside`.

    register   that a token of a tool's own stands for `ref`, for `keep_s` at least. True also if it does already;
               False if another call has it
    find       the call of such a token
    complete   `SETTLED`, `EARLY` (the tool has not returned yet), `LATE` (nobody waits any more), `USED`, `BAD`, `GONE`
    """

    def register(self, token: str, ref: CallRef, keep_s: float) -> bool: ...
    def find(self, token: str) -> CallRef | None: ...
    def complete(
        self,
        ref: CallRef,
        token: str,
        *,
        status: TraceStatus,
        message: Message,
        detail: str = ...,
        retryable: bool = ...,
        notice: Message | None = ...,
        spend: Spend | None = ...,
        outcome: ToolOutcome | None = ...,
    ) -> SettleReply: ...
