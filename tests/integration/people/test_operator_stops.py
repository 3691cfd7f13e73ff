"""Operators stop brains, tools, models and tenants by name: what meets a stop waits, or is refused, at every worker."""

from __future__ import annotations

from typing import Any

import pytest

from brainq.client.operator import Operator
from brainq.contracts.brain import Memory, PromptTemplate
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.contracts.status import Ending
from brainq.engine.models.asking.fallback import Fallback
from brainq.engine.models.scripted import ScriptedProvider, calls, says
from brainq.errors import InvalidInput, TurnForbidden
from tests.support.parts import judgements, memories
from tests.support.people import Pumps, Watched, awaits, brain_of, statuses
from tests.support.pump import Pump
from tests.support.wait import wait_until

WRITE = calls(("write", {"name": "b"}))


def test_a_paused_tool_waits_until_it_is_lifted_and_explain_says_why(pumps: Pumps) -> None:
    ran: list[str] = []
    pump = pumps(brain_of(Watched(WRITE, says("done")), ran))
    handle = pump.submit("s1", "Go.")
    pump.client.stop("tool", "write", reason="wrong list", by="ann")
    pump.drain()
    assert (ran, statuses(pump, handle), awaits(handle)) == ([], {"c1-0": "parked"}, "parked people")
    assert handle.explain() == (
        "waits for c1-0 write, because tool write is paused; `brainq stops` shows who paused it, and how to lift that"
    )
    assert [stop.describe() for stop in pump.client.fleet().stops] == ["tool write is paused by ann: wrong list"]
    with Operator(pump.settings, pump.wiring.brains) as operator:
        assert operator.stops() == pump.client.stops()
    assert pump.client.lift("tool", "write")
    result = pump.finish(handle)
    assert (result.ending, ran) == (Ending.COMPLETED, ["write b"])
    assert not pump.client.lift("tool", "write")


def test_a_forbidden_tool_is_denied_and_the_model_reads_who_and_why(pumps: Pumps) -> None:
    ran: list[str] = []
    model = Watched(WRITE, says("done"))
    pump = pumps(brain_of(model, ran))
    pump.client.stop("tool", "write", mode="forbid", reason="its key leaked", by="ann")
    pump.finish(pump.submit("s1", "Go."))
    assert ran == []
    assert model.results(2) == [
        "Not run: tool write is forbidden by ann: its key leaked. Do not call it again in this turn."
    ]


def test_a_paused_brain_waits_before_its_next_step_and_none_of_its_time_runs(pumps: Pumps) -> None:
    model = Watched(WRITE, says("done"))
    pump = pumps(brain_of(model))
    pump.client.stop("brain", "people", reason="a new prompt", by="ann")
    handle = pump.submit("s1", "Go.", limits={"timeout_s": 20})
    pump.drain()
    assert model.requests == []
    assert "is next; it waits, because brain people is paused by ann: a new prompt;" in handle.explain()
    pump.client.lift("brain", "people")
    assert pump.finish(handle).ending is Ending.COMPLETED


def test_a_forbidden_tenant_is_refused_and_its_live_turns_are_cancelled(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(WRITE, says("done"))))
    handle = pump.submit("acme:s1", "Go.")
    pump.client.stop("tenant", "acme", mode="forbid", reason="unpaid", by="ann")
    with pytest.raises(TurnForbidden, match=r"tenant acme is forbidden by ann: unpaid; .*brainq lift tenant acme"):
        pump.submit("acme:s2", "Go.")
    result = pump.finish(handle)
    assert (result.ending, result.error) == (Ending.CANCELLED, "tenant acme is forbidden by ann: unpaid")
    assert pump.finish(pump.submit("bolt:s1", "Go.")).ending is Ending.COMPLETED
    pump.client.lift("tenant", "acme")
    assert pump.finish(pump.submit("acme:s2", "Go.")).ending is Ending.COMPLETED


def test_a_forbidden_model_is_not_asked_and_a_fallback_asks_the_next(pumps: Pumps) -> None:
    first, second = Watched(says("first")), Watched(says("second"))
    first.name, second.name = "first", "second"
    pump = pumps(brain_of(Fallback([first, second])))
    pump.client.stop("model", "first", mode="forbid", by="ann")
    assert pump.finish(pump.submit("s1", "Go.")).text == "second"
    assert first.requests == []


def test_a_paused_model_waits_and_is_asked_once_it_is_lifted(pumps: Pumps) -> None:
    model = Watched(says("done"))
    model.name = "slow"
    pump = pumps(brain_of(model))
    pump.client.stop("model", "slow", by="ann")
    handle = pump.submit("s1", "Go.")
    pump.drain()
    assert (model.requests, "model slow is paused by ann" in handle.explain()) == ([], True)
    pump.client.lift("model", "slow")
    assert pump.finish(handle).text == "done"


def test_a_stopped_model_is_asked_neither_for_memories_nor_for_judgements(
    pumps: Pumps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brainq.adapters.redis.stops.NONE_KNOWN_S", 1e6)
    asked: list[str] = []

    def answer(request: ModelRequest) -> ModelReply:
        asked.append(request.purpose)
        return says("{}")

    beside = ScriptedProvider([says("a step")], name="beside", auxiliary=answer)
    prompt = PromptTemplate(id="p", text="Help.", judges=("relevance",))
    pump = pumps(
        brain_of(Watched(says("done")), auxiliary_model=beside, memory=Memory(extractor="model"), prompts=[prompt])
    )
    handle = pump.submit("s1", "I prefer tea.", prompt_id="p")
    assert pump.wiring.state.stop_switch.in_force() == ()  # nothing is stopped, and that is known
    stop = pump.client.stop("model", "beside", reason="wrong prices", by="ann")
    wait_until(lambda: pump.wiring.state.stop_switch.in_force() == (stop,), "it is heard of")
    pump.finish(handle)
    pump.drain()
    (judgement,) = judgements(pump, handle).values()
    assert (asked, judgement.state, judgement.tries) == ([], "pending", 0)
    assert judgement.error == "model beside is paused by ann: wrong prices"
    assert memories(pump, handle) == [("The user said: I prefer tea.", 1)]  # by rules
    pump.client.lift("model", "beside")
    assert pump.wiring.state.stop_switch.in_force() == ()


def test_redis_that_lost_its_data_has_the_stops_again(pumps: Pumps) -> None:
    ran: list[str] = []
    pump = pumps(brain_of(Watched(WRITE, says("done")), ran))
    pump.client.stop("tool", "write", by="ann")
    redis: Any = pump.wiring.state.redis
    redis.flushall()
    pump.wiring.people.stops.heal()
    handle = pump.submit("s1", "Go.")
    pump.drain()
    assert (ran, statuses(pump, handle)) == ([], {"c1-0": "parked"})
    pump.wiring.store.stops.lift(pump.client.stops()[0])  # whoever lifted it died before Redis heard of it
    assert pump.wiring.people.stops.heal() == 1
    assert pump.finish(handle).ending is Ending.COMPLETED


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"kind": "lane", "name": "x"}, "kind"),
        ({"kind": "tool", "name": "a b"}, "name"),
        ({"kind": "tenant", "name": "acme:eu"}, "name"),
        ({"kind": "tool", "name": "x", "mode": "stop"}, "mode"),
        ({"kind": "tool", "name": "x", "ends_in_s": 0}, "ends_in_s"),
    ],
)
def test_what_cannot_be_stopped_is_refused_by_its_field(pumps: Pumps, given: dict[str, Any], field: str) -> None:
    pump: Pump = pumps(brain_of(Watched(says("done"))))
    with pytest.raises(InvalidInput) as refused:
        pump.client.stop(**given)
    assert refused.value.field == field
