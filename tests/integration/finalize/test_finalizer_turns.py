"""Tenants take turns in the finalizer: a result does not wait behind all that another tenant's turns are to do."""

from __future__ import annotations

from brainq.adapters.celery.names import FINALIZE_QUEUE, TURNS_QUEUE, queue_key
from brainq.client.handle import TurnHandle
from brainq.contracts.status import Ending
from brainq.engine.models.scripted import says
from tests.integration.fleet.test_fleet import depths
from tests.support.people import Pumps, Watched, brain_of
from tests.support.pump import Pump

IN_LIST = 8  # doorbells that may lie in the list while others wait for a place
FLOOD = 30


def flooded(pumps: Pumps) -> tuple[Pump, list[TurnHandle], TurnHandle]:
    """Turns of tenant `a` have ended, and then one of `b`: no finalizer has looked yet."""
    pump = pumps(brain_of(Watched(says("done"))))
    flood = [pump.submit(f"a:{number}", "go") for number in range(FLOOD)]
    other = pump.submit("b:1", "go")
    pump.drain(TURNS_QUEUE)
    return pump, flood, other


def test_a_tenants_result_does_not_wait_behind_all_of_anothers(pumps: Pumps) -> None:
    pump, flood, other = flooded(pumps)
    assert depths(pump.client.fleet()) == {FINALIZE_QUEUE: FLOOD + 1}
    assert pump.wiring.state.redis.llen(queue_key(pump.settings, FINALIZE_QUEUE)) == IN_LIST
    order: list[str] = []
    while bell := pump.take(FINALIZE_QUEUE):
        order.append(str(bell.args[0]))
        pump.answer(bell)
    assert IN_LIST < order.index("b:1") + 1 <= IN_LIST + 2
    assert len(set(order[: FLOOD + 1])) == FLOOD + 1, "each turn has been rung for once before its result"
    for handle in (*flood, other):
        assert handle.result(timeout_s=1).ending is Ending.COMPLETED
    assert not pump.wiring.state.redis.keys("*{finalize}*")


def test_doorbells_that_are_lost_keep_nobody_who_waits(pumps: Pumps) -> None:
    pump, flood, other = flooded(pumps)
    pump.wiring.state.redis.delete(queue_key(pump.settings, FINALIZE_QUEUE))
    for handle in (other, *flood):
        assert pump.finish(handle).ending is Ending.COMPLETED
    assert not pump.wiring.state.redis.keys("*{finalize}*")
