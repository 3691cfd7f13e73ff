"""Tenants take turns in the tools' queues; what waits there is counted, and told when a call is lost."""

from __future__ import annotations

from brainq import ScriptedProvider
from brainq.adapters.celery.names import LOCAL_WRITE_QUEUE, TURNS_QUEUE, queue_key
from brainq.client.handle import TurnHandle
from brainq.contracts.claim import CallRef
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.contracts.status import Ending
from brainq.engine.models.scripted import calls, says
from tests.integration.fleet.test_fleet import depths
from tests.support.people import Pumps, brain_of
from tests.support.pump import Pump

IN_LIST = 2  # doorbells of writes that may lie in the list while others wait for a place
FLOOD = 12


def writes_once(request: ModelRequest) -> ModelReply:
    return calls(("write", {"name": "n"})) if request.step == 1 else says("done")


def flooded(pumps: Pumps) -> tuple[Pump, list[TurnHandle], TurnHandle]:
    """Turns of tenant `a` have each asked for a write, and then one of `b`: no worker has looked yet."""
    pump = pumps(brain_of(ScriptedProvider(rules=writes_once), approval=False))
    flood = [pump.submit(f"a:{number:02}", "go") for number in range(FLOOD)]
    other = pump.submit("b:1", "go")
    pump.drain(TURNS_QUEUE)
    return pump, flood, other


def test_a_tenants_call_does_not_wait_behind_all_of_anothers(pumps: Pumps) -> None:
    pump, flood, other = flooded(pumps)
    assert depths(pump.client.fleet()) == {LOCAL_WRITE_QUEUE: FLOOD + 1}
    assert pump.wiring.state.redis.llen(queue_key(pump.settings, LOCAL_WRITE_QUEUE)) == IN_LIST
    order: list[str] = []
    while bell := pump.take(LOCAL_WRITE_QUEUE):
        order.append(str(bell.args[0]))
        pump.answer(bell)
    assert order.index("b:1") <= IN_LIST + 1
    assert sorted(order) == sorted(handle.session_id for handle in (*flood, other))
    for handle in (*flood, other):
        assert pump.finish(handle).ending is Ending.COMPLETED
    assert not pump.wiring.state.redis.keys("*{local_write}*")


def test_doorbells_that_are_lost_keep_nobody_who_waits(pumps: Pumps) -> None:
    pump, flood, other = flooded(pumps)
    pump.wiring.state.redis.delete(queue_key(pump.settings, LOCAL_WRITE_QUEUE))
    for handle in (other, *flood):
        assert pump.finish(handle).ending is Ending.COMPLETED
    assert not pump.wiring.state.redis.keys("*{local_write}*")


def test_a_call_that_waited_and_was_rung_for_once_is_not_said_to_be_rung_for_again(pumps: Pumps) -> None:
    pump, flood, _ = flooded(pumps)
    last = CallRef(flood[-1].session_id, flood[-1].turn_id, "c1-0")
    while bell := pump.take(LOCAL_WRITE_QUEUE):
        if bell.args[1] == last.turn_id:
            break
        pump.answer(bell)
    assert pump.wiring.state.calls.rung_again_ms(last) is None
