"""Turns that wait for people, and what they cost those that do not: nothing but memory."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from brainq.client.connection import wiring_of
from brainq.client.session import Flag
from brainq.contracts.ids import new_turn_id
from brainq.contracts.status import TurnState
from lab.bench.counters import read_counters
from lab.bench.latency import scenario
from lab.bench.load import Submitted
from lab.bench.outcomes import BenchFailure, wait_finished
from lab.bench.stage import Stage, stage
from lab.bench.throughput import warm_up

PARKED, MEASURED, ARRIVING_PER_S = 500, 100, 10.0
PARKS_WITHIN_S = 120.0
WATCHED_S = 5.0


def parked_turns(directory: Path, *, scale: float = 1.0) -> dict[str, Any]:
    """New turns on an idle system, then the same beside 500 parked ones; ms from submit to TurnResult.

    `ratio_p50` and `ratio_p99` are the second over the first. The parked ones are released afterwards, and must end.
    """
    many, few = (max(2, round(count * scale)) for count in (PARKED, MEASURED))
    with stage(directory) as on:
        warm_up(on, few)
        idle = scenario(on, few, per_s=ARRIVING_PER_S)
        turns, flags = park(on, many, PARKS_WITHIN_S)
        before, begin = read_counters(on), time.monotonic()
        time.sleep(WATCHED_S * min(1.0, scale))
        used = read_counters(on).since(before)
        standing_cores = sum(used.cpu_s.values()) / (time.monotonic() - begin)
        beside = scenario(on, few, per_s=ARRIVING_PER_S)
        for flag in flags:
            flag.release()
        wait_finished(on, turns)
        return {
            "parked": many,
            "idle": idle,
            "beside": beside,
            "ratio_p50": round(beside["p50_ms"] / idle["p50_ms"], 2),
            "ratio_p99": round(beside["p99_ms"] / idle["p99_ms"], 2),
            "cores_used_by_parked": round(standing_cores, 3),
        }


def park(on: Stage, count: int, within_s: float) -> tuple[tuple[Submitted, ...], list[Flag]]:
    """Turns whose session is not ready: each reads its notes, and parks before it writes.

    Raises BenchFailure when they are not all parked `within_s` after the last submit.
    """
    turns: list[Submitted] = []
    flags: list[Flag] = []
    for _ in range(count):
        turn_id = new_turn_id()
        session_id = f"p-{turn_id}"
        flags.append(on.client.session(session_id).readiness("bench"))
        on.client.submit(session_id, "Make one note of the first three days.", turn_id=turn_id)
        turns.append(Submitted(session_id, turn_id, time.time() * 1000))
    until = time.monotonic() + within_s
    for turn in turns:
        while not _is_parked(on, turn):
            if time.monotonic() > until:
                raise BenchFailure(f"turn {turn.turn_id} is not parked after {within_s:g} s")
            time.sleep(0.2)
    return tuple(turns), flags


def _is_parked(on: Stage, turn: Submitted) -> bool:
    snapshot = wiring_of(on.client).state.snapshots.read(turn.session_id, turn.turn_id)
    if snapshot is None or snapshot.state.is_final:
        raise BenchFailure(f"turn {turn.turn_id} was to park, and ended")
    return snapshot.state is TurnState.PARKED
