"""Client tools: calls that the caller of a turn runs itself hold no worker, and get one result each."""

from __future__ import annotations

import json
from typing import Any

import pytest

from brainq.client.handle import TurnHandle
from brainq.contracts.brain import Approvals, Selection
from brainq.contracts.ids import full_call_id
from brainq.contracts.model import ModelReply
from brainq.contracts.status import Effect, Ending
from brainq.contracts.tool import MAX_CLIENT_TOOLS, ClientTool
from brainq.engine.brain.brain import Brain
from brainq.engine.models.scripted import calls, says
from brainq.errors import CallNotFound, InvalidInput, ResultRefused
from tests.support.people import (
    Pumps,
    Watched,
    awaits,
    brain_of,
    events,
    history,
    lose_redis,
    statuses,
    swept_until,
    time_is_up,
)
from tests.support.pump import Pump

PLACE = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
WEATHER = ClientTool(name="weather", description="Tell the weather.", parameters=PLACE)
MAIL = ClientTool(name="mail", description="Write a mail.")
OSLO, BERN = ("weather", {"place": "Oslo"}), ("weather", {"place": "Bern"})


def begun(
    pumps: Pumps, *wanted: tuple[str, dict[str, Any]], ran: list[str] | None = None, **options: Any
) -> tuple[Pump, TurnHandle, Watched]:
    """A turn whose model asks for these calls in its first reply."""
    model = Watched(calls(*wanted), says("done"))
    pump = pumps(brain_of(model, ran, **options))
    handle = pump.submit("s1", "Go.", client_tools=[WEATHER, MAIL])
    pump.drain()
    return pump, handle, model


def asked(handle: TurnHandle) -> list[tuple[str, str, Any]]:
    """What events alone tell the client: the calls that wait for it. They are read as far as they go."""
    batch = handle.events_so_far()
    parked = [event.data for event in batch if event.kind == "call.parked" and event.data["why"] == "client"]
    return [(str(data["call"]), str(data["tool"]), json.loads(str(data["arguments"]))) for data in parked]


def test_the_client_runs_its_own_tools_side_by_side(pumps: Pumps) -> None:
    pump, handle, model = begun(pumps, OSLO, BERN)
    assert [tool.name for tool in model.requests[0].tools] == ["look", "write", "note", "weather", "mail"]
    assert awaits(handle) == "parked client"
    assert not pump.waiting()
    assert asked(handle) == [("c1-0", "weather", {"place": "Oslo"}), ("c1-1", "weather", {"place": "Bern"})]
    waiting = handle.calls()
    assert [(call.id, call.park, call.arguments) for call in waiting] == [
        (full_call_id(handle.turn_id, "c1-0"), "client", {"place": "Oslo"}),
        (full_call_id(handle.turn_id, "c1-1"), "client", {"place": "Bern"}),
    ]
    other = pumps(pump.wiring.brains, owner="two").client.handle(handle.turn_id)
    assert other.give_result(waiting[1].id, {"degrees": 20}) == "settled"
    assert awaits(handle) == "parked client"
    assert other.give_error("c1-0", "no such place") == "settled"
    result = pump.finish(handle)
    assert (result.ending, result.text) == (Ending.COMPLETED, "done")
    assert model.results(2) == ["The tool failed: no such place.", '{"degrees":20}']
    assert result.parked_ms > 0
    assert [event.data for event in events(handle, "turn.parked")] == [{"awaits": "client"}]


def test_a_result_is_given_once(pumps: Pumps) -> None:
    pump, handle, model = begun(pumps, OSLO, BERN, ("look", {"name": "a"}))
    handle.give_result("c1-0", "rain")
    for _ in range(2):
        with pytest.raises(ResultRefused, match="given one before"):
            handle.give_result("c1-0", "sun")
    with pytest.raises(ResultRefused, match="the brain's own tool 'look'"):
        handle.give_result("c1-2", "seen")
    for unknown in ("c9-0", "c1-7"):
        with pytest.raises(CallNotFound):
            handle.give_result(unknown, "sun")
    with pytest.raises(InvalidInput, match=r"call_id: .* is not a call of turn"):
        handle.give_result("othern-c1-0", "sun")
    with pytest.raises(InvalidInput, match="result: it is not JSON"):
        handle.give_result("c1-1", object())
    handle.give_result("c1-1", "snow")
    pump.finish(handle)
    assert model.results(2) == ["rain", "snow", "saw a"]
    with pytest.raises(ResultRefused, match="given one before"):
        handle.give_result("c1-1", "sun")


def test_the_models_order_stands_around_a_write(pumps: Pumps) -> None:
    ran: list[str] = []
    write = ("write", {"name": "b"})
    pump, handle, model = begun(pumps, OSLO, ("look", {"name": "a"}), write, BERN, ran=ran)
    assert ran == ["look a"]
    assert [call for call, _, _ in asked(handle)] == ["c1-0"]
    assert statuses(pump, handle)["c1-2"] == "planned"
    with pytest.raises(ResultRefused, match="not yet"):
        handle.give_result("c1-3", "too early")
    handle.give_result("c1-0", "rain")
    pump.drain()
    assert ran == ["look a", "write b"]
    assert [call for call, _, _ in asked(handle)] == ["c1-0", "c1-3"]
    handle.give_result("c1-3", "snow")
    pump.finish(handle)
    assert model.results(2) == ["rain", "saw a", "wrote b", "snow"]


def test_calls_of_the_client_are_open_together_where_the_brains_run_one_by_one(pumps: Pumps) -> None:
    _, handle, _ = begun(pumps, ("look", {"name": "a"}), OSLO, BERN, parallel_tools=False)
    assert [call for call, _, _ in asked(handle)] == ["c1-1", "c1-2"]


def test_arguments_are_held_to_the_schema(pumps: Pumps) -> None:
    pump, handle, model = begun(pumps, ("weather", {"town": "Oslo"}), BERN)
    assert statuses(pump, handle) == {"c1-0": "denied", "c1-1": "parked"}
    handle.give_result("c1-1", "snow")
    pump.finish(handle)
    refusal, snow = model.results(2)
    assert "place" in refusal
    assert snow == "snow"


def test_nobody_gives_a_result_in_time(pumps: Pumps) -> None:
    pump, handle, model = begun(pumps, OSLO, ("mail", {}))
    handle.give_result("c1-0", "rain")
    time_is_up(pump, handle)
    swept_until(pump, lambda: statuses(pump, handle)["c1-1"] == "timed_out", why="the client's time is up")
    pump.finish(handle)
    late = model.results(2)[1]
    assert late.startswith("No result came from the client within")
    assert handle.give_result("c1-1", "sent") == "late"
    with pytest.raises(ResultRefused):
        handle.give_result("c1-1", "sent")
    pump.finish(pump.submit("s1", "And now?"))
    assert any("mail({}), reported as not finished: sent" in m.content for m in history(pump))


def test_a_cancel_gives_each_call_one_message(pumps: Pumps) -> None:
    pump, handle, _ = begun(pumps, OSLO, BERN)
    handle.give_result("c1-1", "snow")
    assert handle.cancel("enough") == "requested"
    assert pump.finish(handle).ending is Ending.CANCELLED
    told = [m for m in history(pump) if m.role == "tool"]
    assert [(m.call_id, m.is_error) for m in told] == [("c1-0", True), ("c1-1", False)]
    assert "not known" in told[0].content
    assert statuses(pump, handle) == {"c1-0": "unknown", "c1-1": "completed"}
    assert handle.give_result("c1-0", "rain") == "late"


def test_a_hold_keeps_the_call_from_the_client(pumps: Pumps) -> None:
    model = Watched(calls(OSLO), says("done"))
    pump = pumps(brain_of(model))
    handle = pump.submit("s1", "Go.", client_tools=[WEATHER], readiness=False)
    pump.drain()
    assert awaits(handle) == "parked people"
    assert asked(handle) == []
    assert handle.release(handle.holds()[0].id)
    assert awaits(handle) == "parked client"
    assert [call for call, _, _ in asked(handle)] == ["c1-0"]
    handle.give_result("c1-0", "rain")
    pump.finish(handle)
    assert [event.data["awaits"] for event in events(handle, "turn.parked")] == ["people", "client"]


def test_no_person_is_asked_about_a_call_of_the_client(pumps: Pumps) -> None:
    _, handle, _ = begun(pumps, OSLO, approvals=Approvals(effects=tuple(Effect)))
    assert handle.approvals() == ()
    assert awaits(handle) == "parked client"


def test_selection_hides_none_of_them(pumps: Pumps) -> None:
    model = Watched(calls(("look", {"name": "a"})), says("done"))
    pump = pumps(brain_of(model, selection=Selection(max_tools_per_turn=1, pinned=("look",))))
    pump.finish(pump.submit("s1", "Go.", client_tools=[WEATHER, MAIL]))
    for request in model.requests:
        assert [tool.name for tool in request.tools] == ["look", "weather", "mail"]


def test_tools_that_cannot_be_are_refused_before_anything_is_stored(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(says("hm"))))
    array: dict[str, Any] = {"type": "array"}
    for tools, problem in (
        ([ClientTool(name="look")], "a tool named 'look' of its own"),
        ([MAIL, MAIL], "two of them are named 'mail'"),
        ([{"name": "9 lives"}], "is not a name that a model can call"),
        ([{"name": "mail", "parameters": array}], "must be the schema of an object"),
        ([{"name": "mail", "description": "x" * 20_001}], "at most 20000"),
        ([{"name": f"t{i}"} for i in range(MAX_CLIENT_TOOLS + 1)], "send at most 128"),
        ([{"name": f"t{i}", "description": "x" * 19_000} for i in range(22)], "send at most 400,000"),
    ):
        with pytest.raises(InvalidInput, match="client_tools") as refusal:
            pump.submit("s1", "Go.", client_tools=tools)
        assert problem in str(refusal.value)
    assert pump.client.session("s1").history() == ()


def test_redis_loses_the_turn_and_the_client_is_asked_again(pumps: Pumps) -> None:
    pump, handle, model = begun(pumps, OSLO)
    lose_redis(pump)
    pump.drain()
    assert asked(handle) == [("c1-0", "weather", {"place": "Oslo"})]
    handle.give_result("c1-0", "rain")
    pump.finish(handle)
    assert model.results(2) == ["rain"]


def test_a_brain_without_tools_serves_those_of_the_client(pumps: Pumps) -> None:
    emoji = {"place": "Reykjavík 🌋"}
    pump = pumps(Brain("bare", Watched(calls(("weather", emoji)), ModelReply(text="🌋"))))
    handle = pump.submit("s1", "Go.", client_tools=[WEATHER])
    pump.drain()
    assert asked(handle) == [("c1-0", "weather", emoji)]
    handle.give_result("c1-0", "🌋 erupts")
    assert pump.finish(handle).text == "🌋"
