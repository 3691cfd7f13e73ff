"""Caps on live turns of a brain: whoever waits is told, whoever need not wait does not, and all come to their end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from brainq.client.handle import TurnHandle
from brainq.contracts.call import ChildTurn
from brainq.contracts.fleet import FleetBrain
from brainq.contracts.status import Awaits, Effect, Ending, StopReason
from brainq.engine.brain.brain import Brain
from brainq.engine.brain.brains import describe_brains
from brainq.engine.models.scripted import ScriptedProvider, calls, says
from brainq.errors import QueueFull
from tests.support.people import swept_until, turn_field
from tests.support.pump import Pump

Pumps = Callable[..., Pump]


def capped(name: str, cap: int | None = None) -> Brain:
    return Brain(name, ScriptedProvider([says("done")]), max_live_turns=cap)


def two(pumps: Pumps, **settings: Any) -> Pump:
    """A deployment of `desk`, and of `lab`, which may have one live turn."""
    pump = pumps([capped("desk"), capped("lab", 1)], **settings)
    pump.sweep_part("publish the capacity")
    return pump


def state(pump: Pump, handle: TurnHandle) -> str:
    return turn_field(pump, handle, "state")


def test_a_turn_that_waits_for_its_brain_says_so_wherever_it_is_looked_at(pumps: Pumps) -> None:
    pump = two(pumps)
    first, second = (pump.submit(f"a:{n}", "go", brain="lab") for n in (1, 2))
    third, behind = pump.submit("a:3", "go", brain="lab"), pump.submit("a:2", "go", brain="desk")
    other = pump.submit("a:4", "go", brain="desk")
    assert [state(pump, handle) for handle in (first, other)] == ["active", "active"]
    told = "queued: 1 of 1 turns of brain lab are live; "
    assert second.explain().startswith(told + "it is the next of tenant a; ")
    assert third.explain().startswith(told + "1 of tenant a before it; ")
    assert behind.explain().startswith("queued behind 1 turn of its session, the first of which waits for brain lab")
    waits = third.snapshot()
    assert waits is not None
    assert (waits.awaits, waits.budget.remaining_s) == (Awaits.BRAIN, 300), "its time does not run"
    listed = {turn.turn_id: turn for turn in pump.client.turns()}
    assert (listed[third.turn_id].awaits, listed[third.turn_id].note) == (
        Awaits.BRAIN,
        third.explain().partition("; no ")[0],
    )
    room = pump.client.fleet().room
    assert room.brains == (FleetBrain(name="lab", cap=1, live=1),)
    assert (room.live, room.tenants_waiting) == (2, 1)
    for handle in (first, second, third, behind, other):
        assert pump.finish(handle).ending is Ending.COMPLETED
    redis, keys = pump.wiring.state.redis, pump.wiring.state.keys
    assert [key for key in redis.keys("*{room}*") if key != keys.room] == []


def test_the_brains_are_shown_with_their_caps(pumps: Pumps) -> None:
    pump = two(pumps)
    seen = describe_brains(pump.wiring.brains)
    assert [(brain.name, brain.max_live_turns) for brain in seen] == [("desk", None), ("lab", 1)]


def test_the_cap_of_the_only_brain_is_the_size_of_the_room(pumps: Pumps) -> None:
    pump = pumps(capped("lab", 2))
    pump.sweep_part("publish the capacity")
    handles = [pump.submit(f"a:{n}", "go") for n in range(3)]
    assert [state(pump, handle) for handle in handles] == ["active", "active", "queued"]
    room = pump.client.fleet().room
    assert (room.size, room.share, room.brains) == (2, 2, ())
    assert pump.finish(handles[2]).ending is Ending.COMPLETED


def test_a_session_goes_on_at_once_when_what_waited_for_its_brain_may_wait_no_longer(pumps: Pumps) -> None:
    pump = two(pumps)
    pump.submit("b:1", "go", brain="lab")
    late = pump.submit("a:1", "go", brain="lab", limits={"max_wait_s": 0.05})
    behind = pump.submit("a:1", "go", brain="desk")
    swept_until(pump, lambda: state(pump, late) != "queued", "its wait ends")
    assert state(pump, behind) == "active"
    result = pump.finish(late)
    assert (result.ending, result.stop_reason) == (Ending.TIMED_OUT, StopReason.WAITED)
    assert pump.finish(behind).ending is Ending.COMPLETED


def test_a_session_goes_on_at_once_when_what_waited_for_its_brain_is_cancelled(pumps: Pumps) -> None:
    pump = two(pumps)
    pump.submit("b:1", "go", brain="lab")
    waits, behind = pump.submit("a:1", "go", brain="lab"), pump.submit("a:1", "go", brain="desk")
    waits.cancel()
    assert state(pump, behind) == "active"
    assert pump.finish(behind).ending is Ending.COMPLETED


def test_parents_and_children_of_one_capped_brain_come_to_their_end(pumps: Pumps) -> None:
    lab = Brain(
        "lab",
        ScriptedProvider(
            rules=lambda request: (
                says("done") if request.step > 1 or "sub" in request.session_id else calls(("ask", {}), ("ask_too", {}))
            )
        ),
        max_live_turns=1,
    )

    @lab.tool(effect=Effect.READ_ONLY)
    def ask() -> ChildTurn:  # pyright: ignore[reportUnusedFunction]
        """Ask."""
        return ChildTurn("go", session_id="a:sub1")

    @lab.tool(effect=Effect.READ_ONLY)
    def ask_too() -> ChildTurn:  # pyright: ignore[reportUnusedFunction]
        """Ask another."""
        return ChildTurn("go", session_id="a:sub2")

    pump = pumps([capped("desk"), lab])
    pump.sweep_part("publish the capacity")
    parents = [pump.submit(f"a:{n}", "go", brain="lab") for n in range(2)]
    for parent in parents:
        assert pump.finish(parent).ending is Ending.COMPLETED


def test_after_redis_was_emptied_the_cap_holds_again(pumps: Pumps) -> None:
    pump = two(pumps)
    handles = [pump.submit(f"a:{n}", "go", brain="lab") for n in range(3)]
    pump.wiring.state.redis.flushall()
    pump.sweep_part("publish the capacity")
    assert pump.wiring.sweeper.checks.lost_turns.compare(0).healed == 3
    assert [state(pump, handle) for handle in handles] == ["active", "queued", "queued"]
    for handle in handles:
        assert pump.finish(handle).ending is Ending.COMPLETED


def test_the_turns_of_a_capped_brain_that_is_no_more_wait_for_no_cap(pumps: Pumps) -> None:
    handles = [two(pumps).submit(f"a:{n}", "go", brain="lab") for n in range(2)]
    pump = pumps([capped("desk")], owner="new")
    pump.sweep_part("publish the capacity")
    assert [state(pump, handle) for handle in handles] == ["active", "queued"], "others may know it still"
    shared = pump.wiring.state
    shared.redis.hset(shared.keys.room, "until lab", 0)  # as if a minute had passed
    pump.sweep_part("publish the capacity")
    assert [state(pump, handle) for handle in handles] == ["active", "active"], "their time runs, and ends them"


def test_those_who_wait_for_their_brain_count_among_those_of_their_tenant_that_wait(pumps: Pumps) -> None:
    pump = two(pumps, max_waiting_turns_a_tenant=2)
    for n in range(3):
        pump.submit(f"a:{n}", "go", brain="lab")
    with pytest.raises(QueueFull, match="2 sessions of tenant 'a' wait for room"):
        pump.submit("a:4", "go", brain="lab")
    assert pump.submit("b:1", "go", brain="lab").turn_id


def test_a_greeting_is_no_turn_and_takes_no_place(pumps: Pumps) -> None:
    pump = two(pumps)
    first = pump.submit("a:1", "go", brain="lab", greeting="Hello.")
    second = pump.submit("a:2", "go", brain="lab", greeting="Hello.")
    assert [state(pump, handle) for handle in (first, second)] == ["active", "queued"]
    assert pump.finish(second).ending is Ending.COMPLETED
