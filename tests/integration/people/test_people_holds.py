"""Holds and readiness: while one stands nothing that changes something starts; reads go on."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from brainq.client.handle import TurnHandle
from brainq.contracts.claim import CallRef, NoClaim
from brainq.contracts.people import HoldPolicy
from brainq.contracts.status import Effect, Ending
from brainq.engine.brain.brain import Brain
from brainq.engine.models.scripted import calls, says
from brainq.engine.tools.context import RunContext
from brainq.errors import InvalidInput
from tests.support.people import (
    Pumps,
    Watched,
    awaits,
    brain_of,
    events,
    lose_redis,
    parked_since,
    statuses,
    swept_until,
    take_call,
    time_is_up,
    turn_field,
    working,
)
from tests.support.pump import Bell, Pump
from tests.support.wait import wait_until

WRITE = calls(("look", {"name": "a"}), ("write", {"name": "b"}))


def intents(pump: Pump, handle: TurnHandle) -> list[str]:
    return [row.state for row in pump.wiring.store.calls.of_turn(handle.turn_id)]


def test_a_held_write_waits_and_its_turn_uses_up_no_time(pumps: Pumps) -> None:
    ran: list[str] = []
    model = Watched(WRITE, says("done"))
    pump = pumps(brain_of(model, ran))
    handle = pump.submit("s1", "Go.", limits={"timeout_s": 20})
    hold = handle.hold("looking at the plan", on_expiry="cancel")
    pump.drain()
    assert (ran, statuses(pump, handle)) == (["look a"], {"c1-0": "completed", "c1-1": "parked"})
    assert awaits(handle) == "parked people"
    parked_since(pump, handle, 60.0)
    pump.sweep()
    assert not pump.waiting()
    assert hold.release()
    assert not hold.release()
    result = pump.finish(handle)
    assert (result.ending, ran) == (Ending.COMPLETED, ["look a", "write b"])
    assert result.parked_ms >= 60_000
    assert model.results(2) == ["saw a", "wrote b"]
    told = [e.kind.value for e in events(handle)]
    for kind in ("hold.placed", "call.parked", "turn.parked", "hold.released", "turn.resumed"):
        assert told.count(kind) == 1, kind


def test_every_hold_must_be_released(pumps: Pumps) -> None:
    ran: list[str] = []
    pump = pumps(brain_of(Watched(WRITE, says("done")), ran))
    handle = pump.submit("s1", "Go.")
    one, two = handle.hold("one"), handle.hold("two")
    pump.drain()
    assert {hold.reason for hold in handle.holds()} == {"one", "two"}
    one.release()
    pump.drain()
    assert (ran, awaits(handle)) == (["look a"], "parked people")
    assert pump.client.handle(handle.turn_id).release(two.id)
    pump.finish(handle)
    assert ran == ["look a", "write b"]
    with pytest.raises(InvalidInput):
        handle.hold("too late")


def test_a_hold_on_a_turn_that_waits_for_its_session(pumps: Pumps) -> None:
    ran: list[str] = []
    model = Watched(says("done"))
    pump = pumps(brain_of(model, ran))
    first, second = pump.submit("s1", "one"), pump.submit("s1", "two")
    hold = second.hold()
    pump.finish(first)
    assert [h.id for h in second.holds()] == [hold.id]
    assert pump.finish(second).text == "later", "a turn that changes nothing is not kept from answering"


def lane_line(pumps: Pumps, ran: list[str]) -> tuple[Pump, TurnHandle, TurnHandle, Bell]:
    """Two sessions that want one note: the first has the lane and a doorbell not yet answered, the second waits."""
    pump = pumps(brain_of(_Notes(), ran))
    first = pump.submit("s1", "x")
    pump.drain("brainq.turns")
    bell = take_call(pump)
    second = pump.submit("s2", "x")
    pump.drain("brainq.turns")
    assert (statuses(pump, first), statuses(pump, second)) == ({"c1-0": "dispatched"}, {"c1-0": "waiting"})
    return pump, first, second, bell


class _Notes(Watched):
    """Each turn writes the note that its user names, then is done."""

    def _follow(self, request: Any) -> Any:
        named = next(m.content for m in request.messages if m.role == "user" and m.turn == request.turn_id)
        return calls(("note", {"name": named})) if request.step == 1 else says("done")


def test_a_hold_that_comes_while_the_write_waits_for_its_lane(pumps: Pumps) -> None:
    ran: list[str] = []
    pump, first, second, bell = lane_line(pumps, ran)
    hold = second.hold()
    pump.answer(bell)
    pump.drain()
    assert (ran, awaits(second)) == (["note x"], "parked people")
    assert intents(pump, second) == []
    third = pump.submit("s3", "x")
    swept_until(pump, lambda: pump.drain() or ran == ["note x"] * 2, "another session has the lane meanwhile")
    pump.finish(third)
    hold.release()
    pump.finish(second)
    pump.finish(first)
    assert ran == ["note x"] * 3


def test_a_hold_that_comes_while_the_write_is_on_its_way_to_a_worker(pumps: Pumps) -> None:
    ran: list[str] = []
    pump, first, second, bell = lane_line(pumps, ran)
    hold = first.hold()
    assert pump.answer(bell) == "dropped: held"
    assert (ran, awaits(first), intents(pump, first)) == ([], "parked people", [])
    swept_until(pump, lambda: pump.drain() or ran, "its lane is freed for another session")
    pump.finish(second)
    assert pump.answer(bell).startswith("dropped")
    hold.release()
    assert pump.finish(first).ending is Ending.COMPLETED
    assert ran == ["note x"] * 2
    assert intents(pump, first) == ["done"]


def test_a_held_call_stands_in_line_again_when_it_is_released(pumps: Pumps) -> None:
    ran: list[str] = []
    pump, first, second, bell = lane_line(pumps, ran)
    hold = first.hold()
    pump.answer(bell)
    swept_until(pump, lambda: statuses(pump, second)["c1-0"] == "dispatched", "the other session has the lane")
    other = take_call(pump)
    hold.release()
    assert statuses(pump, first)["c1-0"] == "waiting"
    assert not pump.waiting()
    pump.answer(other)
    assert statuses(pump, first)["c1-0"] == "dispatched"
    pump.finish(first)
    pump.finish(second)
    assert ran == ["note x"] * 2


def test_a_release_before_the_lane_has_lapsed_starts_the_call_once(pumps: Pumps) -> None:
    ran: list[str] = []
    pump, first, second, bell = lane_line(pumps, ran)
    hold = first.hold()
    pump.answer(bell)
    hold.release()
    pump.finish(first)
    pump.finish(second)
    assert ran == ["note x"] * 2


@pytest.mark.parametrize("effect", ["write", "again"])
def test_a_hold_meets_the_next_attempt_of_a_call_whose_worker_died(pumps: Pumps, effect: str) -> None:
    ran: list[str] = []
    brain = brain_of(Watched(calls((effect, {"name": "b"})), says("done")), ran)

    @brain.tool(effect=Effect.LOCAL_WRITE, idempotent=True)
    def again(name: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Write again."""
        ran.append(f"again {name}")
        return "ok"

    pump = pumps(brain)
    handle = pump.submit("s1", "Go.")
    pump.drain("brainq.turns")
    take_call(pump)
    assert not isinstance(pump.wiring.state.calls.claim(CallRef("s1", handle.turn_id, "c1-0"), 1, "dead"), NoClaim)
    swept_until(pump, pump.waiting, "it was asked for again")
    hold = handle.hold()
    assert pump.answer(take_call(pump)) == "dropped: held"
    assert awaits(handle) == "parked people"
    pump.sweep()
    hold.release()
    pump.finish(handle)
    assert ran == [f"{effect} b"]


def test_a_hold_that_denies_a_call_on_its_way_to_a_worker(pumps: Pumps) -> None:
    ran: list[str] = []
    pump, first, second, bell = lane_line(pumps, ran)
    first.hold(expires_in_s=0.05)
    wait_until(lambda: first.holds()[0].ends_in_ms <= 0, "its time is up")
    assert pump.answer(bell) == "dropped: held"
    assert statuses(pump, first) == {"c1-0": "denied"}
    pump.finish(first)
    pump.finish(second)
    assert ran == ["note x"], "the other session got the lane"


@pytest.mark.parametrize("on_timeout", ["deny", "release", "cancel"])
def test_a_hold_that_outlives_its_timeout(pumps: Pumps, on_timeout: HoldPolicy) -> None:
    ran: list[str] = []
    model = Watched(WRITE, says("done"))
    pump = pumps(brain_of(model, ran))
    handle = pump.submit("s1", "Go.")
    handle.hold("no answer", on_expiry=on_timeout)
    pump.drain()
    assert awaits(handle) == "parked people"
    time_is_up(pump, handle)
    result = pump.finish(handle)
    match on_timeout:
        case "deny":
            assert statuses(pump, handle)["c1-1"] == "denied"
            assert "nobody released them in time" in model.results(2)[1]
        case "release":
            assert ran == ["look a", "write b"]
        case "cancel":
            assert result.error == "a hold was not released in time: no answer"
    assert result.ending is (Ending.CANCELLED if on_timeout == "cancel" else Ending.COMPLETED)
    assert ("write b" in ran) == (on_timeout == "release")


def test_a_cancelling_hold_cancels_a_turn_whose_reads_still_run(pumps: Pumps) -> None:
    """It outlives its timeout though no call waits for it."""
    model = Watched(calls(("look", {"name": "a"})), says("done"))
    pump = pumps(brain_of(model))
    handle = pump.submit("s1", "Go.")
    handle.hold(expires_in_s=0.05, on_expiry="cancel")
    pump.drain("brainq.turns")
    bell = take_call(pump)
    swept_until(pump, lambda: turn_field(pump, handle, "cancel"), "it was cancelled")
    assert pump.answer(bell).startswith("dropped")
    assert pump.finish(handle).ending is Ending.CANCELLED


def test_a_turn_takes_the_oldest_flag_and_the_next_one_the_next(pumps: Pumps) -> None:
    ran: list[str] = []
    pump = pumps(brain_of(_Notes(), ran))
    session = pump.client.session("s1")
    old, new = session.readiness("old"), session.readiness("new")
    assert session.unread_flags() == (old.id, new.id)
    first, second = pump.submit("s1", "x"), pump.submit("s1", "y")
    pump.drain()
    assert [(h.kind, h.reason) for h in first.holds()] == [("readiness", "old")]
    assert (awaits(first), session.unread_flags()) == ("parked people", (new.id,))
    assert old.release()
    assert not old.release()
    pump.settle(first)
    assert [h.reason for h in second.holds()] == ["new"]
    assert session.flag(new.id).ready()
    pump.finish(second)
    assert ran == ["note x", "note y"]


def test_a_flag_that_is_ready_before_its_turn_holds_nothing(pumps: Pumps) -> None:
    ran: list[str] = []
    pump = pumps(brain_of(_Notes(), ran))
    flag = pump.client.session("s1").readiness()
    assert flag.release()
    handle = pump.submit("s1", "x")
    assert handle.holds() == ()
    pump.finish(handle)
    assert ran == ["note x"]
    assert pump.client.session("s1").unread_flags() == ()
    assert not flag.release()


def test_review_and_compaction_turns_take_no_flag(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(says("done"))))
    session = pump.client.session("s1")
    flag = session.readiness()
    review, compact = pump.submit("s1", "Look back.", kind="review"), session.compact()
    pump.finish(review)
    pump.finish(compact)
    assert session.unread_flags() == (flag.id,)
    chat = pump.submit("s1", "Go.")
    assert [h.id for h in chat.holds()] == [flag.id]


def test_an_empty_queue_of_flags_is_said_once_a_minute(pumps: Pumps, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "brainq.turn")
    pump = pumps(brain_of(Watched(says("done"))))
    pump.client.session("s1").readiness().release()
    pump.finish(pump.submit("s1", "It took a flag that was ready."))
    assert "no readiness flag" not in caplog.text
    pump.finish(pump.submit("s1", "Review.", kind="review"))
    assert "no readiness flag" not in caplog.text
    for _ in range(3):
        pump.finish(pump.submit("s1", "Go."))
    assert caplog.text.count("no readiness flag") == 1


def test_input_that_says_ready_lets_a_turn_go_on_that_waits_for_it(pumps: Pumps) -> None:
    """Nothing reads the mailbox of a parked turn: its word must not wait for a step that waits for the word."""
    ran: list[str] = []
    pump = pumps(brain_of(_Notes(), ran))
    flag = pump.client.session("s1").readiness()
    handle = pump.submit("s1", "x")
    other = handle.hold("another")
    pump.drain()
    assert handle.steer("", client_message_id="m1", readiness=True).state == "accepted"
    assert [h.id for h in handle.holds()] == [other.id], "only the readiness hold is lifted"
    assert not flag.release()
    other.release()
    pump.finish(handle)
    assert ran == ["note x"]
    assert handle.receipt("m1").state == "consumed"


def test_a_tool_may_wait_for_readiness_itself(pumps: Pumps) -> None:
    answers: list[bool] = []
    brain = Brain("waits", Watched(calls(("look", {})), says("done")))

    @brain.tool(effect=Effect.READ_ONLY)
    def look(context: RunContext) -> str:  # pyright: ignore[reportUnusedFunction]
        """Look."""
        answers.append(context.wait_ready(timeout_s=0.01))
        answers.append(context.wait_ready())
        return "ready"

    pump = pumps(brain)
    handle = pump.submit("s1", "Go.")
    hold = handle.hold()
    with working(pump):
        wait_until(lambda: answers == [False], "the tool waits")
        hold.release()
    assert pump.finish(handle).text == "done"
    assert answers == [False, True]


WRITE_ONCE = calls(("write", {"name": "b"}))


def held_until_said(pump: Pump, handle: TurnHandle, ran: list[str]) -> None:
    """The turn waits with its write, and goes on when it is said to be ready."""
    pump.drain()
    assert (ran, awaits(handle)) == ([], "parked people")
    (hold,) = handle.holds()
    assert hold.kind == "readiness"
    handle.steer("", readiness=True)
    pump.finish(handle)
    assert ran == ["write b"]


class _Writes(Watched):
    """Each turn writes once."""

    def _follow(self, request: Any) -> Any:
        return WRITE_ONCE if request.step == 1 else says("done")


def test_input_that_is_not_ready_takes_its_word_into_the_turn_it_becomes(pumps: Pumps) -> None:
    ran: list[str] = []
    pump = pumps(brain_of(_Writes(), ran))
    over = pump.submit("s1", "Go.")
    pump.finish(over)
    ran.clear()
    receipt = over.steer("And that.", readiness=False)
    assert receipt.bounced_turn_id
    held_until_said(pump, pump.client.handle(receipt.bounced_turn_id), ran)


def test_input_that_opens_a_session_takes_its_word_into_its_turn(pumps: Pumps) -> None:
    ran: list[str] = []
    pump = pumps(brain_of(_Writes(), ran))
    receipt = pump.client.session("s1").steer("Go.", readiness=False)
    assert receipt.bounced_turn_id
    held_until_said(pump, pump.client.handle(receipt.bounced_turn_id), ran)


def test_a_submit_that_becomes_input_takes_its_word_along(pumps: Pumps) -> None:
    ran: list[str] = []
    pump = pumps(brain_of(_Writes(), ran))
    live = pump.submit("s1", "Go.")
    joined = pump.submit("s1", "Wait for me.", on_busy="steer", readiness=False)
    assert joined.turn_id == live.turn_id
    held_until_said(pump, live, ran)


def test_a_submit_that_is_not_ready_is_held_and_stays_so_when_redis_loses_it(pumps: Pumps) -> None:
    ran: list[str] = []
    pump = pumps(brain_of(_Writes(), ran))
    handle = pump.submit("s1", "Go.", readiness=False)
    lose_redis(pump)
    held_until_said(pump, handle, ran)
