"""Visits: what one thread does for one queue message, and the work that it continues with.

The script that commits a step, settles a call or ends a turn may give what it opens to the thread that runs it, instead
of ringing for it. That needs a process that serves the pool of that work and has a free thread for it, and a visit that
is still young. And nobody may wait longer: as many further threads of the pool must be free here as messages wait in
its queues, and no tenant may wait for its turn to put one there. Then each of those messages has a thread as well, and
none of them is served later because this thread continues.

Among the messages of one tenant the rule is the same. A step of a turn that was accepted earlier does not come before
a message of the same tenant that has waited longer: queues serve messages in the order in which they were sent, and
whose they are is only known for those that wait for their tenant's turn.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Self

from brainq.contracts.claim import CallClaim, Opened, StayOffer, TurnClaim
from brainq.contracts.status import Effect
from brainq.runtime.observe.metrics import catalogue as m
from brainq.runtime.observe.metrics.counters import COUNTERS
from brainq.runtime.processes.pool_threads import PoolThreads

if TYPE_CHECKING:
    from brainq.adapters.redis.listener import RedisStopSignals

VISIT_S = 1.0  # an older visit takes no further work: whoever waits comes first
MOST_WAITING = 16  # messages that wait; if more wait, this process lacks time and not threads
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


def why_over(now: float, until: float, *, draining: bool) -> str:
    """Return why a visit may take no further work, or "". Pure. `now` and `until`, its last moment, are monotonic."""
    return "draining" if draining else "old" if now >= until else ""


def offered_words(queues: Iterable[str], left: Mapping[str, int], paused: Collection[str]) -> tuple[str, ...]:
    """Return the words of an offer (see StayOffer). Pure. `left` are the threads that remain free in each pool."""
    words = list[str]()
    for queue in queues:
        pool = POOL_OF[queue]
        why = "paused" if pool in paused else "full"
        words.append(f"{queue}:{min(left[pool], MOST_WAITING) if pool in left else why}")
    return tuple(words)


def pool_of(claim: Opened) -> str:
    """Return the pool that does this work."""
    if isinstance(claim, CallClaim):
        return POOL_OF[claim.effect.value]
    return "coordinator" if isinstance(claim, TurnClaim) else "finalizer"


class Offering:
    """An offer to a script. Leaving the context gives back the threads that the script did not use.

    offer   None if the thread can take no further work now
    pools   a thread of each was taken for what the script may open
    """

    def __init__(self, visit: Visit, offer: StayOffer | None = None, pools: Collection[str] = ()) -> None:
        self.offer = offer
        self._visit = visit
        self._unused = set(pools)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pool in self._unused:
            self._visit.threads.give_back(pool)

    def take(self, opened: Opened | None) -> None:
        """Continue with what the script opened and claimed for this thread, if anything."""
        if opened is not None:
            self._unused.discard(pool_of(opened))
            self._visit.continue_with(opened)


class Visit:
    """A visit that continues with what its work opens. It is also the context in which its work watches for stops.

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
        self._watching: AbstractContextManager[None] | None = None

    def begin(self, claim: Opened) -> None:
        """Note the work that the thread claimed by its message."""
        self._pool = self._pool or pool_of(claim)
        self._counted = self._counted or self._pool

    def offering(self, queues: Iterable[str]) -> Offering:
        """Return a context in which a script may give this thread what it opens in one of these queues."""
        threads = self.threads
        if why := why_over(time.monotonic(), self.until, draining=threads.draining):
            COUNTERS.add(m.DECLINED, why)
            return Offering(self)
        served, paused = [queue for queue in queues if queue in self._queues], threads.paused
        left = threads.take_each({POOL_OF[queue] for queue in served}.difference(paused), self._counted)
        if not left:
            for why in {word.partition(":")[2] for word in offered_words(served, left, paused)} or {"unserved"}:
                COUNTERS.add(m.DECLINED, why)
            return Offering(self)
        offer = StayOffer(offered_words(served, left, paused), self._next_owner())
        return Offering(self, offer, left.keys() - {self._counted})

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
            self._watching.__exit__(None, None, None)
        if self._counted != self._pool:
            self.threads.move(self._counted, self._pool)

    def watch(self, stops: RedisStopSignals, session_id: str, turn_id: str, callback: Callable[[str], None]) -> Self:
        """Call `callback` when a stop of the turn is published, until the context is left.

        Between one work and the next the watch goes on, so that no stop is missed.
        """
        if self._watching is None:
            self._watching = stops.watch(session_id, turn_id, self._note_stop)
            self._watching.__enter__()
        self._on_stop = callback
        if self._stop:
            callback(self._stop)
        return self

    def __enter__(self) -> None:
        return

    def __exit__(self, *_: object) -> None:
        self._on_stop = None

    def _note_stop(self, word: str) -> None:
        self._stop = word
        if (callback := self._on_stop) is not None:
            callback(word)
