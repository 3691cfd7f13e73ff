"""A turn's timeline: live, to its end, and from SQL once Redis has let it go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from brainq import AsyncClient, Operator, TurnNotFound, TurnTimeline
from brainq.contracts.event import Timeline
from brainq.engine.turn.timeline_fold import fold_timeline
from tests.integration.records.test_lists import shop
from tests.support.pump import Pump


@pytest.fixture
def pump(pumps: Callable[..., Pump]) -> Pump:
    return pumps(shop())


def ids(timeline: Timeline) -> list[str]:
    return [bar.id for bar in timeline.bars]


def test_bars_grow_by_events_and_end_as_the_whole(pump: Pump) -> None:
    handle = pump.submit("s1", "save")
    pump.drain()
    live = handle.timeline()
    assert ids(live) == ["step:1", "call:c1-0", "parked:1"]
    step, call, parked = live.bars
    assert (step.to_ms is not None, call.to_ms, parked.to_ms) == (True, None, None)
    assert [(span.kind, span.why) for span in call.spans] == [("parked", "approval")]
    assert call.lanes == ("session:s1",)
    assert (live.state, live.turn_id, live.session_id) == ("parked", handle.turn_id, "s1")
    assert live.now_ms >= max(bar.from_ms for bar in live.bars)

    pump.client.approve(handle.approvals()[0].id)
    pump.finish(handle)
    pump.drain()
    whole = handle.timeline()
    assert ids(whole)[:5] == ["step:1", "call:c1-0", "parked:1", "step:2", "finalizer"]
    assert "finalizer:log" in ids(whole)[5:]
    assert all(bar.to_ms is not None for bar in whole.bars)
    # Who took it live goes on by the events above its number.
    gone_on = fold_timeline(live, handle.events(after=live.seq))
    assert [bar.model_copy(update={"lanes": ()}) for bar in gone_on.bars] == [
        bar.model_copy(update={"lanes": ()}) for bar in whole.bars if not bar.id.startswith("finalizer:")
    ]

    pump.wiring.state.redis.flushall()
    kept = handle.timeline()
    assert kept.source == "sql"
    assert {"step:1", "call:c1-0", "step:2", "finalizer:log"} <= set(ids(kept))
    (call,) = [bar for bar in kept.bars if bar.id == "call:c1-0"]
    assert call.spans[0].kind == "parked"
    assert (call.outcome, call.is_exact) == ("completed", True)


def test_a_turn_that_redis_does_not_know_yet_has_no_bars(pump: Pump) -> None:
    handle = pump.submit("s1", "hello")
    pump.wiring.state.redis.flushall()
    assert (handle.timeline().bars, handle.timeline().state) == ((), "accepted")


def test_the_same_from_an_operator_and_on_an_event_loop(pump: Pump) -> None:
    handle = pump.submit("s1", "hello")
    pump.finish(handle)
    with Operator(pump.settings) as operator:
        assert operator.timeline(handle.turn_id[:-3]) == handle.timeline()
        with pytest.raises(TurnNotFound):
            operator.timeline("nobody")

    async def ask() -> TurnTimeline:
        async with AsyncClient(pump.settings, pump.wiring.brains) as client:
            return await (await client.handle(handle.turn_id)).timeline()

    assert asyncio.run(ask()) == handle.timeline()
