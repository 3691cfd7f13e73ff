"""What a machine did about a doorbell, and whether the work itself failed."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from brainq.contracts.status import Ending, TraceStatus


class Failed(StrEnum):
    """Work that was done and recorded, and failed. Its task is shown as failed by those who watch tasks."""

    CALL_FAILED = "call_failed"
    CALL_TIMED_OUT = "call_timed_out"
    CALL_UNKNOWN = "call_unknown"
    CALL_LOST = "call_lost"
    TURN_FAILED = "turn_failed"
    TURN_TIMED_OUT = "turn_timed_out"
    STEP_FAILED = "step_failed"
    JUDGE_FAILED = "judge_failed"
    SUBMIT_REJECTED = "submit_rejected"


class Did(str):
    """A word for logs and tests. `failed` and `why` (a word of ours, or the name of an error's class) say that and
    how the work failed; None and "" that it did not."""

    failed: Failed | None
    why: str

    def __new__(cls, word: str, failed: Failed | None = None, why: str = "") -> Self:
        did = super().__new__(cls, word)
        did.failed = failed
        did.why = why
        return did


OF_CALL = {
    TraceStatus.FAILED: Failed.CALL_FAILED,
    TraceStatus.TIMED_OUT: Failed.CALL_TIMED_OUT,
    TraceStatus.UNKNOWN: Failed.CALL_UNKNOWN,
}

OF_TURN = {Ending.FAILED: Failed.TURN_FAILED, Ending.TIMED_OUT: Failed.TURN_TIMED_OUT}
