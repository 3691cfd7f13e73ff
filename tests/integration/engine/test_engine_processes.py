"""Calls that say how they ended, and calls that are cut off before they can: on threads, loop and in children."""

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
    handle = pump.submit("s1", asked, limits={"max_steps": 8, "max_tool_calls": 20})
    shown = json.loads(pump.finish(handle, timeout_s=60.0).text)

    trace = pump.wiring.state.calls.trace("s1", handle.turn_id)
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
    rows = pump.wiring.store.calls.of_turn(handle.turn_id)
    assert [row.outcome_kind for row in rows] == ["unknown"] * 3


def test_what_a_tool_says_of_its_failing_reaches_the_model_as_it_stands(pumps: Callable[..., Pump]) -> None:
    pump = pumps(isolated.brain, app=isolated.APP)
    tools = [f"{kind}_{where}" for where in ("thread", "process") for kind in ("write", "write_async", "read")]
    steps = [[(tool, {"how": how}) for how in ("error", "unknown", "other")] for tool in tools]
    asked = script(*steps, final="$seen")
    handle = pump.submit("s1", asked, limits={"max_steps": 8, "max_tool_calls": 20})
    shown = json.loads(pump.finish(handle, timeout_s=60.0).text)
    told = {message["call"]: message for message in shown if message["role"] == "tool"}
    trace = {entry.call_id: entry for entry in pump.wiring.state.calls.trace("s1", handle.turn_id)}
    assert all(message["error"] for message in told.values())
    for step, tool in enumerate(tools, 1):
        error, unknown, other = (f"c{step}-{n}" for n in range(3))
        assert told[error]["text"] == "The shop is closed.\nIt opens at nine. You may try again."
        assert told[other]["text"] == "The tool failed: LookupError: no such shop."
        assert trace[error].status is trace[other].status is TraceStatus.FAILED
        doubt = "It is unknown whether this call took effect." in told[unknown]["text"]
        assert told[unknown]["text"].startswith("The shop hung up after the order was sent.")
        assert doubt is not tool.startswith("read")
        assert trace[unknown].status is (TraceStatus.UNKNOWN if doubt else TraceStatus.FAILED)
        assert trace[unknown].detail == "OutcomeUnknown"
        for call, name in ((error, "ToolError"), (other, "LookupError")):
            kind, _, where = trace[call].detail.partition(" at ")
            assert kind == name
            assert where.startswith("tests/support/brains/isolated.py:")
