"""P9 with real processes: finalizer workers are killed at their steps, callbacks fail."""

from __future__ import annotations

import pytest

from brainq.client.handle import TurnHandle
from tests.support.brains.diary import notes, open_gate, order
from tests.support.brains.obedient import script
from tests.support.wait import wait_until
from tests.support.world import World


def recorded_once(world: World, handle: TurnHandle) -> None:
    assert world.row_counts(handle) == {"messages": 2, "decisions": 1, "calls": 0}
    world.all_events(handle)


@pytest.mark.parametrize("step", ["usage", "extra", "turn_end"])
def test_a_finalizer_dies_in_a_callback(stormy: World, sid: str, step: str) -> None:
    order(f"{step}.gate", f"{step}-{sid}")
    handle = stormy.client.submit(sid, script())
    begun = wait_until(lambda: notes(step, turn=handle.turn_id), f"{step} was called")[0]
    stormy.kill_the("finalizer", begun["pid"])
    open_gate(f"{step}-{sid}")
    assert handle.result(timeout_s=60).text == "done"
    stormy.done(handle)
    rows = notes(step, turn=handle.turn_id)
    assert len(rows) == 2
    assert len({row["key"] for row in rows}) == 1
    assert len(notes(f"{step}.end", turn=handle.turn_id)) == 1
    recorded_once(stormy, handle)


def test_the_result_goes_out_while_a_callback_keeps_failing(stormy: World, sid: str) -> None:
    order("usage.raise", "1000")
    handle = stormy.client.submit(sid, script())
    wait_until(lambda: notes("usage", turn=handle.turn_id), "usage was called")
    result = handle.result(timeout_s=60)
    assert "usage: RuntimeError" in result.warnings[0]
    assert not notes("usage.end", turn=handle.turn_id)
    order("usage.raise", "0")
    stormy.done(handle)
    assert len(notes("usage.end", turn=handle.turn_id)) == 1
    assert handle.result(timeout_s=1) == result
    recorded_once(stormy, handle)
