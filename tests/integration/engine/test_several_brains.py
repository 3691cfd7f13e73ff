"""Several brains in one deployment: a turn names one, and has nothing of another's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from brainq.contracts.call import ChildTurn
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.contracts.status import Effect, Ending, StopReason
from brainq.contracts.turn import Limits, TurnResult
from brainq.engine.brain.brain import Brain
from brainq.engine.models.scripted import ScriptedProvider, calls, says
from brainq.engine.tools.context import RunContext
from brainq.errors import InvalidInput, SubmitConflict
from tests.support.pump import Pump

Pumps = Callable[..., Pump]


class Counts:
    """A finalizer step of one brain."""

    name = "counts"

    def __init__(self) -> None:
        self.turns: list[str] = []

    def is_configured(self, brain: Any) -> bool:
        return True

    def run(self, context: Any) -> None:
        self.turns.append(context.claim.turn_id)


def brain_of(name: str, replies: Iterable[Any], **given: Any) -> Brain:
    """Its tool `who` says which brain it is called by, and which it is of."""
    brain = Brain(name, ScriptedProvider(list(replies)), f"You are {name}.", **given)

    @brain.tool(effect=Effect.READ_ONLY)
    def who(context: RunContext) -> str:  # pyright: ignore[reportUnusedFunction]
        """Say who you are."""
        return f"{name}'s, called by {context.brain}"

    return brain


def asks_who(name: str, **given: Any) -> Brain:
    return brain_of(name, [calls(("who", {})), says(f"{name} has answered.")], **given)


def told(pump: Pump, result: TurnResult) -> list[str]:
    """What its tools told the turn's model."""
    handle = pump.client.handle(result.turn_id)
    return [message.content for message in handle.transcript() if message.role == "tool"]


def test_a_turn_has_the_tools_prompt_steps_and_limits_of_the_brain_it_names(pumps: Pumps) -> None:
    steps = Counts()
    desk, lab = asks_who("desk"), asks_who("lab", final_steps=[steps], limits=Limits(max_steps=7))
    pump = pumps([desk, lab])
    assert pump.client.brains == ("desk", "lab")
    first, second = pump.submit("s1", "Who?"), pump.submit("s2", "Who?", brain="lab")
    snapshot = second.snapshot()
    assert snapshot is not None
    assert (snapshot.brain, snapshot.budget.steps_max) == ("lab", 7)
    at_desk, in_lab = pump.finish(first), pump.finish(second)
    assert (at_desk.text, at_desk.brain) == ("desk has answered.", "desk")
    assert (in_lab.text, in_lab.brain) == ("lab has answered.", "lab")
    assert told(pump, at_desk) == ["desk's, called by desk"]
    assert told(pump, in_lab) == ["lab's, called by lab"]
    assert steps.turns == [second.turn_id]
    assert [turn.brain for turn in pump.client.session("s2").history()] == ["lab"]


def test_a_session_may_go_on_with_another_brain(pumps: Pumps) -> None:
    desk = Brain("desk", ScriptedProvider([says("It is 42.")]))
    seen: list[str] = []

    def saw(request: ModelRequest) -> ModelReply:
        seen.extend(message.content for message in request.messages)
        return says("I saw it.")

    pump = pumps((desk, Brain("lab", ScriptedProvider(rules=saw), "You are the lab.")))
    pump.finish(pump.submit("s1", "What is it?", brain="desk"))
    pump.finish(pump.submit("s1", "Did you see?", brain="lab"))
    assert seen[-3:] == ["What is it?", "It is 42.", "Did you see?"]


def test_a_tool_of_another_brain_is_unknown(pumps: Pumps) -> None:
    desk = Brain("desk", ScriptedProvider([calls(("who", {})), says("I cannot.")]))
    pump = pumps([desk, asks_who("lab")])
    result = pump.finish(pump.submit("s1", "Who?"))
    [said] = told(pump, result)
    assert "who" in said
    assert "lab" not in said


def test_a_child_turn_may_be_of_another_brain_and_is_of_its_parents_else(pumps: Pumps) -> None:
    desk = Brain(
        "desk", ScriptedProvider([calls(("ask", {"brain": "lab"})), calls(("ask", {"brain": ""})), says("Done.")])
    )

    @desk.tool(effect=Effect.READ_ONLY)
    def ask(brain: str) -> Any:  # pyright: ignore[reportUnusedFunction]
        """Have another answer."""
        return ChildTurn("Who?", brain=brain or None)

    # The default is neither's.
    pump = pumps([Brain("other", "offline:rules"), desk, Brain("lab", ScriptedProvider([says("The lab.")]))])
    handle = pump.submit("s1", "Ask them.", brain="desk")
    result = pump.finish(handle)
    rows = pump.wiring.store.turns.list()
    requests = [pump.wiring.store.turns.request(row.turn_id) for row in reversed(rows)]
    assert [request and request.brain for request in requests][:2] == ["desk", "lab"]
    assert told(pump, result)[0] == "The lab."
    assert [request and request.brain for request in requests][2] == "desk"


@pytest.mark.parametrize("given", [{"brain": "nobody"}, {"brain": "no brain!"}])
def test_an_unknown_brain_is_refused_where_it_enters(pumps: Pumps, given: dict[str, Any]) -> None:
    pump = pumps([asks_who("desk"), asks_who("lab")])
    with pytest.raises(InvalidInput, match="brain"):
        pump.submit("s1", "Who?", **given)
    assert pump.wiring.store.turns.list() == []


def test_those_there_are_are_named(pumps: Pumps) -> None:
    pump = pumps([asks_who("desk"), asks_who("lab")])
    with pytest.raises(InvalidInput, match="brain: there is no brain 'nobody'; the brains are desk, lab"):
        pump.submit("s1", "Who?", brain="nobody")


def test_the_same_submit_is_the_same_turn_whatever_brains_came_meanwhile(pumps: Pumps) -> None:
    alone = pumps(asks_who("desk"))
    first = alone.submit("s1", "Who?", request_key="k1")
    request = alone.wiring.store.turns.request(first.turn_id)
    assert request is not None
    assert request.brain is None, "a deployment of one brain keeps no name"
    several = pumps([asks_who("lab"), asks_who("desk")])
    again = several.submit("s1", "Who?", request_key="k1")
    assert (again.turn_id, again.created) == (first.turn_id, False)
    with pytest.raises(SubmitConflict):
        several.submit("s1", "Who?", request_key="k1", brain="desk")


def test_a_list_names_its_turns_brain_and_a_brain_alone_does_not(pumps: Pumps) -> None:
    """A producer may have fewer brains than the workers, and be of none of theirs that is the default."""
    workers, producer = pumps([asks_who("desk"), asks_who("lab")]), pumps([asks_who("lab")], owner="producer")
    assert workers.finish(producer.submit("s1", "Who?")).text == "lab has answered."
    alone = pumps(asks_who("lab"), owner="alone")
    request = alone.wiring.store.turns.request(alone.submit("s2", "Who?", brain="lab").turn_id)
    assert request is not None
    assert request.brain is None


def test_a_worker_without_the_brain_leaves_the_turn_to_others(pumps: Pumps) -> None:
    """Of an older deployment: it has no brain `lab` yet."""
    new, old = pumps([asks_who("desk"), asks_who("lab")]), pumps(asks_who("desk"), owner="old")
    handle = new.submit("s1", "Who?", brain="lab")

    bell = old.take("brainq.turns")
    assert bell is not None
    assert old.answer(bell) == "dropped: no_brain"
    new.answer(bell)
    bell = old.take("brainq.tools.read_only")
    assert bell is not None
    assert old.answer(bell) == "dropped: no_brain"
    new.answer(bell)
    new.drain("brainq.turns")
    bell = old.take("brainq.finalize")
    assert bell is not None
    assert old.answer(bell) == "dropped: no_brain"
    new.answer(bell)

    result = new.finish(handle)
    assert (result.text, result.steps) == ("lab has answered.", 2)


def test_the_turns_of_a_brain_that_is_no_more_end_and_say_so(pumps: Pumps) -> None:
    left = pumps([asks_who("desk"), asks_who("lab")]).submit("s1", "Who?", brain="lab")
    pump = pumps(asks_who("desk"), owner="new")
    pump.drain()
    state: Any = pump.wiring.state
    keys, client = state.keys, state.redis
    budget = keys.named("budget", "s1", left.turn_id)
    client.hset(budget, "deadline", 1)
    pump.sweep()
    # Its finalizer steps are left to others, too, until nobody can be expected any more.
    pump.sweep()
    pump.drain()
    snapshot = left.snapshot()
    assert snapshot is not None
    assert snapshot.state == "closing"
    client.hset(keys.turn("s1", left.turn_id), "closing_at", 1)
    result = pump.finish(left)
    assert (result.ending, result.stop_reason) == (Ending.TIMED_OUT, StopReason.DEADLINE)
    assert result.error == "no worker with the brain 'lab' continued this turn in time; the brains are desk"
    row = pump.wiring.store.turns.get(left.turn_id)
    assert row is not None
    assert row.ended_at is not None
    kept = pump.wiring.store.turns.result(left.turn_id)
    assert kept is not None
    assert kept.warnings[0] == (
        "sent before the finalizer was done: no finalizer worker has run its next step; "
        "its brain 'lab' is not among desk"
    )


def test_a_cancelled_turn_of_a_brain_that_is_no_more_is_cancelled(pumps: Pumps) -> None:
    handle = pumps([asks_who("desk"), asks_who("lab")]).submit("s1", "Who?", brain="lab")
    pump = pumps(asks_who("desk"), owner="new")
    pump.drain()
    handle.cancel("not wanted")
    pump.drain("brainq.turns")
    snapshot = handle.snapshot()
    assert snapshot is not None
    assert snapshot.ending is Ending.CANCELLED
