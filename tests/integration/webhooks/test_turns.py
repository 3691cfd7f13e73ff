"""Whole turns tell webhooks: each ending once, and each approval that people are asked for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from brainq.contracts.webhook import DeliveryRow
from brainq.engine.models.scripted import calls, says
from tests.support.people import Watched, awaits, brain_of
from tests.support.pump import Pump
from tests.support.receiver import Receiver
from tests.support.wait import wait_until

Pumps = Callable[..., Pump]
CANARY = "canary4711"
WRITE = calls(("write", {"name": CANARY}))


def told(pump: Pump) -> list[DeliveryRow]:
    return list(reversed(pump.wiring.store.deliveries.list()))


def send_all(pump: Pump) -> None:
    made = pump.wiring.webhook_sender

    def none_is_left() -> bool:
        while any(made.send_one(webhook) for webhook in made.webhooks):
            pass
        return {row.state for row in told(pump)} == {"done"}

    wait_until(none_is_left, "all is sent")


def test_an_approval_and_an_ending_are_told_without_content(pumps: Pumps) -> None:
    with Receiver() as receiver:
        brain = brain_of(Watched(WRITE, says(CANARY)), approval=f"{CANARY} why")
        pump = pumps(brain, webhooks=receiver.setting(sessions=["acme:"]))
        handle = pump.submit("acme:1", CANARY)
        pump.drain()
        assert awaits(handle) == "parked people"
        assert [row.event for row in told(pump)] == ["approval.requested"]
        send_all(pump)
        (request,) = receiver.received
        about = request.content["data"]
        assert (about["tool"], about["session_id"], about["turn_id"]) == ("write", "acme:1", handle.turn_id)
        pump.client.approve(about["approval_id"])
        assert pump.finish(handle).text == CANARY
        pump.finish(pump.submit("acme2:1", "Of another tenant."))
        send_all(pump)
        pump.settle(handle)
    assert [row.event for row in told(pump)] == ["approval.requested", "turn.ended"]
    ending = receiver.received[1].content
    assert (ending["type"], ending["data"]) == (
        "turn.ended",
        {"turn_id": handle.turn_id, "session_id": "acme:1", "ending": "completed", "stop_reason": "answered"},
    )
    assert all(got.signed for got in receiver.received)
    assert CANARY not in str(receiver.received)


@pytest.mark.parametrize("begun", [False, True])
def test_a_cancelled_turn_is_told_of_too(pumps: Pumps, begun: bool) -> None:
    with Receiver() as receiver:
        pump = pumps(brain_of(Watched(WRITE), approval=True), webhooks=receiver.setting(events=["turn.ended"]))
        first = pump.submit("s1", "Go.")
        pump.drain()
        handle = first if begun else pump.submit("s1", "Then this.")
        handle.cancel("enough")
        pump.finish(handle)
        send_all(pump)
    assert [got.content["data"]["ending"] for got in receiver.received] == ["cancelled"]
    assert receiver.received[0].content["data"]["turn_id"] == handle.turn_id


def test_without_webhooks_nothing_is_written(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(says("done"))))
    pump.finish(pump.submit("s1", "Go."))
    assert told(pump) == []
    assert pump.wiring.webhook_sender.webhooks == ()
