"""Cancel: a mark that outlives every process; what runs has a grace, what was said is kept, nothing new starts."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from brainq.client.handle import TurnHandle
from brainq.contracts.claim import NoClaim
from brainq.contracts.event import EventKind
from brainq.contracts.model import ModelChunk, ModelRequest
from brainq.contracts.status import Effect, Ending, StopReason, TraceStatus
from brainq.engine.brain.brain import Brain
from brainq.engine.models.scripted import ScriptedProvider, calls, says
from brainq.engine.tools.context import RunContext
from tests.support.brains import diary
from tests.support.people import (
    Pumps,
    Watched,
    brain_of,
    events,
    history,
    statuses,
    swept_until,
    take_call,
    turn_field,
    working,
)
from tests.support.pump import Pump
from tests.support.wait import wait_until

MARKER = "[The user cancelled this turn before it was answered.]"


class Work:
    """A tool that runs until it is let go, and what it saw."""

    def __init__(self, effect: Effect, *, heeds: bool) -> None:
        self.running, self.go = threading.Event(), threading.Event()
        self.brain = Brain("works", Watched(calls(("work", {}), text="Let me see."), says("done")))
        heed = heeds

        @self.brain.tool(effect=effect)
        def work(context: RunContext) -> str:  # pyright: ignore[reportUnusedFunction]
            """Work."""
            self.running.set()
            if heed:
                context.token.wait(30.0)
                raise TimeoutError("it was told to stop")
            self.go.wait(30.0)
            return "worked"


def to_work(pump: Pump, work: Work) -> TurnHandle:
    handle = pump.submit("s1", "Go.")
    pump.drain("brainq.turns")
    return handle


def said(pump: Pump, call_id: str = "c1-0") -> str:
    (message,) = [m for m in history(pump) if m.role == "tool" and m.call_id == call_id]
    return message.content


def test_a_read_that_heeds_its_token_ends_itself(pumps: Pumps) -> None:
    work = Work(Effect.READ_ONLY, heeds=True)
    pump = pumps(work.brain)
    handle = to_work(pump, work)
    with working(pump):
        assert work.running.wait(60)
        assert handle.cancel("never mind") == "requested"
    result = pump.finish(handle)
    assert (result.ending, result.stop_reason) == (Ending.CANCELLED, StopReason.CANCELLED)
    assert result.error == "never mind"
    assert statuses(pump, handle) == {"c1-0": "cancelled"}
    assert re.fullmatch(r"Cancelled after \d+\.\d s\.", said(pump))


def test_a_write_that_returns_within_the_grace_is_completed(pumps: Pumps) -> None:
    work = Work(Effect.LOCAL_WRITE, heeds=False)
    pump = pumps(work.brain)
    handle = to_work(pump, work)
    with working(pump):
        assert work.running.wait(60)
        handle.cancel()
        work.go.set()
    assert pump.finish(handle).ending is Ending.CANCELLED
    assert statuses(pump, handle) == {"c1-0": "completed"}
    assert said(pump).startswith("worked")
    (row,) = pump.wiring.store.calls.of_turn(handle.turn_id)
    assert (row.state, row.outcome_kind) == ("done", "success")


def test_a_write_that_ignores_the_cancel_is_unknown_and_its_end_is_told_later(pumps: Pumps) -> None:
    work = Work(Effect.LOCAL_WRITE, heeds=False)
    pump = pumps(work.brain, cancel_grace_s=0.3)
    handle = to_work(pump, work)
    with working(pump):
        assert work.running.wait(60)
        handle.cancel()
    assert pump.finish(handle).ending is Ending.CANCELLED
    assert statuses(pump, handle) == {"c1-0": "unknown"}
    assert "whether it took effect is not known" in said(pump).lower()
    (row,) = pump.wiring.store.calls.of_turn(handle.turn_id)
    assert row.outcome_kind == "unknown"
    work.go.set()

    def late() -> bool:
        (row,) = pump.wiring.store.calls.of_turn(handle.turn_id)
        return (row.outcome_kind, row.late) == ("success", True)

    wait_until(late, "the late end is evidence")
    client: Any = pump.wiring.state.redis
    wait_until(lambda: client.llen(pump.wiring.state.keys.of_session("s1", "notices")), "the next turn is to be told")
    pump.finish(pump.submit("s1", "And now?"))
    assert any("succeeded after all" in m.content for m in history(pump))


def test_a_read_that_ignores_the_cancel_holds_nobody_up(pumps: Pumps) -> None:
    work = Work(Effect.READ_ONLY, heeds=False)
    pump = pumps(work.brain, cancel_grace_s=0.3)
    handle = to_work(pump, work)
    with working(pump):
        assert work.running.wait(60)
        handle.cancel()
    assert pump.finish(handle).ending is Ending.CANCELLED
    assert statuses(pump, handle) == {"c1-0": "cancelled"}
    work.go.set()


isolated_brain = Brain("isolated", ScriptedProvider([calls(("hang", {})), says("done")]))


@isolated_brain.tool(effect=Effect.LOCAL_WRITE, isolation="process")
def hang(context: RunContext) -> str:
    """Hang, whatever its token says."""
    diary.note("start")
    threading.Event().wait(3600.0)
    return "never"


def test_a_tool_in_a_process_of_its_own_is_killed(pumps: Pumps) -> None:
    pump = pumps(isolated_brain, app="tests.integration.people.test_people_cancel:isolated_brain")
    handle = pump.submit("s1", "Go.")
    pump.drain("brainq.turns")
    with working(pump):
        wait_until(lambda: diary.notes("start"), "it runs", timeout_s=60)
        handle.cancel()
    (started,) = diary.notes("start")
    with pytest.raises(ProcessLookupError):
        os.kill(started["pid"], 0)
    assert pump.finish(handle).ending is Ending.CANCELLED
    assert statuses(pump, handle) == {"c1-0": "unknown"}


def test_the_marker_is_in_the_history_before_the_ending_is_announced(
    pumps: Pumps, monkeypatch: pytest.MonkeyPatch
) -> None:
    pump = pumps(brain_of(Watched(calls(("look", {"name": "a"})), says("done"))))
    handle = pump.submit("s1", "Go.")
    pump.drain("brainq.turns")
    handle.cancel()
    bell = pump.take("brainq.turns")
    assert bell is not None
    pump.answer(bell)
    kinds = [event.kind for event in handle.events_so_far()]
    assert kinds[-1] is EventKind.TURN_CLOSING
    assert [m.content for m in history(pump)][-1] == MARKER
    # One script does both, so no reader of events can be faster than the marker.
    assert [m.role for m in history(pump)] == ["user", "assistant", "tool", "user"]
    pump.finish(handle)


class Slow(ScriptedProvider):
    """Says one word, then one every 50 ms, for 20 s."""

    def __init__(self) -> None:
        super().__init__([says("unused")])
        self.began, self.stopped_at = threading.Event(), 0.0

    def generate_stream(self, request: ModelRequest) -> Iterator[ModelChunk]:
        try:
            for number in range(400):
                yield ModelChunk(text=f"word{number} ")
                self.began.set()
                threading.Event().wait(0.05)
            yield ModelChunk(reply=says("all of it"))
        finally:
            self.stopped_at = time.monotonic()


def test_a_model_that_is_talking_is_stopped_and_what_it_said_is_kept(pumps: Pumps) -> None:
    model = Slow()
    pump = pumps(Brain("slow", model), lease_s=60.0, beat_s=20.0)
    handle = pump.submit("s1", "Go.")
    with working(pump):
        assert model.began.wait(60)
        wait_until(lambda: len(handle.events_so_far()) > 4, "some words are out")
        cancelled_at = time.monotonic()
        handle.cancel()
        wait_until(lambda: model.stopped_at, "the stream stopped")
    assert model.stopped_at - cancelled_at < 10.0, "it heard of it, long before its next beat"
    result = pump.finish(handle)
    assert (result.ending, result.text) == (Ending.CANCELLED, "")
    assert result.last_agent_message is not None
    assert result.last_agent_message.startswith("word0 word1 ")
    told = "".join(str(e.data["text"]) for e in events(handle, "text.delta"))
    assert told == result.last_agent_message
    assert [(m.role, m.content) for m in history(pump)] == [
        ("user", "Go."),
        ("assistant", result.last_agent_message),
        ("user", MARKER),
    ]
    assert [spend.kind for spend in result.spends] == ["lost"]


def test_the_last_words_of_an_earlier_step_are_kept(pumps: Pumps) -> None:
    model = Watched(calls(("look", {"name": "a"}), text="Let me see."), says("done"))
    pump = pumps(brain_of(model))
    handle = pump.submit("s1", "Go.")
    pump.drain("brainq.turns")
    handle.cancel()
    assert pump.finish(handle).last_agent_message == "Let me see."


@pytest.mark.parametrize("why", ["approval", "hold"])
def test_a_turn_that_waits_for_people_is_cancelled_at_once(pumps: Pumps, why: str) -> None:
    ran: list[str] = []
    model = Watched(calls(("write", {"name": "a"}), ("look", {"name": "b"})), says("done"))
    pump = pumps(brain_of(model, ran, approval=why == "approval"))
    handle = pump.submit("s1", "Go.")
    hold = handle.hold() if why == "hold" else None
    pump.drain()
    handle.cancel("enough")
    assert pump.drain(), "it was rung for"
    result = pump.finish(handle)
    assert (result.ending, ran) == (Ending.CANCELLED, [])
    assert statuses(pump, handle) == {"c1-0": "cancelled", "c1-1": "cancelled"}
    assert result.parked_ms > 0
    if hold is not None:
        hold.release()
    assert not pump.waiting()


def test_the_sweeper_ends_it_after_the_grace_when_the_doorbell_was_lost(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(calls(("look", {"name": "a"})), says("done"))), cancel_grace_s=0.2)
    handle = pump.submit("s1", "Go.")
    pump.drain("brainq.turns")
    handle.cancel()
    while pump.take():
        pass
    swept_until(pump, lambda: turn_field(pump, handle, "state") == "closing", "the sweeper ended it")
    assert pump.finish(handle).ending is Ending.CANCELLED


def test_a_worker_that_dies_after_the_cancel(pumps: Pumps) -> None:
    """Its write had begun: nobody can say what became of it, and nobody runs it again."""
    ran: list[str] = []
    pump = pumps(brain_of(Watched(calls(("write", {"name": "a"})), says("done")), ran), cancel_grace_s=0.2)
    handle = pump.submit("s1", "Go.")
    pump.drain("brainq.turns")
    take_call(pump)
    ref = _ref(handle)
    claim = pump.wiring.state.calls.claim(ref, 1, "dead")
    assert not isinstance(claim, NoClaim)
    assert pump.wiring.store.calls.start(
        turn_id=handle.turn_id,
        call_id="c1-0",
        attempt=1,
        session_id="s1",
        tool="write",
        effect=Effect.LOCAL_WRITE,
        args_hash="",
        args_json=None,
        idempotency_key="",
        owner="dead",
    )
    handle.cancel()
    assert not pump.drain(), "a call runs: its end, or the grace, ends the turn"
    assert pump.finish(handle).ending is Ending.CANCELLED
    assert (statuses(pump, handle), ran) == ({"c1-0": TraceStatus.UNKNOWN}, [])


def _ref(handle: TurnHandle) -> Any:
    from brainq.contracts.claim import CallRef

    return CallRef(handle.session_id, handle.turn_id, "c1-0")


def test_a_cancel_outlives_a_coordinator_that_dies(pumps: Pumps) -> None:
    pump, other = pumps(brain_of(Watched(says("done")))), pumps(brain_of(Watched(says("done"))), owner="two")
    handle = pump.submit("s1", "Go.")
    bell = pump.take()
    assert bell is not None
    claim = pump.wiring.state.turns.claim("s1", handle.turn_id, 0, "dead")
    assert not isinstance(claim, NoClaim)
    handle.cancel()
    while other.drain():
        pass
    assert other.finish(other.client.handle(handle.turn_id)).ending is Ending.CANCELLED


def test_cancelling_twice_is_cancelling_once(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(calls(("look", {"name": "a"})), says("done"))))
    handle = pump.submit("s1", "Go.")
    pump.drain("brainq.turns")
    assert handle.cancel("one") == handle.cancel("two") == "requested"
    result = pump.finish(handle)
    assert result.error == "one"
    assert handle.cancel() == "ended"
    assert [e.data["reason"] for e in events(handle, "turn.cancelling")] == ["one"]


def test_nothing_new_starts_after_a_cancel(pumps: Pumps) -> None:
    """One call of a wave runs; the others, the wave after it, and the next step never begin."""
    ran: list[str] = []
    model = Watched(calls(("look", {"name": "a"}), ("look", {"name": "b"}), ("write", {"name": "c"})), says("done"))
    pump = pumps(brain_of(model, ran))
    handle = pump.submit("s1", "Go.")
    pump.drain("brainq.turns")
    first, second = pump.waiting()
    assert pump.take() == first
    pump.answer(first)
    handle.cancel()
    assert pump.take("brainq.tools.read_only") == second
    assert pump.answer(second).startswith("dropped")
    result = pump.finish(handle)
    assert (result.steps, ran) == (1, ["look a"])
    assert statuses(pump, handle) == {"c1-0": "completed", "c1-1": "cancelled", "c1-2": "cancelled"}
    assert [m.call_id for m in history(pump) if m.role == "tool"] == ["c1-0", "c1-1", "c1-2"]
    assert said(pump, "c1-2") == "Cancelled after 0.0 s."
    assert len(model.requests) == 1


def test_the_end_of_the_last_running_call_ends_a_cancelled_turn_before_the_grace(pumps: Pumps) -> None:
    work = Work(Effect.LOCAL_WRITE, heeds=False)
    pump = pumps(work.brain, cancel_grace_s=30.0)
    handle = to_work(pump, work)
    with working(pump):
        assert work.running.wait(60)
        handle.cancel()
        work.go.set()
    assert handle.result(timeout_s=60).ending is Ending.CANCELLED


def test_the_next_turn_begins_and_its_model_reads_of_the_cancel(pumps: Pumps) -> None:
    model = Watched(calls(("look", {"name": "a"})), says("done"))
    pump = pumps(brain_of(model))
    handle, after = pump.submit("s1", "Go."), pump.submit("s1", "And now?")
    pump.drain("brainq.turns")
    handle.cancel()
    assert pump.finish(after).text == "later"
    assert [text for _, text in model.shown(1, after.turn_id)][-2:] == [MARKER, "And now?"]
