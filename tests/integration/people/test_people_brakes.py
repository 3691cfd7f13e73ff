"""P18: holds, flags, cancels and readiness stand in SQL before anybody is promised one, and outlive Redis' data."""

from __future__ import annotations

from typing import Any

import pytest

from brainq.adapters.celery import names
from brainq.client.connection import wiring_of
from brainq.client.handle import TurnHandle
from brainq.contracts.people import HoldPolicy
from brainq.contracts.status import Ending
from brainq.engine.models.scripted import calls, says
from brainq.errors import InvalidInput, Unreachable
from tests.support.people import Pumps, Watched, awaits, brain_of, lose_redis, statuses, turn_field
from tests.support.pump import Pump

WRITE = calls(("write", {"name": "b"}))


class Writes(Watched):
    """Each turn writes once."""

    def _follow(self, request: Any) -> Any:
        return WRITE if request.step == 1 else says("done")


def held_until_released(pump: Pump, handle: TurnHandle, hold_id: str, ran: list[str]) -> None:
    pump.drain()
    assert (ran, awaits(handle)) == ([], "parked people")
    assert [hold.id for hold in handle.holds()] == [hold_id]
    assert handle.release(hold_id)
    assert pump.finish(handle).ending is Ending.COMPLETED
    assert ran == ["write b"]


@pytest.mark.parametrize("when", ["before it began", "while it waits with its write"])
def test_a_hold_outlives_redis_data(pumps: Pumps, when: str) -> None:
    ran: list[str] = []
    pump = pumps(brain_of(Writes(), ran))
    handle = pump.submit("s1", "Go.")
    hold = handle.hold("looking", expires_in_s=600.0)
    if when != "before it began":
        pump.drain()
    lose_redis(pump)
    (standing,) = handle.holds()
    assert (standing.reason, standing.on_timeout, standing.kind) == ("looking", "deny", "hold")
    assert 590_000 < standing.ends_in_ms <= 600_000
    held_until_released(pump, handle, hold.id, ran)
    assert not pump.wiring.store.brakes.of_turn("s1", handle.turn_id)


def test_a_hold_that_was_released_does_not_come_back(pumps: Pumps) -> None:
    ran: list[str] = []
    pump = pumps(brain_of(Writes(), ran))
    handle = pump.submit("s1", "Go.")
    handle.hold().release()
    lose_redis(pump)
    pump.finish(handle)
    assert ran == ["write b"]


def test_a_submits_own_readiness_that_was_released_does_not_come_back(pumps: Pumps) -> None:
    ran: list[str] = []
    pump = pumps(brain_of(Writes(), ran))
    handle = pump.submit("s1", "Go.", readiness=False)
    (hold,) = handle.holds()
    assert handle.release(hold.id)
    lose_redis(pump)
    pump.finish(handle)
    assert ran == ["write b"]


def test_a_hold_that_is_released_while_its_turn_is_put_back_does_not_stand(
    pumps: Pumps, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    pump = pumps(brain_of(Writes(), ran))
    handle = pump.submit("s1", "Go.")
    hold = handle.hold()
    rows, released = pump.wiring.store.brakes, list[bool]()
    read = rows.of_turn

    def released_meanwhile(session_id: str, turn_id: str) -> Any:
        found = read(session_id, turn_id)
        if not released:
            released.append(handle.release(hold.id))
        return found

    with monkeypatch.context() as patched:
        patched.setattr(rows, "of_turn", released_meanwhile)
        lose_redis(pump)
    assert released == [True]
    assert not handle.holds()
    pump.finish(handle)
    assert ran == ["write b"]


def test_a_hold_stands_on_a_turn_that_a_producer_queues_again_before_the_sweeper(pumps: Pumps) -> None:
    ran: list[str] = []
    pump = pumps(brain_of(Writes(), ran))
    handle = pump.submit("s1", "Go.")
    hold = handle.hold()
    client: Any = pump.wiring.state.redis
    client.flushall()
    assert handle.steer("And that.").state == "accepted"
    held_until_released(pump, handle, hold.id, ran)


@pytest.mark.parametrize("on_timeout", ["deny", "cancel"])
def test_a_hold_whose_time_ran_out_while_redis_was_gone_follows_its_policy(
    pumps: Pumps, on_timeout: HoldPolicy
) -> None:
    ran: list[str] = []
    pump = pumps(brain_of(Writes(), ran))
    handle = pump.submit("s1", "Go.")
    handle.hold(expires_in_s=0.001, on_expiry=on_timeout)
    lose_redis(pump)
    result = pump.finish(handle)
    assert (ran, result.ending is Ending.CANCELLED) == ([], on_timeout == "cancel")


def test_a_hold_that_only_redis_lost_is_met_by_the_write_that_was_on_its_way(pumps: Pumps) -> None:
    """A failover loses the last second: the turn is there, its hold is not."""
    ran: list[str] = []
    pump = pumps(brain_of(Writes(), ran))
    handle = pump.submit("s1", "Go.")
    hold = handle.hold()
    client: Any = pump.wiring.state.redis
    client.hdel(pump.wiring.state.keys.turn("s1", handle.turn_id), "holds")
    pump.drain()
    assert not ran
    assert [standing.id for standing in handle.holds()] == [hold.id]
    while statuses(pump, handle)["c1-0"] != "parked":
        pump.sweep()
        pump.drain()
    held_until_released(pump, handle, hold.id, ran)


def test_a_hold_that_only_redis_lost_is_put_back_by_the_sweeper(pumps: Pumps) -> None:
    pump = pumps(brain_of(Writes()))
    handle = pump.submit("s1", "Go.")
    hold = handle.hold()
    client: Any = pump.wiring.state.redis
    client.hdel(pump.wiring.state.keys.turn("s1", handle.turn_id), "holds")
    assert pump.wiring.people.brakes.heal(0).healed == 1
    assert [standing.id for standing in handle.holds()] == [hold.id]
    assert pump.wiring.people.brakes.heal(0).healed == 0
    hold.release()
    assert pump.wiring.people.brakes.heal(0).healed == 0


def test_a_hold_that_redis_refuses_keeps_no_other_from_being_put_back(pumps: Pumps) -> None:
    pump = pumps(brain_of(Writes()))
    client: Any = pump.wiring.state.redis
    keys = pump.wiring.state.keys
    broken, handle = pump.submit("s0", "Go."), pump.submit("s1", "Go.")
    broken.hold()
    hold = handle.hold()
    client.set(keys.turn("s0", broken.turn_id), "not a turn")
    client.hdel(keys.turn("s1", handle.turn_id), "holds")
    page = pump.wiring.people.brakes.heal(0)
    assert (page.healed, page.more) == (1, False)
    assert [standing.id for standing in handle.holds()] == [hold.id]


def test_a_flag_outlives_redis_data_before_a_turn_takes_it(pumps: Pumps) -> None:
    ran: list[str] = []
    pump = pumps(brain_of(Writes(), ran))
    flag = pump.client.session("s1").readiness("loading")
    client: Any = pump.wiring.state.redis
    client.flushall()
    handle = pump.submit("s1", "Go.")
    held_until_released(pump, handle, flag.id, ran)


def test_a_flag_outlives_redis_data_after_a_turn_took_it_and_is_that_turns_alone(pumps: Pumps) -> None:
    ran: list[str] = []
    pump = pumps(brain_of(Writes(), ran))
    session = pump.client.session("s1")
    flag = session.readiness()
    first, second = pump.submit("s1", "Go."), pump.submit("s1", "And go.")
    pump.drain()
    lose_redis(pump)
    pump.drain()
    assert (ran, awaits(first), session.unread_flags()) == ([], "parked people", ())
    assert flag.ready()
    pump.finish(first)
    pump.finish(second)
    assert ran == ["write b", "write b"]


def test_a_flag_that_input_lifted_stays_lifted_in_sql(pumps: Pumps) -> None:
    """Else SQL would keep the write from starting for a brake that stands no longer."""
    ran: list[str] = []
    pump = pumps(brain_of(Writes(), ran))
    pump.client.session("s1").readiness()
    handle = pump.submit("s1", "Go.")
    handle.steer("", readiness=True)
    pump.finish(handle)
    assert ran == ["write b"]
    assert not pump.wiring.store.brakes.of_turn("s1", handle.turn_id)


def test_a_flag_whose_turn_read_that_it_is_ready_with_its_first_step(pumps: Pumps) -> None:
    ran: list[str] = []
    pump = pumps(brain_of(Writes(), ran))
    pump.finish(pump.submit("s1", "One."))
    ran.clear()
    session = pump.client.session("s1")
    live = pump.submit("s1", "Two.")
    session.readiness()
    waits = pump.submit("s1", "Three.")
    waits.steer("", readiness=True)
    pump.finish(live)
    pump.finish(waits)
    assert ran == ["write b", "write b"]


def test_a_cancel_outlives_redis_data(pumps: Pumps) -> None:
    ran: list[str] = []
    pump = pumps(brain_of(Writes(), ran))
    live, waits = pump.submit("s1", "Go."), pump.submit("s1", "And go.")
    assert (live.cancel("enough"), waits.cancel()) == ("requested", "cancelled")
    lose_redis(pump)
    result = pump.finish(live)
    assert (result.ending, result.error) == (Ending.CANCELLED, "enough")
    assert pump.finish(waits).ending is Ending.CANCELLED
    assert not ran


def test_a_cancel_that_came_before_its_turn_is_in_no_later_ones_way(pumps: Pumps) -> None:
    pump = pumps(brain_of(Writes(), []))
    assert pump.client.cancel("s1", "turn-1") == "ended"
    handle = pump.submit("s1", "Go.", turn_id="turn-1")
    assert handle.cancel("enough") == "requested"
    lose_redis(pump)
    assert pump.finish(handle).ending is Ending.CANCELLED


def test_what_an_interrupting_submit_stopped_stays_stopped(pumps: Pumps) -> None:
    ran: list[str] = []
    pump = pumps(brain_of(Writes(), ran))
    live = pump.submit("s1", "Go.")
    pump.submit("s1", "No.", on_busy="interrupt")
    lose_redis(pump)
    assert pump.finish(live).ending is Ending.CANCELLED


def test_a_cancel_is_written_down_while_redis_is_away_and_keeps_writes_from_starting(
    pumps: Pumps, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    pump = pumps(brain_of(Writes(), ran))
    handle = pump.submit("s1", "Go.")
    pump.drain(names.TURNS_QUEUE)

    def away(*_: object, **__: object) -> str:
        raise ConnectionError("Redis is away")

    with monkeypatch.context() as gone:
        gone.setattr(wiring_of(pump.client).state.turns, "cancel", away)
        with pytest.raises(Unreachable):
            handle.cancel("enough")
    assert not turn_field(pump, handle, "cancel")
    pump.drain()
    assert not ran
    assert pump.finish(handle).ending is Ending.CANCELLED


def test_nothing_stands_after_a_turn_has_ended(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(says("done"))))
    handle = pump.submit("s1", "Go.")
    handle.hold()
    pump.finish(handle)
    with pytest.raises(InvalidInput):
        handle.hold()
    assert handle.cancel() == "ended"
    pump.wiring.people.brakes.heal(0)
    assert not pump.wiring.store.brakes.of_turn("s1", handle.turn_id)


def test_input_is_given_back_in_the_same_script_as_its_turn(pumps: Pumps, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweeper that dies right after it has queued the turn must not cost it what it had read."""
    model = Watched(calls(("look", {"name": "a"})), says("done"))
    pump = pumps(brain_of(model))
    handle = pump.submit("s1", "Go.")
    handle.steer("one", client_message_id="m1")
    pump.drain(names.TURNS_QUEUE)

    class Killed(BaseException): ...

    turn_queue: Any = pump.wiring.people.turn_queue
    submit = turn_queue._submit

    def dies(*given: Any, **named: Any) -> None:
        submit(*given, **named)
        raise Killed

    with monkeypatch.context() as dying:
        dying.setattr(turn_queue, "_submit", dies)
        with pytest.raises(Killed):
            lose_redis(pump)
    pump.finish(handle)
    assert [text for role, text in model.shown(1) if role == "user"][1].startswith("one")
    assert handle.receipt("m1").state == "consumed"


@pytest.mark.parametrize("decision", ["approve", "deny"])
def test_a_decision_outlives_redis_data_and_nobody_is_asked_again(pumps: Pumps, decision: str) -> None:
    ran: list[str] = []
    look_first = Watched(calls(("write", {"name": "b"}), ("note", {"name": "c"})), says("done"))
    pump = pumps(brain_of(look_first, ran, approval=True))
    handle = pump.submit("s1", "Go.")
    hold = handle.hold()
    pump.drain()
    (asked,) = pump.client.approvals()
    if decision == "approve":
        pump.client.approve(asked.id, by="ann")
    else:
        pump.client.deny(asked.id, "no", by="ann")
    lose_redis(pump)
    pump.drain()
    assert pump.client.approval(asked.id).state == "pending", "Redis asks again"
    assert pump.wiring.people.approval_healer.heal(0).healed == 1
    seen = pump.client.approval(asked.id)
    assert (seen.state, seen.decided_by) == ("approved" if decision == "approve" else "denied", "ann")
    assert pump.wiring.people.approval_healer.heal(0).healed == 0
    hold.release()
    pump.finish(handle)
    assert ("write b" in ran) == (decision == "approve")


def test_a_question_about_other_arguments_is_asked_and_shown_again(pumps: Pumps) -> None:
    ran: list[str] = []
    pump = pumps(brain_of(Writes(), ran, approval=True))
    handle = pump.submit("s1", "Go.")
    hold = handle.hold()
    pump.drain()
    (asked,) = pump.client.approvals()
    pump.client.edit(asked.id, {"name": "other"}, by="ann")
    assert pump.client.approvals() == ()
    lose_redis(pump)
    pump.drain()
    (again,) = pump.client.approvals()
    assert (again.id, again.state, again.arguments) == (asked.id, "pending", {"name": "b"})
    pump.wiring.people.approval_healer.heal(0)
    assert pump.client.approval(asked.id).state == "pending"
    hold.release()
    pump.client.approve(asked.id)
    pump.finish(handle)
    assert ran == ["write b"]
