"""P7 and P4 with four serial workers: lanes never overlap, and different lanes do."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from brainq.contracts.status import TraceStatus
from tests.support.brains.diary import notes, open_gate
from tests.support.brains.obedient import script
from tests.support.wait import wait_until
from tests.support.world import World

Interval = tuple[float, float]


def intervals(rows: list[dict[str, Any]]) -> list[Interval]:
    """When each call's function ran, by the machine's monotonic clock."""
    begun = {(row["turn"], row["call"]): row["at"] for row in rows if row["what"] == "start"}
    ended = {(row["turn"], row["call"]): row["at"] for row in rows if row["what"] == "stop"}
    assert begun.keys() == ended.keys()
    return sorted((begun[call], ended[call]) for call in begun)


def overlaps(found: list[Interval]) -> int:
    return sum(second[0] < first[1] for first, second in itertools.pairwise(sorted(found)))


def run_lanes(world: World, sid: str, turns: int, sleep_s: float) -> list[dict[str, Any]]:
    lanes = [f"{sid}-{letter}" for letter in "abc"]
    handles = [
        world.client.submit(
            f"{sid}-{n}",
            script([("keyed", {"name": lane, "sleep_s": sleep_s}) for lane in (lanes[n % 3], lanes[(n + 1) % 3])]),
        )
        for n in range(turns)
    ]
    for handle in handles:
        assert handle.result(timeout_s=60).text == "done"
    return [row for lane in lanes for row in notes("", tool="keyed", name=lane)]


def check_lanes(rows: list[dict[str, Any]], expected: int) -> None:
    assert len({row["pid"] for row in rows}) > 1, "one worker did all: nothing was raced"
    by_lane = {lane: intervals([row for row in rows if row["name"] == lane]) for lane in {row["name"] for row in rows}}
    assert sum(len(found) for found in by_lane.values()) == expected
    assert {lane: overlaps(found) for lane, found in by_lane.items()} == dict.fromkeys(by_lane, 0)
    assert overlaps([interval for found in by_lane.values() for interval in found]) > 0


def test_writes_of_a_lane_never_overlap_and_lanes_run_side_by_side(calm: World, sid: str) -> None:
    check_lanes(run_lanes(calm, sid, 12, 0.1), 24)


@pytest.mark.full
@pytest.mark.timeout(600)
def test_lanes_hold_over_a_thousand_writes(calm: World, sid: str) -> None:
    check_lanes(run_lanes(calm, sid, 500, 0.005), 1000)


def test_writes_of_a_session_run_in_the_models_order(calm: World, sid: str) -> None:
    wanted = [("write", {"name": f"{sid}-{n}", "sleep_s": 0.02}) for n in range(6)]
    handle = calm.client.submit(sid, script(wanted))
    handle.result(timeout_s=60)
    rows = notes("start", turn=handle.turn_id)
    assert [row["name"] for row in rows] == [f"{sid}-{n}" for n in range(6)]
    assert overlaps(intervals([row for row in notes("", turn=handle.turn_id) if row["what"] in ("start", "stop")])) == 0


def test_reads_of_a_wave_run_side_by_side(calm: World, sid: str) -> None:
    wanted = [("read", {"name": f"{sid}-{n}", "gate": sid}) for n in range(4)]
    handle = calm.client.submit(sid, script(wanted))
    wait_until(lambda: len(notes("start", turn=handle.turn_id)) == 4, "all four run")
    open_gate(sid)
    handle.result(timeout_s=60)
    rows = [row for row in notes("", turn=handle.turn_id) if row["what"] in ("start", "stop")]
    assert overlaps(intervals(rows)) == 3


def test_p4_a_write_that_is_abandoned_keeps_its_lane_and_is_told_of(calm: World, sid: str) -> None:
    steps = [[("patient_write", {"name": f"{sid}-x", "gate": sid})], [("write", {"name": f"{sid}-y"})]]
    handle = calm.client.submit(sid, script(*steps, final="$seen"))
    wait_until(lambda: calm.status(handle, 1) == TraceStatus.WAITING, "the next write waits for the lane")
    assert calm.status(handle) == TraceStatus.TIMED_OUT
    open_gate(sid)
    shown = json.loads(handle.result(timeout_s=60).text)
    assert calm.status(handle) == TraceStatus.TIMED_OUT_LATE
    (notice,) = [m["text"] for m in shown if m["text"].startswith("[Notice")]
    assert "succeeded after all" in notice
    assert [m["call"] for m in shown if m["role"] == "tool"] == ["c1-0", "c2-0"]
    row = calm.wiring.store.calls.of_turn(handle.turn_id)[0]
    assert (row.outcome_kind, row.late) == ("success", True)
    assert notes("stop", name=f"{sid}-x")[0]["at"] < notes("start", name=f"{sid}-y")[0]["at"]
