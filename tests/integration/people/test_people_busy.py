"""What a submit does to a session that is busy, and a session's queue in the hands of its producer."""

from __future__ import annotations

import pytest

from brainq.client.handle import TurnHandle
from brainq.contracts.status import Awaits, Ending, StopReason
from brainq.contracts.turn import OnBusy
from brainq.engine.models.scripted import calls, says
from brainq.engine.people.turn_queue import TurnQueue
from brainq.engine.turn.prompt.request_messages import INPUT_FRAME
from brainq.errors import SessionBusy, SubmitConflict, TurnRejected
from tests.support.people import Pumps, Watched, brain_of, history, lose_redis, turn_field
from tests.support.pump import Pump


def asked(pump: Pump) -> list[str]:
    """The user's messages of the session's conversation."""
    return [m.content for m in history(pump) if m.role == "user" and not m.extra]


def three(pump: Pump, on_busy: OnBusy) -> tuple[TurnHandle, TurnHandle, TurnHandle]:
    """A live turn, one that waits, and a third that is submitted with `on_busy`."""
    live, waits = pump.submit("s1", "one"), pump.submit("s1", "two")
    return live, waits, pump.submit("s1", "three", on_busy=on_busy)


def test_enqueue_waits_in_order(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(says("done"))))
    handles = three(pump, "enqueue")
    session = pump.client.session("s1")
    assert session.live() == handles[0].turn_id
    assert [(turn.turn_id, turn.place) for turn in session.waiting()] == [
        (handles[1].turn_id, 1),
        (handles[2].turn_id, 2),
    ]
    for handle in handles:
        assert pump.finish(handle).ending is Ending.COMPLETED
    assert asked(pump) == ["one", "two", "three"]
    assert (session.live(), session.waiting()) == (None, ())


def test_steer_goes_into_the_live_turn(pumps: Pumps) -> None:
    model = Watched(says("done"))
    pump = pumps(brain_of(model))
    live, _, joined = three(pump, "steer")
    assert (joined.turn_id, joined.created) == (live.turn_id, False)
    assert joined.joined is not None
    assert joined.joined.state == "accepted"
    pump.finish(live)
    assert model.shown(1) == [("user", "one"), ("user", "three" + INPUT_FRAME)]


def test_steer_into_an_idle_session_is_a_turn(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(says("done"))))
    handle = pump.submit("s1", "one", on_busy="steer")
    assert handle.joined is None
    assert pump.finish(handle).text == "done"


def test_interrupt_stops_the_live_turn_and_runs_before_those_that_wait(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(says("done"))))
    live, waits, new = three(pump, "interrupt")
    assert [turn.turn_id for turn in pump.client.session("s1").waiting()] == [new.turn_id, waits.turn_id]
    result = pump.finish(live)
    assert (result.ending, result.error) == (Ending.CANCELLED, f"interrupted by turn {new.turn_id}")
    assert pump.finish(new).ending is pump.finish(waits).ending is Ending.COMPLETED
    assert asked(pump) == ["three", "two"]


def test_interrupt_stops_a_turn_that_waits_for_people(pumps: Pumps) -> None:
    ran: list[str] = []
    model = Watched(calls(("write", {"name": "a"})), says("done"))
    pump = pumps(brain_of(model, ran, approval=True))
    live = pump.submit("s1", "one")
    pump.drain()
    new = pump.submit("s1", "two", on_busy="interrupt")
    assert pump.finish(live).ending is Ending.CANCELLED
    assert pump.finish(new).text == "later"
    assert not ran


def test_replace_drops_those_that_wait_as_well(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(says("done"))))
    live, waits, new = three(pump, "replace")
    assert [turn.turn_id for turn in pump.client.session("s1").waiting()] == [new.turn_id]
    assert pump.finish(live).ending is Ending.CANCELLED
    dropped = pump.finish(waits)
    assert (dropped.ending, dropped.error) == (Ending.CANCELLED, f"replaced by turn {new.turn_id}")
    assert pump.finish(new).ending is Ending.COMPLETED
    assert asked(pump) == ["three"]


def test_reject_refuses_and_leaves_a_row_that_says_so(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(says("done"))))
    live = pump.submit("s1", "one")
    with pytest.raises(SessionBusy) as busy:
        pump.submit("s1", "two", on_busy="reject", request_key="k1", turn_id="turn-2")
    assert busy.value.live_turn_id == live.turn_id
    row = pump.wiring.store.turns.get("turn-2")
    assert row is not None
    assert row.state == "rejected"
    with pytest.raises(TurnRejected):
        pump.submit("s1", "two", on_busy="reject", request_key="k1")
    pump.finish(live)
    with pytest.raises(TurnRejected):
        pump.submit("s1", "two", on_busy="reject", request_key="k1")
    assert pump.finish(pump.submit("s1", "two", on_busy="reject", request_key="k2")).text == "later"
    assert asked(pump) == ["one", "two"]


def test_a_rejected_turn_is_not_queued_by_the_sweeper(pumps: Pumps) -> None:
    """Its producer died between SQL and Redis: the sweeper queues it, unless the session is busy."""
    pump = pumps(brain_of(Watched(says("done"))))
    live = pump.submit("s1", "one")
    with pytest.raises(SessionBusy):
        pump.submit("s1", "two", on_busy="reject")
    pump.finish(live)
    assert pump.wiring.sweeper.checks.lost_turns.compare(0).healed == 0
    assert not pump.waiting()


def test_merge_joins_the_newest_that_waits(pumps: Pumps) -> None:
    model = Watched(says("done"))
    pump = pumps(brain_of(model))
    live, waits, joined = three(pump, "merge")
    assert joined.turn_id == waits.turn_id
    assert joined.joined is not None
    pump.finish(live)
    pump.finish(waits)
    # It belongs to the question itself, and no word says that a task was under way.
    assert model.shown(1, waits.turn_id)[-2:] == [("user", "two"), ("user", "three")]


def test_merge_where_none_waits_is_a_turn_that_waits(pumps: Pumps) -> None:
    model = Watched(says("done"))
    pump = pumps(brain_of(model))
    live = pump.submit("s1", "one")
    second = pump.submit("s1", "two", on_busy="merge")
    third = pump.submit("s1", "three", on_busy="merge")
    assert second.turn_id not in (live.turn_id, "")
    assert third.turn_id == second.turn_id
    pump.finish(live)
    assert pump.finish(second).text == "later"
    assert model.shown(1, second.turn_id)[-2:] == [("user", "two"), ("user", "three")]


@pytest.mark.parametrize("on_busy", ["enqueue", "steer", "interrupt", "replace", "merge"])
def test_the_same_request_again_enters_where_it_entered_first(pumps: Pumps, on_busy: OnBusy) -> None:
    model = Watched(says("done"))
    pump = pumps(brain_of(model))
    live, waits = pump.submit("s1", "one"), pump.submit("s1", "two")
    first = pump.submit("s1", "three", on_busy=on_busy, request_key="k1")
    again = pump.submit("s1", "three", on_busy=on_busy, request_key="k1")
    assert (again.turn_id, again.created) == (first.turn_id, False)
    assert again.joined == first.joined
    with pytest.raises(SubmitConflict):
        pump.submit("s1", "other", on_busy=on_busy, request_key="k1")
    for handle in (live, first, waits):
        pump.finish(handle)
    late = pump.submit("s1", "three", on_busy=on_busy, request_key="k1")
    assert (late.turn_id, late.created) == (first.turn_id, False)
    assert not pump.waiting()
    assert [m.content for m in history(pump) if m.role == "user"].count("three") == 1


def test_a_steered_request_that_came_too_late_is_found_again(pumps: Pumps) -> None:
    """It was to go into a turn that had no steps left, and became a turn: the same request again is that turn."""
    model = Watched(says("done"))
    pump = pumps(brain_of(model))
    live = pump.submit("s1", "one", limits={"max_steps": 1})
    model.meanwhile[1] = lambda: pump.submit("s1", "two", on_busy="steer", request_key="k1")
    pump.finish(live)
    again = pump.submit("s1", "two", on_busy="steer", request_key="k1")
    assert again.turn_id.startswith("in-")
    assert pump.finish(again).text == "later"
    assert pump.submit("s1", "two", on_busy="steer", request_key="k1").turn_id == again.turn_id


def test_pause_lets_the_live_turn_go_on_and_begins_no_other(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(says("done"))))
    session = pump.client.session("s1")
    live = pump.submit("s1", "one")
    assert session.pause()
    assert not session.pause()
    waits = pump.submit("s1", "two")
    assert pump.finish(live).text == "done"
    pump.sweep()
    assert not pump.waiting()
    assert (session.live(), session.is_paused()) == (None, True)
    assert session.resume() == waits.turn_id
    assert session.resume() is None
    assert pump.finish(waits).text == "later"


def test_a_paused_idle_session_keeps_what_is_submitted(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(says("done"))))
    session = pump.client.session("s1")
    session.pause("Mia looks into it")
    handle = pump.submit("s1", "one")
    assert not pump.waiting()
    seen = handle.snapshot()
    assert seen is not None
    assert (seen.awaits, seen.waiting_behind) == (Awaits.PAUSED, 0)
    said = handle.explain()
    assert said.startswith("queued: session s1 is paused")
    assert " (Mia looks into it); `brainq resume s1` lets it begin" in said
    (listed,) = pump.client.turns()
    assert listed.awaits is Awaits.PAUSED
    assert "`brainq resume s1` lets it begin" in listed.note
    assert handle.cancel() == "cancelled"
    assert pump.finish(handle).ending is Ending.CANCELLED
    assert session.resume() is None


def test_drop_takes_a_turn_that_waits_and_no_other(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(says("done"))))
    live, waits, last = three(pump, "enqueue")
    session = pump.client.session("s1")
    assert not session.drop(live.turn_id)
    assert session.drop(waits.turn_id)
    assert not session.drop(waits.turn_id)
    assert not turn_field(pump, live, "cancel")
    result = pump.finish(waits)
    assert (result.ending, result.stop_reason) == (Ending.CANCELLED, StopReason.CANCELLED)
    pump.finish(live)
    pump.finish(last)
    assert asked(pump) == ["one", "three"]


def test_the_queue_comes_back_in_order_after_redis_lost_it(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(says("done"))))
    live, waits, last = three(pump, "enqueue")
    lose_redis(pump)
    for handle in (live, waits, last):
        assert pump.finish(handle).ending is Ending.COMPLETED
    assert asked(pump) == ["one", "two", "three"]


def test_a_queue_that_is_rebuilt_interrupts_nobody(pumps: Pumps) -> None:
    """What an interrupt was to stop has ended. Queued again from SQL, it must not stop who waited behind it."""
    pump = pumps(brain_of(Watched(says("done"))))
    live, waits, new = three(pump, "interrupt")
    while pump.wiring.store.turns.result(live.turn_id) is None:
        bell = pump.take("brainq.finalize", "brainq.turns")
        assert bell is not None
        pump.answer(bell)
    assert pump.client.session("s1").live() == new.turn_id
    lose_redis(pump)
    assert pump.finish(waits).ending is pump.finish(new).ending is Ending.COMPLETED


def test_an_interrupt_whose_producer_died_interrupts(pumps: Pumps, monkeypatch: pytest.MonkeyPatch) -> None:
    pump = pumps(brain_of(Watched(says("done"))))
    live = pump.submit("s1", "one")
    with monkeypatch.context() as dying:
        dying.setattr(TurnQueue, "queue", _dies)
        with pytest.raises(KeyboardInterrupt):
            pump.submit("s1", "two", on_busy="interrupt", turn_id="turn-2")
    assert pump.wiring.sweeper.checks.lost_turns.compare(0).healed == 1
    assert pump.finish(live).ending is Ending.CANCELLED
    assert pump.finish(pump.client.handle("turn-2")).ending is Ending.COMPLETED


def _dies(*_: object) -> None:
    raise KeyboardInterrupt
