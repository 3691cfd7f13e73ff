"""Retries while Redis or SQL is unavailable: an owner repeats its work under its lease.

The owner of a turn retries until the turn's deadline. Scripts that are `patient` (`adapters.redis.scripts`) are retried
as long as a lease holds. Scripts and statements are written so that a repetition changes nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from brainq.contracts.view import TurnView
from brainq.errors import Unreachable
from brainq.runtime.observe.logs import logger

T = TypeVar("T")
log = logger("brainq.runtime.outage")

FIRST_S = 0.05
LONGEST_S = 1.0
OWNERSHIP_GRACE_S = 2.0  # A turn's owner keeps it for this long after the turn's deadline.


def never_unavailable(failure: Exception) -> bool:
    """Return False, if nothing is to be retried."""
    return False


@dataclass(frozen=True, slots=True)
class OutagePolicy:
    """A factory of the `OutageRetry` of each turn.

    is_unavailable   returns whether a failure means that Redis or SQL cannot be reached, or accepts no commands now
    """

    is_unavailable: Callable[[Exception], bool] = never_unavailable
    pause: Callable[[float], None] = time.sleep

    def for_turn(self, view: TurnView) -> OutageRetry:
        """Return the retry of a turn. Call it as soon as `view` was read, because the deadline counts from then."""
        ends_at = time.monotonic() + max(0, view.remaining_ms) / 1000 + OWNERSHIP_GRACE_S
        return OutageRetry({"turn_id": view.request.turn_id}, self.is_unavailable, ends_at, self.pause)


NO_WAITING = OutagePolicy()
"""A policy without retries."""


@dataclass(frozen=True, slots=True)
class OutageRetry:
    """A retry of work that needs Redis or SQL, for the time that they are unavailable.

    work      the subject of the work, for the log
    ends_at   the end of all retries, by time.monotonic()
    lasts_s   the longest time for each piece of work; the earlier end counts
    """

    work: Mapping[str, str]
    is_unavailable: Callable[[Exception], bool]
    ends_at: float = math.inf
    pause: Callable[[float], None] = time.sleep
    lasts_s: float = math.inf

    def __call__(self, work: Callable[[], T]) -> T:
        """Return the result of `work`. Raises its last error once the time is over, and any other error at once.

        It does not check whether the turn is lost meanwhile: the fence shows that once Redis is back.
        """
        began_at = time.monotonic()
        try:
            return work()
        except Exception as failure:
            return self.resume(work, failure, began_at)

    def resume(self, work: Callable[[], T], failure: Exception, began_at: float) -> T:
        """Repeat `work` after a first try, which began at `began_at` by time.monotonic() and ended with `failure`."""
        ends_at = min(self.ends_at, began_at + self.lasts_s)
        wait_s = FIRST_S
        while self.is_unavailable(failure) and time.monotonic() + wait_s < ends_at:
            if wait_s == FIRST_S:
                # brainq's own errors name what is missing and the remedy; the text of a driver's error may quote
                # content.
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
"""A retry that tries only once."""
