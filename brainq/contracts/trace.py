"""The record of one call, as `show` and the runtime state give it."""

from __future__ import annotations

from brainq.contracts.base import Wire
from brainq.contracts.effect import Effect
from brainq.contracts.status import TraceStatus


class ToolTraceEntry(Wire):
    """One call's trace. Instants are Redis time in ms; 0 means not yet.

    lane_wait_ms   how long it waited for its lanes, the last time that it did
    repairs     mends of the arguments that were tried, also of a call that was denied
    retryable   its tool, or how it ended, says that it may be tried again
    park   what a parked call waits for: approval, hold, outside, child or client; empty for any other
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
