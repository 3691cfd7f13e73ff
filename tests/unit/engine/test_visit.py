"""Visits: when a thread may continue, and to which pool it counts meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest

from brainq.contracts.claim import CallClaim, FinalStepClaim, TurnClaim
from brainq.contracts.status import Effect
from brainq.engine.visit import (
    AFTER_CALLS,
    AFTER_END,
    MOST_WAITING,
    Visit,
    offered_words,
    pool_of,
    served_queues,
    why_over,
)
from brainq.runtime.processes.pool_threads import PoolThreads
from tests.support.stand_in import stand_in

POOLS = ("coordinator", "parallel", "serial", "finalizer")
TURN = TurnClaim("s1", "t01", "w1", 1, 0)
FINAL = FinalStepClaim("s1", "t01", "log", "w1", 1, 1)


def call(effect: Effect = Effect.READ_ONLY) -> CallClaim:
    return CallClaim("s1", "t01", "c1-0", 1, "w1", "tool", effect, 1, {}, "h", 1000, 1000)


def visit_of(threads: PoolThreads, *, lasts_s: float = 3600.0) -> Visit:
    numbers = count(1)
    queues = served_queues(threads.pools, tuple(Effect))
    return Visit(threads, queues, time.monotonic() + lasts_s, lambda: f"v{next(numbers)}")


def free(threads: PoolThreads) -> dict[str, int]:
    found: Any = threads
    return dict(found._free)


@pytest.fixture
def threads() -> PoolThreads:
    """One of each pool; a message holds that of the coordinator."""
    threads = PoolThreads(dict.fromkeys(POOLS, 1))
    assert threads.try_take("coordinator")
    return threads


def test_an_old_visit_and_one_of_a_stopping_process_take_nothing() -> None:
    assert why_over(0.9, 1.0, draining=False) == ""
    assert why_over(1.0, 1.0, draining=False) == "old"
    assert why_over(0.9, 1.0, draining=True) == "draining"


def test_an_offer_says_of_each_queue_how_many_threads_remain_or_why_none_is_offered() -> None:
    words = offered_words(AFTER_CALLS, {"coordinator": 3, "parallel": 0}, {"serial"})
    assert words == ("read_only:0", "local_write:paused", "network:paused", "destructive:paused", "turns:3")
    assert offered_words(("network",), {}, ()) == ("network:full",)
    assert offered_words(("turns",), {"coordinator": 99}, ()) == (f"turns:{MOST_WAITING}",)


def test_a_process_serves_the_queues_of_its_pools_and_effects() -> None:
    assert served_queues({"coordinator", "serial"}, {Effect.NETWORK}) == {"turns", "network"}
    assert served_queues(POOLS, tuple(Effect)) == {*AFTER_CALLS, *AFTER_END}


def test_work_belongs_to_a_pool() -> None:
    works = (TURN, FINAL, call(), call(Effect.NETWORK))
    assert [pool_of(work) for work in works] == ["coordinator", "finalizer", "parallel", "serial"]


def test_an_offer_holds_a_thread_of_each_pool_until_the_script_has_replied(threads: PoolThreads) -> None:
    visit = visit_of(threads)
    visit.begin(TURN)
    with visit.offering(AFTER_CALLS) as offering:
        assert offering.offer is not None
        assert offering.offer.queues == tuple(f"{queue}:0" for queue in AFTER_CALLS)
        assert free(threads) == {"coordinator": 0, "parallel": 0, "serial": 0, "finalizer": 1}
    assert free(threads) == {"coordinator": 0, "parallel": 1, "serial": 1, "finalizer": 1}
    assert visit.take_next() is None


def test_each_offer_has_its_own_owner(threads: PoolThreads) -> None:
    visit = visit_of(threads)
    visit.begin(TURN)
    with visit.offering(AFTER_CALLS) as first:
        pass
    with visit.offering(AFTER_CALLS) as second:
        pass
    assert first.offer is not None
    assert second.offer is not None
    assert first.offer.owner != second.offer.owner


def test_a_pool_without_a_free_thread_is_not_offered(threads: PoolThreads) -> None:
    threads.try_take("serial")
    visit = visit_of(threads)
    visit.begin(TURN)
    with visit.offering(AFTER_CALLS) as offering:
        assert offering.offer is not None
        assert offering.offer.queues == (
            *("read_only:0", "local_write:full", "network:full", "destructive:full"),
            "turns:0",
        )
    assert free(threads)["serial"] == 0


def test_the_thread_counts_to_the_pool_of_what_it_does(threads: PoolThreads) -> None:
    """A slow call keeps no turn from starting, and the end of the message gives its own pool's thread back."""
    visit = visit_of(threads)
    visit.begin(TURN)
    with visit.offering(AFTER_CALLS) as offering:
        offering.take(call())
    assert visit.take_next() == call()
    assert visit.take_next() is None
    assert free(threads) == {"coordinator": 1, "parallel": 0, "serial": 1, "finalizer": 1}
    threads.try_take("coordinator")  # another message
    visit.end()
    visit.end()
    assert free(threads) == {"coordinator": -1, "parallel": 1, "serial": 1, "finalizer": 1}
    threads.give_back("coordinator")  # by the message's end
    assert free(threads)["coordinator"] == 0


def test_nothing_is_offered_by_an_old_visit(threads: PoolThreads) -> None:
    visit = visit_of(threads, lasts_s=0.0)
    visit.begin(TURN)
    with visit.offering(AFTER_CALLS) as offering:
        assert offering.offer is None


def test_nothing_is_offered_by_a_process_that_stops(threads: PoolThreads) -> None:
    visit = visit_of(threads)
    visit.begin(TURN)
    threads.draining = True
    with visit.offering(AFTER_END) as offering:
        assert offering.offer is None


def test_a_pool_that_lacks_what_it_needs_is_not_offered(threads: PoolThreads) -> None:
    visit = visit_of(threads)
    visit.begin(TURN)
    threads.paused = {"serial"}
    with visit.offering(AFTER_CALLS) as offering:
        assert offering.offer is not None
        assert offering.offer.queues[:2] == ("read_only:0", "local_write:paused")


def test_a_visit_that_is_over_continues_with_nothing(threads: PoolThreads) -> None:
    visit = visit_of(threads)
    visit.begin(TURN)
    with visit.offering(AFTER_CALLS) as offering:
        offering.take(call())
    visit.end()
    assert visit.take_next() is None


class Stops:
    """Remembers who watches."""

    def __init__(self) -> None:
        self.watching: list[Callable[[str], None]] = []

    @contextmanager
    def watch(self, session_id: str, turn_id: str, callback: Callable[[str], None]) -> Generator[None]:
        self.watching.append(callback)
        yield
        self.watching.remove(callback)


def test_a_stop_between_two_works_reaches_the_second(threads: PoolThreads) -> None:
    visit, stops, heard = visit_of(threads), Stops(), list[str]()
    with visit.watch(stand_in(stops), "s1", "t01", lambda word: heard.append(f"first {word}")):
        pass
    (callback,) = stops.watching
    callback("cancelled")
    assert heard == []
    with visit.watch(stand_in(stops), "s1", "t01", lambda word: heard.append(f"second {word}")):
        assert heard == ["second cancelled"]
    visit.end()
    assert stops.watching == []
