"""Lanes in Redis, where they are not a part of the scripts that open waves and settle calls."""

from __future__ import annotations

from typing import Literal, Protocol

from brainq.contracts.claim import CallRef


class Lanes(Protocol):
    """Lanes: lines of calls, one holder each. Fitted by `state.lanes.RedisLanes`.

    beat    keeps those of a function that was abandoned
    lapsed  those whose lease lapsed, and the mark to `check` them with
    check   leaves them, unless their call is queued or runs
    """

    def beat(self, ref: CallRef) -> Literal["OK", "LOST"]: ...
    def lapsed(self, most: int) -> tuple[str, list[CallRef]]: ...
    def check(self, ref: CallRef, mark: str) -> str: ...
