"""The visits of a process, over machines that stand in: when a thread continues, and what becomes of its threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from brainq.app.wiring.visits import Visits
from brainq.contracts.claim import CallClaim, Opened, TurnClaim
from brainq.contracts.status import Effect
from brainq.engine.visit import AFTER_CALLS, Visit
from brainq.runtime.observe.metrics.counters import Counters
from brainq.runtime.observe.work_events import WorkEvents
from brainq.runtime.processes.pool_threads import PoolThreads
from tests.support.counted import counted
from tests.support.stand_in import stand_in

__all__ = ["counted"]

TURN = TurnClaim("s1", "t01", "w1", 1, 0)
POOLS = ("coordinator", "parallel", "serial", "finalizer")
Leave = Callable[[Callable[[], str]], None]


def call(effect: Effect = Effect.READ_ONLY) -> CallClaim:
    return CallClaim("s1", "t01", "c1-0", 1, "v1@w1", "tool", effect, 1, {}, "h", 1000, 1000)


class Machines(WorkEvents):
    """A wiring whose coordinator opens `opens` one after the other, and what was seen of that."""

    owner = "w1"
    serves = frozenset(Effect)

    def __init__(self, *opens: Opened, **settings: Any) -> None:
        self.settings = SimpleNamespace(**{"stay": True, "doorbell": "transactional"} | settings)
        self.coordinator = self.runner = self
        self.opens = list(opens)
        self.offers: list[tuple[str, Sequence[str]] | None] = []
        self.seen: list[str] = []
        self.leaves: list[Leave | None] = []
        self.fails = False
        self.cuts_off = False

    def advance(self, session_id: str, turn_id: str, fence: int, visit: Visit | None = None) -> str:
        if visit is None:
            return "alone"
        visit.begin(TURN)
        return self._open(visit)

    def run_claimed(self, claim: CallClaim, leave: Leave | None, visit: Visit) -> str:
        self.seen.append(f"ran {claim.effect}")
        if self.fails:
            raise RuntimeError("it fails")
        if self.cuts_off and leave is not None:
            leave(lambda: "cut off")
            return "late"
        return self._open(visit)

    def _open(self, visit: Visit) -> str:
        with visit.offering(AFTER_CALLS) as offering:
            offer = offering.offer
            self.offers.append((offer.owner, offer.queues) if offer else None)
            if self.opens:
                offering.take(self.opens.pop(0))
        return "did"

    def began(self, claim: Opened) -> None:
        self.seen.append("began")

    def ended(self, claim: Opened, did: str, took_s: float) -> None:
        self.seen.append(f"ended {did}")


def handled(machines: Machines, threads: PoolThreads, **given: Any) -> str:
    """Handle a turn's message as the consumer does, which takes a thread of the pool and gives it back."""
    visits = Visits(stand_in(machines), threads, **given)
    assert threads.try_take("coordinator")
    try:
        return visits.advance("s1", "t01", 0, machines, lambda settle: machines.seen.append(settle()))
    finally:
        threads.give_back("coordinator")


def free(threads: PoolThreads) -> set[int]:
    return {threads.free(pool) for pool in POOLS}


@pytest.fixture
def threads() -> PoolThreads:
    return PoolThreads(dict.fromkeys(POOLS, 1))


def test_a_thread_continues_with_one_work_after_the_other(threads: PoolThreads) -> None:
    machines = Machines(call(), call(Effect.NETWORK))
    assert handled(machines, threads) == "did"
    assert machines.seen == ["began", "ran read_only", "ended did", "began", "ran network", "ended did"]
    assert free(threads) == {1}


def test_each_claim_names_the_process_by_which_its_death_is_noticed(threads: PoolThreads) -> None:
    machines = Machines(call())
    handled(machines, threads)
    assert [offer[0] for offer in machines.offers if offer] == ["v1@w1", "v2@w1"]


def test_a_failure_of_continued_work_keeps_no_thread(threads: PoolThreads) -> None:
    machines = Machines(call(Effect.NETWORK))
    machines.fails = True
    with pytest.raises(RuntimeError):
        handled(machines, threads)
    assert machines.seen == ["began", "ran network", "ended failed"]
    assert free(threads) == {1}


def test_a_function_that_keeps_its_thread_ends_the_visit_in_another(threads: PoolThreads) -> None:
    machines = Machines(call())
    machines.cuts_off = True
    handled(machines, threads)
    assert machines.seen == ["began", "ran read_only", "ended cut off", "did"]
    assert free(threads) == {1}


@pytest.mark.parametrize("settings", [{"stay": False}, {"doorbell": "outbox"}])
def test_it_is_off_by_a_setting_and_without_queues_to_look_at(threads: PoolThreads, settings: dict[str, Any]) -> None:
    assert handled(Machines(call(), **settings), threads) == "alone"


def test_it_is_off_in_a_process_of_one_pool() -> None:
    assert handled(Machines(call()), PoolThreads({"coordinator": 2})) == "alone"


@pytest.mark.parametrize("why", ["old", "draining", "full", "paused"])
def test_offers_that_are_not_made_are_counted(counted: Counters, why: str) -> None:
    threads = PoolThreads({"coordinator": 1, "parallel": 1, "serial": 1})
    machines = Machines()
    machines.serves = frozenset({Effect.READ_ONLY, Effect.NETWORK})
    threads.draining = why == "draining"
    threads.paused = POOLS if why == "paused" else ()
    for pool in POOLS if why == "full" else ():
        threads.try_take(pool)
    visits = Visits(stand_in(machines), threads, visit_s=0.0 if why == "old" else 60.0)
    with visits._begin().offering(("read_only", "network")) as offering:  # pyright: ignore[reportPrivateUsage]
        assert offering.offer is None
    assert counted.totals() == {("brainq_offers_declined", why): 1}
