"""Tenants take turns for the fleet's room, whoever dies, and nobody waits for ever (P2)."""

from __future__ import annotations

import pytest

from brainq.client.handle import TurnHandle
from brainq.contracts.status import Ending, StopReason
from brainq.engine.models.scripted import calls, says
from brainq.errors import QueueFull
from brainq.gateway.edge.problems import error_response
from brainq.workers.tasks.register import submit_foreign
from tests.integration.people.test_people_children import Family
from tests.support.people import Pumps, Watched, brain_of, events, swept_until, turn_field
from tests.support.pump import Pump


def small(pumps: Pumps, model: Watched | None = None, **settings: object) -> Pump:
    """A fleet that has room for one live turn, and says so."""
    pump = pumps(brain_of(model or Watched(says("done"))), max_live_turns=1, **settings)
    pump.sweep_part("publish the capacity")
    return pump


def begun(pump: Pump, handles: list[TurnHandle]) -> list[str]:
    """The sessions of these turns in the order in which they began; all have ended."""
    for handle in handles:
        assert pump.finish(handle).ending is Ending.COMPLETED
    at = {
        handle.session_id: next(event.at_ms for event in events(handle) if event.kind == "turn.active")
        for handle in handles
    }
    return sorted(at, key=lambda session_id: at[session_id])


def test_a_tenant_of_many_sessions_does_not_keep_another_waiting(pumps: Pumps) -> None:
    pump = small(pumps)
    flood = [pump.submit(f"a:{n}", "go") for n in range(6)]
    other = pump.submit("b:1", "go")
    assert other.explain().startswith("queued until the fleet has room; it is the next of tenant b; to allow more")
    assert flood[4].explain().startswith("queued until the fleet has room; 3 of tenant a before it; to allow more")
    waits = other.snapshot()
    assert waits is not None
    assert waits.budget.remaining_s == 300, "its time does not run"
    assert begun(pump, [*flood, other]).index("b:1") <= 2


def test_a_turn_whose_tenant_has_used_its_share_says_so(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(says("done"))), max_live_turns=9, live_turns_of={"a:": 1})
    pump.sweep_part("publish the capacity")
    pump.submit("a:0", "go")
    late = pump.submit("a:1", "go", priority="low")
    assert late.explain().startswith(
        "queued until fewer turns of tenant a are live: its share is 1; it is the next of tenant a, by its "
        "priority low; to "
    )
    (listed, _) = pump.client.turns()
    assert late.explain().startswith(listed.note)


def test_a_child_turn_never_waits_behind_its_parents_tenant(pumps: Pumps) -> None:
    family = Family()
    pump = pumps(family.brain, max_live_turns=1)
    pump.sweep_part("publish the capacity")
    parents = [pump.submit(f"a:{n}", "3", limits={"max_steps": 9}) for n in range(3)]
    for parent in parents:
        assert pump.finish(parent).ending is Ending.COMPLETED
    assert pump.wiring.state.redis.zcard(pump.wiring.state.keys.room_live) == 0


def test_a_turn_that_waits_for_room_may_wait_no_longer_than_it_says(pumps: Pumps) -> None:
    pump = small(pumps)
    first = pump.submit("a:1", "go")
    late = pump.submit("b:1", "go", limits={"max_wait_s": 0.05})
    swept_until(pump, lambda: turn_field(pump, late, "state") != "queued", "its wait ends")
    result = pump.finish(late)
    assert (result.ending, result.stop_reason, result.steps) == (Ending.TIMED_OUT, StopReason.WAITED, 0)
    assert result.text == "I was not begun in the time that this could wait."
    assert pump.finish(first).ending is Ending.COMPLETED


def test_after_redis_was_emptied_all_stand_in_line_again(pumps: Pumps) -> None:
    pump = small(pumps)
    handles = [pump.submit(f"a:{n}", "go") for n in range(3)]
    pump.wiring.state.redis.flushall()
    pump.sweep_part("publish the capacity")
    assert pump.wiring.sweeper.checks.lost_turns.compare(0).healed == 3
    assert [turn_field(pump, handle, "state") for handle in handles] == ["active", "queued", "queued"]
    assert begun(pump, handles) == ["a:0", "a:1", "a:2"]


def test_a_turn_that_waits_for_a_person_keeps_nobody_waiting(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(calls(("write", {"name": "x"})), says("done")), approval=True), max_live_turns=1)
    pump.sweep_part("publish the capacity")
    asked = pump.submit("a:1", "go")
    other = pump.submit("a:2", "go")
    assert pump.finish(other).ending is Ending.COMPLETED
    assert turn_field(pump, asked, "state") == "parked"
    (approval,) = pump.client.approvals()
    pump.client.approve(approval.id)
    assert pump.finish(asked).ending is Ending.COMPLETED


def test_the_fleet_says_how_much_room_there_is(pumps: Pumps) -> None:
    pump = small(pumps)
    pump.submit("a:1", "go")
    pump.submit("b:1", "go")
    room = pump.client.fleet().room
    assert (room.size, room.share, room.live, room.tenants_waiting) == (1, 1, 1, 1)


def test_a_session_lets_no_more_turns_wait_than_the_deployment_says(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(says("done"))), max_waiting_turns_a_session=2)
    handles = [pump.submit("a:1", "go", request_key=f"key-{n}") for n in range(3)]
    with pytest.raises(QueueFull, match=r"2 turns of session 'a:1' wait, .*_A_SESSION=2 ") as refused:
        pump.submit("a:1", "go", request_key="key-3")
    told = error_response(refused.value)
    assert (told.status_code, told.headers["Retry-After"]) == (429, "5")
    assert pump.wiring.store.turns.by_key("key-3") is None, "nothing is stored"
    assert pump.submit("a:1", "go", request_key="key-2").turn_id == handles[2].turn_id, "it was accepted before"
    assert pump.submit("a:2", "go").turn_id, "another session is not full"
    newest = pump.submit("a:1", "go", on_busy="replace")
    assert pump.wiring.state.sessions.waiting("a:1") == [newest.turn_id]
    assert pump.submit("a:1", "go", request_key="key-3").created


def test_a_tenant_lets_no_more_sessions_wait_for_room(pumps: Pumps) -> None:
    pump = small(pumps, max_waiting_turns_a_tenant=2)
    for n in range(3):
        pump.submit(f"a:{n}", "go")
    for session_id in ("a:3", "a:0"):
        with pytest.raises(QueueFull, match=r"2 sessions of tenant 'a' wait for room, .*_A_TENANT=2 "):
            pump.submit(session_id, "go")
    assert pump.submit("b:1", "go").turn_id, "another tenant is not full"


def test_what_nobody_would_send_again_waits_however_many_do(pumps: Pumps) -> None:
    pump = small(pumps, max_waiting_turns_a_session=1)
    live, behind = pump.submit("a:1", "go"), pump.submit("a:1", "go")
    with pytest.raises(QueueFull):
        pump.submit("a:1", "go")
    foreign = {"session_id": "a:1", "user_message": "go", "turn_id": "theirs"}
    assert submit_foreign(pump.wiring, (), foreign) == "theirs"
    assert pump.wiring.state.sessions.waiting("a:1") == [behind.turn_id, "theirs"]
    receipt = live.steer("and this", client_message_id="late")
    assert receipt.state == "accepted"
    live.cancel()
    pump.settle(live)
    bounced = live.receipt("late")
    assert bounced.state == "bounced"
    assert bounced.bounced_turn_id
    assert pump.finish(pump.client.handle(bounced.bounced_turn_id)).ending is Ending.COMPLETED
