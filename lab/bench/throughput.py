"""Turns a second with zero latencies, and what a turn costs. Also the idle system's time to the first step."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.bench.counters import per_turn, read_counters
from lab.bench.load import submit
from lab.bench.lua_commands import lua_commands
from lab.bench.noop import noop_ms
from lab.bench.outcomes import Outcome, percentile, read_outcomes, wait_finished
from lab.bench.stage import Stage, stage

COUNTED_TURNS = 30


def throughput(
    directory: Path,
    turns: int,
    *,
    task_events: bool,
    idle_turns: int,
    concurrency: Mapping[str, int] | None = None,
    workers: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Run `turns` reference turns through one process a pool.

    turns_per_s             to the end of the last turn's last finalizer step
    turns_per_s_to_result   to the last TurnResult, four finalizer steps earlier
    noop_ms, ratio_to_noop  14 no-op tasks by the same workers, CPU ms; and a turn's total against it
    idle                    figures of `idle_turns` single turns before the load, if any
    """
    with stage(directory, task_events=task_events, concurrency=concurrency, workers=workers) as on:
        warm_up(on, min(turns, 20))
        idle = idle_figures(on, idle_turns) if idle_turns else None
        before = read_counters(on)
        begin_ms = time.time() * 1000
        load = submit(on.client, turns)
        submitted_s = time.time() - begin_ms / 1000
        asked = wait_finished(on, load.turns)
        took_s = time.time() - begin_ms / 1000
        used = read_counters(on).since(before)
        outcomes = read_outcomes(on, load.turns)
        noops = noop_ms(on, turns)
        counted = min(turns, COUNTED_TURNS)
        in_lua = lua_commands(on.redis_url, lambda: wait_finished(on, submit(on.client, counted).turns))
    to_result_s = (max(outcome.result_at_ms for outcome in outcomes) - begin_ms) / 1000
    cpu = {name: value * 1000 / turns for name, value in used.cpu_s.items()}
    cpu["producer"] = load.producer_cpu_s * 1000 / turns
    cpu["total"] = sum(cpu.values())
    return {
        "turns": turns,
        "took_s": round(took_s, 2),
        "submitted_in_s": round(submitted_s, 2),
        "turns_per_s": round(turns / took_s, 1),
        "turns_per_s_to_result": round(turns / to_result_s, 1),
        "cpu_ms_per_turn": {name: round(value, 2) for name, value in cpu.items()},
        "noop_ms": round(noops, 2),
        "ratio_to_noop": round(cpu["total"] / noops, 2),
        "cores_used": round(cpu["total"] * turns / took_s / 1000, 2),
        "redis_per_turn": {**per_turn(used, turns, own_commands=asked), "lua_commands": round(in_lua / counted, 1)},
        "idle": idle,
    }


def warm_up(on: Stage, turns: int) -> list[Outcome]:
    """Let every pool start its threads, open its connections and load its scripts."""
    load = submit(on.client, turns)
    wait_finished(on, load.turns)
    return read_outcomes(on, load.turns)


def idle_figures(on: Stage, turns: int) -> dict[str, Any]:
    """Run single turns, each submitted when the previous one has finished. Returns ms from submit to the first step."""
    outcomes = [outcome for _ in range(turns) for outcome in warm_up(on, 1)]
    first = [outcome.to_first_step_ms for outcome in outcomes]
    result = [outcome.to_result_ms for outcome in outcomes]
    return {
        "turns": turns,
        "p50_ms_to_first_step": round(percentile(first, 50), 1),
        "p99_ms_to_first_step": round(percentile(first, 99), 1),
        "p50_ms_to_result": round(percentile(result, 50), 1),
        "p99_ms_to_result": round(percentile(result, 99), 1),
    }
