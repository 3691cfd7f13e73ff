"""When a turn's time begins, and for whom it runs."""

from __future__ import annotations

from typing import Any

from brainq.contracts.status import Ending, StopReason
from brainq.engine.models.scripted import says
from tests.support.people import Pumps, Watched, brain_of
from tests.support.pump import Pump


def time_passes(pump: Pump, turn_id: str, passed_s: float) -> None:
    """As long ago as that the turn became active: nobody has to wait for it."""
    client: Any = pump.wiring.state.redis
    client.hincrby(pump.wiring.state.keys.named("budget", "s1", turn_id), "deadline", -int(passed_s * 1000))


def test_a_live_turn_that_no_worker_took_in_time_ends_at_once_and_asks_nothing(pumps: Pumps) -> None:
    """Its time is its caller's, not a worker's: an answer that comes an hour late is none."""
    model = Watched(says("too late"))
    pump = pumps(brain_of(model))
    handle = pump.submit("s1", "Go.", limits={"timeout_s": 20})
    snapshot = handle.snapshot()
    assert snapshot is not None
    assert snapshot.state == "active", "it is its session's live turn, also while nobody is there to take it"
    time_passes(pump, handle.turn_id, 30)
    result = pump.finish(handle)
    assert (result.ending, result.stop_reason) == (Ending.TIMED_OUT, StopReason.DEADLINE)
    assert not model.requests


def test_the_time_of_a_turn_that_waits_for_its_session_has_not_begun(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(says("done"))))
    first = pump.submit("s1", "One.", limits={"timeout_s": 20})
    second = pump.submit("s1", "Two.", limits={"timeout_s": 20})
    time_passes(pump, first.turn_id, 30)
    waiting = second.snapshot()
    assert waiting is not None
    assert (waiting.state, waiting.budget.remaining_s) == ("queued", 20.0)
    assert pump.finish(first).ending is Ending.TIMED_OUT
    assert pump.finish(second).text == "done"
