"""A thread continues with what its work has opened: the same as is done by doorbells, without them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from brainq.client.handle import TurnHandle
from brainq.runtime.observe.metrics.counters import Counters
from tests.support.brains.obedient import script
from tests.support.counted import counted
from tests.support.pump import Pump

__all__ = ["counted"]

Pumps = Callable[..., Pump]
THREADS = {"coordinator": 4, "parallel": 4, "serial": 1, "finalizer": 4}
MESSAGE = script([("read", {"name": "a"}), ("read", {"name": "b"})], [("note", {"text": "x"})])


def answered(pump: Pump) -> list[tuple[str, Any]]:
    """What was done, whether a doorbell was rung for it or not."""
    return [(bell.queue, bell.args[2:]) for bell, _ in pump.bells]


def answer_all(pump: Pump) -> int:
    """Return how many doorbells it took."""
    count = 0
    while bell := pump.take():
        pump.answer(bell)
        count += 1
    return count


def events(handle: TurnHandle) -> list[str]:
    return [event.kind for event in handle.events(timeout_s=1)]


def free(pump: Pump) -> dict[str, int]:
    threads: Any = pump.threads
    return dict(threads._free)


def test_one_doorbell_is_enough_for_a_turn_without_side_by_side_calls(pumps: Pumps) -> None:
    pump = pumps(threads=THREADS)
    handle = pump.submit("s1", script([("read", {"name": "a"})]))
    assert answer_all(pump) == 1
    assert handle.result(timeout_s=1).ending == "completed"
    assert [queue for queue, _ in answered(pump)][:3] == ["brainq.turns", "brainq.tools.read_only", "brainq.turns"]


def test_the_same_is_done_and_published_as_by_doorbells(pumps: Pumps) -> None:
    staying, ringing = pumps(threads=THREADS, prefix="st:"), pumps(prefix="rg:")
    ends = [(pump.submit(f"s{at}", MESSAGE), answer_all(pump)) for at, pump in enumerate((staying, ringing))]
    (first, few), (second, many) = ends
    assert few == 2
    assert many > few
    assert sorted(events(first)) == sorted(events(second))
    assert first.result(timeout_s=1).text == second.result(timeout_s=1).text
    assert sorted(map(str, answered(staying))) == sorted(map(str, answered(ringing)))


def test_a_write_that_a_thread_continues_with_has_its_intent_first(pumps: Pumps) -> None:
    pump = pumps(threads=THREADS)
    intents = list[Any]()
    calls, start = pump.wiring.store.calls, pump.wiring.store.calls.start

    def noted(*given: Any, **named: Any) -> Any:
        intents.append((named, trace(pump, handle)))
        return start(*given, **named)

    calls.__dict__["start"] = noted
    handle = pump.submit("s1", script([("write", {"name": "c"})]))
    assert answer_all(pump) == 1
    ((intent, before),) = intents
    assert intent["call_id"] == "c1-0"
    assert before["c1-0:status"] == "running"
    assert before["c1-0:owner"] == intent["owner"] == "v1@pump"
    assert [(row.call_id, row.state) for row in calls.of_turn(handle.turn_id)] == [("c1-0", "done")]


def test_offers_that_scripts_decline_are_counted_by_reason(pumps: Pumps, counted: Counters) -> None:
    pump = pumps(threads={"coordinator": 1, "serial": 1})
    assert pump.threads.try_take("serial")
    pump.submit("s1", script([("read", {"name": "a"})]))
    pump.submit("s2", script([("write", {"name": "c"})]))
    assert pump.drain("brainq.turns") == 2
    assert declined(counted) == {"unserved": 1, "full": 1}


def declined(counted: Counters) -> dict[str, float]:
    return {cell[1]: count for cell, count in counted.totals().items() if cell[0] == "brainq_offers_declined"}


def trace(pump: Pump, handle: TurnHandle) -> dict[str, str]:
    state: Any = pump.wiring.state
    return state.redis.hgetall(state.keys.turn(handle.session_id, handle.turn_id) + ":trace")


def test_every_thread_is_given_back(pumps: Pumps) -> None:
    pump = pumps(threads=THREADS)
    pump.submit("s1", MESSAGE)
    bell = pump.take()
    assert bell is not None
    assert pump.threads.try_take("coordinator")  # as the consumer does for a message
    pump.answer(bell)
    pump.threads.give_back("coordinator")  # by the message's end
    assert free(pump) == THREADS


def test_a_process_that_stops_rings_for_what_it_opens(pumps: Pumps) -> None:
    pump = pumps(threads=THREADS)
    pump.submit("s1", script([("read", {"name": "a"})]))
    bell = pump.take()
    assert bell is not None
    pump.threads.draining = True
    pump.answer(bell)
    assert [bell.queue for bell in pump.waiting()] == ["brainq.tools.read_only"]


@pytest.mark.parametrize("given", [{"threads": {"coordinator": 4}}, {"threads": THREADS, "stay": False}])
def test_it_is_off_in_a_process_of_one_pool_and_by_a_setting(pumps: Pumps, given: dict[str, Any]) -> None:
    pump = pumps(**given)
    pump.submit("s1", script([("read", {"name": "a"})]))
    assert pump.drain("brainq.turns") == 1
    assert [bell.queue for bell in pump.waiting()] == ["brainq.tools.read_only"]


def test_a_pool_that_the_process_lacks_is_rung_for(pumps: Pumps) -> None:
    pump = pumps(threads={"coordinator": 4, "finalizer": 4})
    handle = pump.submit("s1", script([("read", {"name": "a"})]))
    assert pump.drain("brainq.turns") == 1
    assert pump.drain("brainq.tools.read_only") == 1
    pump.drain()
    assert handle.result(timeout_s=1).ending == "completed"
