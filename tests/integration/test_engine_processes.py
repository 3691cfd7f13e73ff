"""Calls whose function is cut off before it says how it ended: in a child process, and on the event loop."""

from __future__ import annotations

import json
from collections.abc import Callable

from brainq.contracts.status import TraceStatus
from tests.support.brains import isolated
from tests.support.brains.diary import notes
from tests.support.brains.obedient import script
from tests.support.pump import Pump


def test_p3_a_change_that_did_not_report_its_end_is_unknown_and_made_once(pumps: Callable[..., Pump]) -> None:
    pump = pumps(isolated.brain, app=isolated.APP)
    tools = ("warm", "die_after_effect", "warm", "overstay", "overstay_async", "die_reading")
    asked = script(*[[(tool, {})] for tool in tools], final="$seen")
    handle = pump.submit("s1", asked, limits={"max_steps": 8})
    shown = json.loads(pump.finish(handle, timeout_s=60.0).text)

    trace = pump.wiring.calls.trace("s1", handle.turn_id)
    assert [(entry.status, entry.detail) for entry in trace] == [
        (TraceStatus.COMPLETED, ""),
        (TraceStatus.UNKNOWN, "ProcessDied"),
        (TraceStatus.COMPLETED, ""),
        (TraceStatus.UNKNOWN, "deadline"),
        (TraceStatus.UNKNOWN, "deadline"),
        (TraceStatus.FAILED, "ProcessDied"),
    ]
    told = {message["call"]: message for message in shown if message["role"] == "tool"}
    for call in ("c2-0", "c4-0", "c5-0"):
        assert told[call]["error"]
        assert "unknown whether this call took effect" in told[call]["text"]
        assert len(notes("effect", key=f"{handle.turn_id}:{call}")) == 1
    rows = pump.wiring.store.calls.of(handle.turn_id)
    assert [row.outcome_kind for row in rows] == ["unknown"] * 3
