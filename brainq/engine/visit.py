"""Visits: what one thread does for one queue message, and the work that it continues with.

The script that commits a step, settles a call or ends a turn may give what it opens to the thread that runs it, instead
of ringing for it. That needs a process that serves the pool of that work and has a free thread for it, a queue in which
nobody waits, and a visit that is still young.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Generator, Iterable
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Self

from brainq.contracts.claim import CallClaim, Opened, StayOffer, TurnClaim
from brainq.contracts.status import Effect
from brainq.runtime.processes.pool_threads import PoolThreads

if TYPE_CHECKING:
    from brainq.adapters.redis.listener import RedisStopSignals

VISIT_S = 1.0  # an older visit takes no further work: whoever waits comes first
POOL_OF = {"turns": "coordinator", "finalize": "finalizer"} | {
    effect.value: "parallel" if effect.is_read else "serial" for effect in Effect
}
"""The pool of each queue, by the queue's name in scripts."""
AFTER_CALLS = (*(effect.value for effect in Effect), "turns")
"""The queues of what a step's commit or a settled call may open."""
AFTER_END = ("finalize",)
"""The queue of what the end of a turn opens."""


def served_queues(pools: Collection[str], effects: Collection[Effect]) -> frozenset[str]:
    """Return the queues, by their names in scripts, of a process that serves these pools and effects."""
    unserved = {effect.value for effect in Effect if effect not in effects}
    return frozenset(queue for queue, pool in POOL_OF.items() if pool in pools and queue not in unserved)


def may_continue(now: float, until: float, *, draining: bool) -> bool:
    """Return whether a visit may take further work. Pure. `now` and `until`, its last moment, are monotonic times."""
    return now < until and not draining


def pool_of(claim: Opened) -> str:
    """Return the pool that does this work."""
    if isinstance(claim, CallClaim):
        return POOL_OF[claim.effect.value]
    return "coordinator" if isinstance(claim, TurnClaim) else "finalizer"


class Offering:
    """An offer to a script, or none. Leaving the context gives back the threads that the script did not use."""

    offer: StayOffer | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def take(self, opened: Opened | None) -> None:
        """Continue with what the script opened and claimed for this thread, if anything."""


class Visit:
    """A visit that takes no further work."""

    def begin(self, claim: Opened) -> None:
        """Note the work that the thread claimed by its message."""

    def offering(self, queues: Iterable[str]) -> Offering:
        """Return a context in which a script may give this thread what it opens in one of these queues."""
        return NO_OFFERING

    def watch(
        self, stops: RedisStopSignals, session_id: str, turn_id: str, callback: Callable[[str], None]
    ) -> AbstractContextManager[None]:
        """Call `callback` when a stop of the turn is published, as `stops.watch` does."""
        return stops.watch(session_id, turn_id, callback)


NO_OFFERING = Offering()
NO_VISIT = Visit()


class LongVisit(Visit):
    """A visit that continues with what its work opens.

    threads     the threads of the process, of which this one counts to the pool of its work
    queues      the queues whose work it may take
    until       when it takes no further work, in monotonic time
    next_owner  makes the name of the owner of the next claim
    """

    def __init__(
        self, threads: PoolThreads, queues: Collection[str], until: float, next_owner: Callable[[], str]
    ) -> None:
        self.threads = threads
        self.until = until
        self.is_over = False
        self._queues = queues
        self._next_owner = next_owner
        self._pool = self._counted = ""  # of the message, and of its present work
        self._next: Opened | None = None
        self._stop = ""
        self._on_stop: Callable[[str], None] | None = None
        self._watching: ExitStack | None = None

    def begin(self, claim: Opened) -> None:
        self._pool = self._pool or pool_of(claim)
        self._counted = self._counted or self._pool

    def offering(self, queues: Iterable[str]) -> Offering:
        if not may_continue(time.monotonic(), self.until, draining=self.threads.draining):
            return NO_OFFERING
        ready, offered = {self._counted}, list[str]()
        for queue in queues:
            pool = POOL_OF[queue]
            if queue not in self._queues or pool in self.threads.paused:
                continue
            if pool in ready or self.threads.try_take(pool):
                ready.add(pool)
                offered.append(queue)
        ready.discard(self._counted)
        return _ThreadOffering(self, StayOffer(tuple(offered), self._next_owner()), ready) if offered else NO_OFFERING

    def continue_with(self, opened: Opened) -> None:
        """Continue with this claim. The thread, which was taken of its pool, counts to that from now on."""
        pool = pool_of(opened)
        if pool != self._counted:
            self.threads.give_back(self._counted)
            self._counted = pool
        self._next = opened

    def take_next(self) -> Opened | None:
        """Return what the thread continues with, once, or None if its work is over."""
        opened, self._next = self._next, None
        return None if self.is_over else opened

    def end(self) -> None:
        """Count the thread to the pool of the message again, whose end gives it back. Idempotent."""
        if self.is_over:
            return
        self.is_over = True
        if self._watching is not None:
            self._watching.close()
        if self._counted != self._pool:
            self.threads.move(self._counted, self._pool)

    @contextmanager
    def watch(
        self, stops: RedisStopSignals, session_id: str, turn_id: str, callback: Callable[[str], None]
    ) -> Generator[None]:
        """Watch the stops of the turn without a gap between one work and the next."""
        if self._watching is None:
            self._watching = ExitStack()
            self._watching.enter_context(stops.watch(session_id, turn_id, self._note_stop))
        self._on_stop = callback
        if self._stop:
            callback(self._stop)
        try:
            yield
        finally:
            self._on_stop = None

    def _note_stop(self, word: str) -> None:
        self._stop = word
        if (callback := self._on_stop) is not None:
            callback(word)


class _ThreadOffering(Offering):
    """`pools`: a thread of each was taken for what the script may open."""

    def __init__(self, visit: LongVisit, offer: StayOffer, pools: set[str]) -> None:
        self.offer = offer
        self._visit = visit
        self._pools = pools

    def take(self, opened: Opened | None) -> None:
        if opened is not None:
            self._pools.discard(pool_of(opened))
            self._visit.continue_with(opened)

    def __exit__(self, *_: object) -> None:
        for pool in self._pools:
            self._visit.threads.give_back(pool)
