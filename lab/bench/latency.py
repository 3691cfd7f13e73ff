"""From submit to TurnResult with a model and tools that take their time, against the ideal."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.bench.counters import read_counters
from lab.bench.load import submit
from lab.bench.outcomes import percentile, read_outcomes, wait_finished
from lab.bench.stage import Stage, stage
from lab.bench.throughput import warm_up

LATENCIES_S = {"model": 1.0, "read": 0.2, "write": 0.1}
IDEAL_MS = round(1000 * (2 * LATENCIES_S["model"] + LATENCIES_S["read"] + LATENCIES_S["write"]))

WIDE = {"coordinator": 400, "parallel": 1000, "serial": 400, "finalizer": 16}
"""Threads a process: 300 turns at once wait for models and tools, never for a slot."""

FEW, MANY, ARRIVING_PER_S = 60, 300, 60.0


def latency(
    directory: Path,
    *,
    scale: float,
    task_events: bool,
    concurrency: Mapping[str, int] | None = None,
    workers: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """The three scenarios, one after the other on one set of workers: `60`, `300` (arriving), `300_at_once`.

    `scale` multiplies the numbers of turns, for smoke tests; at 1 the names are true.
    """
    few, many = (max(2, round(count * scale)) for count in (FEW, MANY))
    wide = {**WIDE, **(concurrency or {})}
    with stage(directory, task_events=task_events, latencies_s=LATENCIES_S, concurrency=wide, workers=workers) as on:
        warm_up(on, min(few, 20))
        return {
            "task_events": task_events,
            "concurrency": wide,
            "60": scenario(on, few),
            "300": scenario(on, many, per_s=ARRIVING_PER_S),
            "300_at_once": scenario(on, many),
        }


def scenario(on: Stage, turns: int, *, per_s: float | None = None) -> dict[str, Any]:
    """Run one load to its end.

    Returns ms from submit to TurnResult. If `cores_used` is near the number of cores, the machine and not the engine
    limited the times.
    """
    before, begin = read_counters(on), time.monotonic()
    load = submit(on.client, turns, per_s=per_s)
    submitted_s = time.monotonic() - begin
    wait_finished(on, load.turns)
    used, took_s = read_counters(on).since(before), time.monotonic() - begin
    outcomes = read_outcomes(on, load.turns)
    result = [outcome.to_result_ms for outcome in outcomes]
    first = [outcome.to_first_step_ms for outcome in outcomes]
    return {
        "turns": turns,
        "per_s": per_s,
        "submitted_in_s": round(submitted_s, 2),
        "p50_ms": round(percentile(result, 50)),
        "p99_ms": round(percentile(result, 99)),
        "max_ms": round(max(result)),
        "p50_ms_to_first_step": round(percentile(first, 50), 1),
        "p99_ms_to_first_step": round(percentile(first, 99), 1),
        "cores_used": round((sum(used.cpu_s.values()) + load.producer_cpu_s) / took_s, 2),
    }
