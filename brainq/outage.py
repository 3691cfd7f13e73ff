"""Waiting out our own trouble: while Redis or SQL is away, an owner tries again what it does under its lease.

A turn's owner tries until the turn's deadline; scripts that are `patient` (`state.scripts`), for as long as a lease
holds. What is tried again changes nothing when it runs twice: scripts and statements are written so.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from brainq.contracts.view import TurnView
from brainq.errors import Unreachable
from brainq.observe.logs import logger

T = TypeVar("T")
log = logger("brainq.outage")

FIRST_S = 0.05
LONGEST_S = 1.0
OWNERSHIP_GRACE_S = 2.0  # past its deadline a turn stays its owner's for so long


def never_unavailable(failure: Exception) -> bool:
    """For a place where nothing is waited out."""
    return False


@dataclass(frozen=True, slots=True)
class OutagePolicy:
    """Makes the `OutageRetry` of one turn.

    is_unavailable   whether a failure says that Redis or SQL cannot be reached, or takes nothing now
    """

    is_unavailable: Callable[[Exception], bool] = never_unavailable
    pause: Callable[[float], None] = time.sleep

    def for_turn(self, view: TurnView) -> OutageRetry:
        """Call it as soon as `view` was read: its deadline counts from there."""
        ends_at = time.monotonic() + max(0, view.remaining_ms) / 1000 + OWNERSHIP_GRACE_S
        return OutageRetry({"turn_id": view.request.turn_id}, self.is_unavailable, ends_at, self.pause)


NO_WAITING = OutagePolicy()
"""Nothing is waited out."""


@dataclass(frozen=True, slots=True)
class OutageRetry:
    """Does things that need Redis or SQL, as often as it takes.

    work      what they belong to, for the log
    ends_at   by time.monotonic()
    lasts_s   after each of them began; whichever end comes first counts
    """

    work: Mapping[str, str]
    is_unavailable: Callable[[Exception], bool]
    ends_at: float = math.inf
    pause: Callable[[float], None] = time.sleep
    lasts_s: float = math.inf

    def __call__(self, work: Callable[[], T]) -> T:
        """What `work` returns. Raises what it raised last, once the time is over, or where it is no trouble of ours.

        It does not look whether the work is lost meanwhile: the fence says so once Redis is back.
        """
        began_at = time.monotonic()
        try:
            return work()
        except Exception as failure:
            return self.resume(work, failure, began_at)

    def resume(self, work: Callable[[], T], failure: Exception, began_at: float) -> T:
        """As a call, where `failure` is how the first try ended, which began at `began_at`, by time.monotonic()."""
        ends_at = min(self.ends_at, began_at + self.lasts_s)
        wait_s = FIRST_S
        while self.is_unavailable(failure) and time.monotonic() + wait_s < ends_at:
            if wait_s == FIRST_S:
                # Ours names what is missing and the remedy; a driver's text may quote what somebody wrote.
                why = str(failure) if isinstance(failure, Unreachable) else type(failure).__name__
                log.warning("waiting for Redis or SQL", **self.work, why=why)
            self.pause(wait_s)
            wait_s = min(2 * wait_s, LONGEST_S)
            try:
                return work()
            except Exception as again:
                failure = again
        raise failure


ONCE = OutageRetry({}, never_unavailable)
"""Nothing is tried again."""
