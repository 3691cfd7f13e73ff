"""One verb for many turns: which they are, what became of each, and that the same again changes nothing twice."""

from __future__ import annotations

from typing import Any

import pytest

from brainq.client.bulk import BulkRunner, BulkVerb, find_bulk, read_rate, read_where
from brainq.errors import InvalidInput
from brainq.models.scripted import calls, says
from brainq.operator import Operator
from tests.support.people import Pumps, Watched, brain_of
from tests.support.pump import Pump

WRITE = calls(("write", {"name": "b"}))


def run(pump: Pump, verb: BulkVerb, where: str, pauses: list[float] | None = None) -> dict[str, Any]:
    with Operator(pump.settings, pump.wiring.brains) as operator:
        turns = find_bulk(operator.client, read_where(where))
        waits = [] if pauses is None else pauses
        runner = BulkRunner(operator=operator, by="ann", reason="wrong list", rate=4.0, pause=waits.append)
        return {name: value for name, value in runner.run(verb, turns).as_json().items() if name != "verb"}


def test_many_are_cancelled_and_the_same_again_finds_none(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(WRITE, says("done")), approval=True))
    for session in ("acme:1", "acme:2", "bolt:1"):
        pump.submit(session, "Go.")
    pauses: list[float] = []
    assert run(pump, "cancel", "tenant=acme state=accepted", pauses) == {
        "matched": 2,
        "done": 2,
        "skipped": {},
        "failed": [],
    }
    assert pauses == [0.25]
    acts = pump.client.audit(act="cancel")
    assert [(act.reason, act.session_id[:5]) for act in acts] == [("wrong list", "acme:")] * 2
    pump.drain()
    for turn in pump.client.turns():
        if turn.session_id.startswith("acme:"):
            pump.settle(pump.client.handle(turn.turn_id))
    assert run(pump, "cancel", "tenant=acme")["skipped"] == {"it has ended": 2}


def test_what_is_pending_is_decided_and_what_is_not_is_skipped(pumps: Pumps) -> None:
    ran: list[str] = []
    pump = pumps(brain_of(Watched(WRITE, says("done")), ran, approval=True))
    handle = pump.submit("s1", "Go.")
    pump.drain()
    assert run(pump, "approve", "state=parked")["done"] == 1
    pump.finish(handle)
    assert ran == ["write b"]
    assert run(pump, "deny", "session=s1")["skipped"] == {"nobody is asked about its calls": 1}


def test_a_failed_turn_is_submitted_again_once(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(says("done"))))
    handle = pump.submit("s1", "Go.", metadata={"order": "A1"}, priority="high")
    handle.cancel()
    pump.settle(handle)
    first = run(pump, "resubmit", "ending=cancelled")
    assert (first["done"], first["failed"]) == (1, [])
    again, old = pump.client.turns()
    assert (old.turn_id, again.request_key) == (handle.turn_id, f"resubmit-of-{handle.turn_id}")
    request = pump.client.handle(again.turn_id).request()
    assert (request.user_message, request.priority) == ("Go.", "high")
    assert request.metadata == {"order": "A1", "resubmit_of": handle.turn_id}
    assert run(pump, "resubmit", "ending=cancelled")["skipped"] == {"it was submitted again before": 1}


NO_FILTERS = ("", "brain", "brain=", "colour=red", "older=2", "older=2y", "min_cost=much", "state=odd")


@pytest.mark.parametrize("where", NO_FILTERS)
def test_words_that_are_no_filter_are_refused(where: str) -> None:
    with pytest.raises(InvalidInput):
        read_where(where)


def test_a_rate_is_turns_a_second() -> None:
    assert (read_rate("20/s"), read_rate("0.5")) == (20.0, 0.5)
    with pytest.raises(InvalidInput, match="rate"):
        read_rate("0/s")
