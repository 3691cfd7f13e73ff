"""`on_post_tool_use` for calls that no worker ended: a worker calls it, when it takes up the turn next."""

from __future__ import annotations

from typing import Any

import pytest

from brainq import PostToolUse
from brainq.contracts.call import ToolFailure, ToolOutcome, ToolSuccess, ToolTimeout, ToolUnknown
from brainq.engine.models.scripted import calls, says
from brainq.engine.tools.results import ToolError
from tests.integration.people.test_people_outside import Outside, die_running, parked
from tests.support.people import Pumps, Watched, brain_of, statuses, swept_until, time_is_up

Told = list[tuple[str, dict[str, Any], ToolOutcome]]


def hooked(brain: Any) -> Told:
    told: Told = []

    def hear(use: PostToolUse) -> None:
        assert use.call_key == f"{use.turn_id}-{use.call.id}"
        assert isinstance(use.call.arguments, dict)
        told.append((use.call.name, use.call.arguments, use.outcome))

    brain.on_post_tool_use(hear)
    return told


@pytest.mark.parametrize("result", [7, "7", {"n": [1]}], ids=["number", "text", "object"])
def test_a_result_from_outside_is_told_by_the_next_worker_and_not_by_who_brings_it(pumps: Pumps, result: Any) -> None:
    outside = Outside()
    told = hooked(outside.brain)
    pump, handle = parked(pumps, outside)
    pump.client.complete_call(outside.tokens["a"], result)
    assert told == []
    pump.finish(handle)
    assert told == [("order", {"what": "a"}, ToolSuccess(value=result))]


def test_a_failure_from_outside_is_told_with_the_tool_s_own_words(pumps: Pumps) -> None:
    outside = Outside()
    told = hooked(outside.brain)
    pump, handle = parked(pumps, outside)
    pump.client.fail_call(outside.tokens["a"], ToolError("sold out", retryable=True))
    pump.finish(handle)
    failed = ToolFailure(error="sold out", error_type="OutsideFailure", retryable=True, own_words=True)
    assert told == [("order", {"what": "a"}, failed)]


def test_a_later_step_tells_of_it_no_more(pumps: Pumps) -> None:
    outside = Outside()
    outside.model.script = (outside.model.script[0], calls(("look", {"what": "b"})), says("done"))
    told = hooked(outside.brain)
    pump, handle = parked(pumps, outside)
    pump.client.complete_call(outside.tokens["a"], 1)
    pump.finish(handle)
    assert [name for name, _, _ in told] == ["order", "look"]


def test_a_result_that_came_early_is_told_once_the_call_has_it(pumps: Pumps) -> None:
    outside = Outside()
    told = hooked(outside.brain)
    pump = pumps(outside.brain)
    handle = pump.submit("s1", "Go.")
    pump.drain("brainq.turns")
    _, token = die_running(pump, handle)
    assert pump.client.complete_call(token, "early") == "early"
    swept_until(pump, lambda: statuses(pump, handle)["c1-0"] == "completed", "it was rescued")
    pump.finish(handle)
    assert told == [("order", {"what": "a"}, ToolSuccess(value="early"))]


def test_a_call_that_was_rescued_is_told_as_unknown(pumps: Pumps) -> None:
    outside = Outside()
    told = hooked(outside.brain)
    pump = pumps(outside.brain)
    handle = pump.submit("s1", "Go.")
    pump.drain("brainq.turns")
    die_running(pump, handle)
    swept_until(pump, lambda: statuses(pump, handle)["c1-0"] == "unknown", "it was rescued")
    assert told == []
    pump.finish(handle)
    [(name, arguments, outcome)] = told
    assert (name, arguments, type(outcome)) == ("order", {"what": "a"}, ToolUnknown)


def test_a_wait_that_is_over_is_told_as_a_timeout(pumps: Pumps) -> None:
    outside = Outside()
    told = hooked(outside.brain)
    pump, handle = parked(pumps, outside)
    time_is_up(pump, handle)
    pump.finish(handle)
    [(name, _, outcome)] = told
    assert (name, type(outcome)) == ("order", ToolTimeout)


def test_what_was_settled_is_told_though_the_turn_is_cancelled_before_it_goes_on(pumps: Pumps) -> None:
    outside = Outside(("order", {"what": "a"}), ("order", {"what": "b"}))
    told = hooked(outside.brain)
    pump, handle = parked(pumps, outside)
    pump.client.complete_call(outside.tokens["a"], 1)
    handle.cancel()
    pump.finish(handle)
    assert told == [("order", {"what": "a"}, ToolSuccess(value=1))]


def test_a_hook_that_raises_changes_nothing_and_one_whose_worker_dies_is_called_again(pumps: Pumps) -> None:
    outside = Outside()
    seen: list[str] = []

    def hear(use: PostToolUse) -> None:
        seen.append(use.call_key)
        if len(seen) == 1:
            raise SystemExit("killed in the middle of the hook")
        raise ValueError("no")

    outside.brain.on_post_tool_use(hear)
    pump, handle = parked(pumps, outside)
    pump.client.complete_call(outside.tokens["a"], 1)
    with pytest.raises(SystemExit):
        pump.drain()
    pump.finish(handle)
    assert seen == [f"{handle.turn_id}-c1-0"] * 2
    assert outside.model.results(2) == ["1"]


def test_a_client_s_tool_is_told_of_too(pumps: Pumps) -> None:
    model = Watched(calls(("pick", {"colour": "red"})), says("done"))
    brain = brain_of(model)
    told = hooked(brain)
    pump = pumps(brain)
    tool = {"name": "pick", "description": "Pick.", "parameters": {"type": "object"}}
    handle = pump.submit("s1", "Go.", client_tools=[tool])
    pump.drain()
    handle.give_result("c1-0", "picked")
    assert told == []
    pump.finish(handle)
    assert told == [("pick", {"colour": "red"}, ToolSuccess(value="picked"))]


def test_calls_that_a_worker_ended_are_told_of_once_and_leave_nothing(pumps: Pumps) -> None:
    model = Watched(calls(("write", {"name": "a"})), says("done"))
    brain = brain_of(model)
    told = hooked(brain)
    pump = pumps(brain)
    pump.finish(pump.submit("s1", "Go."))
    assert [name for name, _, _ in told] == ["write"]
