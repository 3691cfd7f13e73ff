"""Messages by others than brainq: whoever can push to the broker's lists gets no more than a producer may have."""

from __future__ import annotations

from typing import Any

import pytest

from brainq.adapters.celery import names
from brainq.contracts.ids import child_turn_id
from brainq.contracts.rows import TurnRow
from brainq.contracts.status import Effect
from brainq.engine.models.scripted import calls, says
from brainq.engine.people.bounced_inputs import bounced_turn_id
from brainq.workers.tasks.register import submit_foreign
from tests.support.people import Pumps, Watched, brain_of, statuses, take_call
from tests.support.pump import Bell, Pump


def test_a_doorbell_of_a_write_in_the_queue_of_the_reads_starts_nothing(pumps: Pumps) -> None:
    ran: list[str] = []
    brain = brain_of(Watched(calls(("write", {"name": "b"})), says("done")), ran)
    serial, parallel = pumps(brain), pumps(brain, serves=(Effect.READ_ONLY,))
    handle = serial.submit("s1", "Go.")
    serial.drain(names.TURNS_QUEUE)
    bell = take_call(serial)
    assert bell.queue == names.LOCAL_WRITE_QUEUE
    forged = Bell(names.READ_ONLY_QUEUE, bell.task, bell.task_id, bell.args)
    assert parallel.answer(forged) == "dropped: unserved"
    assert (ran, statuses(serial, handle)) == ([], {"c1-0": "dispatched"})
    serial.answer(bell)
    serial.finish(handle)
    assert ran == ["write b"]


def test_each_pool_claims_the_effects_of_its_own_queues() -> None:
    assert names.effects_of_queues(names.PARALLEL_QUEUES) == {Effect.READ_ONLY}
    assert names.effects_of_queues(names.SERIAL_QUEUES) == set(Effect) - {Effect.READ_ONLY}
    assert names.effects_of_queues((names.NETWORK_QUEUE,)) == {Effect.NETWORK}
    assert names.effects_of_queues(names.COORDINATOR_QUEUES + names.FINALIZER_QUEUES) == set()


def refused(pump: Pump, fields: dict[str, Any]) -> TurnRow:
    """The row of a foreign submit that is refused."""
    before = {row.turn_id for row in pump.wiring.store.turns.list()}
    assert submit_foreign(pump.wiring, (), fields) == "rejected"
    (row,) = [row for row in pump.wiring.store.turns.list() if row.turn_id not in before]
    assert row.state == "rejected"
    return row


def test_a_forged_parent_puts_nothing_into_a_call_and_charges_nobody(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(calls(("write", {"name": "b"})), says("done"), later="bad news")))
    victim = pump.submit("s1", "Go.")
    pump.drain(names.TURNS_QUEUE)
    parent = {"session_id": "s1", "turn_id": victim.turn_id, "call_id": "c1-0"}
    forged = {"turn_id": "forged-1", "session_id": "s2", "user_message": "x", "parent": parent}
    assert (refused(pump, forged).reject_reason or "").startswith("parent: ")
    result = pump.finish(victim)
    assert (result.text, [spend.kind for spend in result.spends]) == ("done", ["step", "step"])


@pytest.mark.parametrize("field", ["turn_id", "request_key"])
def test_the_id_of_a_turn_that_input_will_become_cannot_be_taken(pumps: Pumps, field: str) -> None:
    pump = pumps(brain_of(Watched(says("done"))))
    over = pump.submit("s1", "Go.")
    pump.finish(over)
    derived = bounced_turn_id("s1", "m1")
    forged = {"turn_id": "forged-1", "session_id": "s2", "user_message": "x", field: derived}
    row = refused(pump, forged)
    assert (row.reject_reason or "").startswith(f"{field}: ")
    assert derived not in (row.turn_id, row.request_key)
    receipt = over.steer("And then?", client_message_id="m1")
    assert (receipt.state, receipt.bounced_turn_id) == ("bounced", derived)
    assert pump.finish(pump.client.handle(derived)).text == "later"


@pytest.mark.parametrize("field", ["turn_id", "request_key"])
def test_the_id_of_a_child_turn_cannot_be_taken(pumps: Pumps, field: str) -> None:
    pump = pumps(brain_of(Watched(says("done"))))
    derived = child_turn_id("01k7x2", "c1-0")
    forged = {"turn_id": "forged-1", "session_id": "s2", "user_message": "x", field: derived}
    row = refused(pump, forged)
    assert (row.reject_reason or "").startswith(f"{field}: ")
    assert derived not in (row.turn_id, row.request_key)
