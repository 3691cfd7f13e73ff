"""The figures against their targets: the JSON and the tables."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from lab.bench.brain import DURABLE_STEPS
from lab.bench.scripts import ScriptCost

TURNS_PER_S, WANTED_TURNS_PER_S = 100, 150
P50_FACTOR, P99_FACTOR = 1.10, 1.25
PARKED_FACTOR = 1.15  # a new turn beside 500 parked ones, against an idle system
ROUND_TRIPS, REDIS_COMMANDS = 30, 300
GROWTH_FACTOR = 1.5  # a session's 501st turn, against its 2nd
EVENTS_FACTOR = 0.5  # with task events on, more than this share of the turns/s must be left

NAMES = (
    "turns_per_s",
    "turns_per_s_events",
    "durable_steps_per_s",
    "cpu_ms_per_turn",
    "noop_ms",
    "ratio_to_noop",
    "redis_round_trips",
    "redis_commands",
    "lua_commands",
    "redis_us_by_script",
    "ideal_ms",
    "p50_ms_60",
    "p99_ms_60",
    "p50_ms_300",
    "p99_ms_300",
    "p99_ms_300_at_once",
    "redis_kb_200_steps",
    "most_tokens_200_steps",
    "ratio_p50_500_parked",
    "ratio_p99_500_parked",
    "ratio_500th_turn",
    "three_steps_per_s",
    "p50_ms_three_steps",
    "p95_ms_three_steps",
    "machine",
)
"""Always in the JSON; None for what was not measured."""


@dataclass(frozen=True, slots=True)
class Target:
    """One figure's bound: `at_least` or, if false, at most."""

    label: str
    name: str
    bound: float | None
    at_least: bool = False
    note: str = ""

    def verdict(self, figures: dict[str, Any]) -> str:
        value = figures[self.name]
        if value is None or self.bound is None:
            return ""
        compare: Callable[[float, float], bool] = operator.ge if self.at_least else operator.le
        return "[green]met[/]" if compare(value, self.bound) else "[red]missed[/]"


def summary(
    *,
    machine: dict[str, Any],
    ideal_ms: int,
    plain: dict[str, Any] | None,
    events: dict[str, Any] | None,
    latency: dict[str, Any] | None,
    long: dict[str, Any] | None = None,
    parked: dict[str, Any] | None = None,
    growth: dict[str, Any] | None = None,
    scripts: Mapping[str, ScriptCost] | None = None,
    three: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the flat figures of NAMES, and all measurements under `details`."""
    late = latency or {}
    figures: dict[str, Any] = {
        "turns_per_s": plain and plain["turns_per_s"],
        "turns_per_s_events": events and events["turns_per_s"],
        "durable_steps_per_s": plain and round(plain["turns_per_s"] * DURABLE_STEPS),
        "cpu_ms_per_turn": plain and plain["cpu_ms_per_turn"],
        "noop_ms": plain and plain["noop_ms"],
        "ratio_to_noop": plain and plain["ratio_to_noop"],
        "redis_round_trips": plain and plain["redis_per_turn"]["round_trips"],
        "redis_commands": plain and plain["redis_per_turn"]["commands"],
        "lua_commands": plain and plain["redis_per_turn"]["lua_commands"],
        "redis_us_by_script": scripts and {name: round(cost.us_a_turn) for name, cost in scripts.items()},
        "ideal_ms": ideal_ms,
        **{
            f"{percent}_ms_{name}": late[name][f"{percent}_ms"] if name in late else None
            for name in ("60", "300")
            for percent in ("p50", "p99")
        },
        "p99_ms_300_at_once": late["300_at_once"]["p99_ms"] if late else None,
        "redis_kb_200_steps": long and round(long["200_steps"]["most_redis_bytes"] / 1000, 1),
        "most_tokens_200_steps": long and long["200_steps"]["most_tokens"],
        "ratio_p50_500_parked": parked and parked["ratio_p50"],
        "ratio_p99_500_parked": parked and parked["ratio_p99"],
        "ratio_500th_turn": growth and growth["ratio"],
        "three_steps_per_s": three and three["per_s"],
        "p50_ms_three_steps": three and three["p50_ms"],
        "p95_ms_three_steps": three and three["p95_ms"],
        "machine": machine,
    }
    details = {
        "throughput": plain,
        "throughput_events": events,
        "latency": latency,
        "long_turn": long,
        "parked": parked,
        "growth": growth,
        "three_steps": three,
    }
    return {**figures, "details": details}


def targets(figures: dict[str, Any]) -> list[Target]:
    """Return the targets in the order of the table."""
    ideal, speed = figures["ideal_ms"], figures["turns_per_s"]
    return [
        Target("turns/s", "turns_per_s", TURNS_PER_S, True, f"{WANTED_TURNS_PER_S} wanted"),
        Target(
            "turns/s, task events on",
            "turns_per_s_events",
            None if speed is None else speed * EVENTS_FACTOR,
            True,
            "half of the above",
        ),
        Target("durable steps/s", "durable_steps_per_s", None, note=f"{DURABLE_STEPS} a turn"),
        Target("CPU ms of 14 no-op tasks", "noop_ms", None, note="what Celery alone takes, here and now"),
        Target("CPU of a turn / of those", "ratio_to_noop", None),
        Target("Redis round trips a turn", "redis_round_trips", ROUND_TRIPS),
        Target("Redis commands a turn, all", "redis_commands", REDIS_COMMANDS),
        Target("p50 ms, 60 at once", "p50_ms_60", ideal * P50_FACTOR, note="ideal + 10%"),
        Target("p99 ms, 60 at once", "p99_ms_60", ideal * P99_FACTOR, note="ideal + 25%"),
        Target("p50 ms, 300 at 60/s", "p50_ms_300", ideal * P50_FACTOR, note="ideal + 10%"),
        Target("p99 ms, 300 at 60/s", "p99_ms_300", ideal * P99_FACTOR, note="ideal + 25%"),
        Target(
            "p99 ms, 300 at once",
            "p99_ms_300_at_once",
            None if not speed else ideal + 300_000 / speed,
            note="ideal + 300 / turns/s",
        ),
        Target(
            "tokens asked with, 200 steps",
            "most_tokens_200_steps",
            _of_long(figures, "max_context_tokens"),
            note="max_context_tokens",
        ),
        Target("p50 beside 500 parked turns, ratio", "ratio_p50_500_parked", PARKED_FACTOR, note="of an idle system"),
        Target("p99 beside 500 parked turns, ratio", "ratio_p99_500_parked", None, note=_parked_note(figures)),
        Target(
            "coordinator's CPU, 501st turn of a session", "ratio_500th_turn", GROWTH_FACTOR, note=_growth_note(figures)
        ),
        Target("three-step workflows/s, 200 at once", "three_steps_per_s", None),
        Target("p50 ms of one such workflow", "p50_ms_three_steps", None),
        Target("p95 ms of one such workflow", "p95_ms_three_steps", None),
        Target("Redis kB, 200 steps", "redis_kb_200_steps", None, note=_long_note(figures)),
    ]


def _of_long(figures: dict[str, Any], name: str, turn: str = "200_steps") -> float | None:
    long = figures["details"]["long_turn"]
    return long and long[turn][name]


def _parked_note(figures: dict[str, Any]) -> str:
    parked = figures["details"]["parked"]
    return (parked and f"cores the parked ones use: {parked['cores_used_by_parked']}") or ""


def _growth_note(figures: dict[str, Any]) -> str:
    grown = figures["details"]["growth"]
    if not grown:
        return ""
    by_turn = ", ".join(f"{number}: {ms:g}" for number, ms in grown["cpu_ms_by_turn"].items())
    return f"ms by turn: {by_turn}; in a new process: {grown['cpu_ms_new_process']:g}"


def _long_note(figures: dict[str, Any]) -> str:
    few = _of_long(figures, "most_redis_bytes", "20_steps")
    whole = _of_long(figures, "most_redis_bytes", "200_steps_uncompacted")
    if few is None or whole is None:
        return ""
    return f"20 steps: {few / 1000:.0f}; 200 without compaction: {whole / 1000:.0f}"


def show(figures: dict[str, Any], console: Console) -> None:
    """Print the tables."""
    table = Table("figure", "measured", "target", "", "", title="reference turn", title_justify="left")
    for target in targets(figures):
        value = figures[target.name]
        if value is None:
            continue
        bound = "" if target.bound is None else f"{'≥' if target.at_least else '≤'} {target.bound:g}"
        table.add_row(target.label, f"{value:g}", bound, target.verdict(figures), target.note)
    console.print(table)
    runs = {"events off": figures["details"]["throughput"], "events on": figures["details"]["throughput_events"]}
    measured = {label: run for label, run in runs.items() if run}
    if measured:
        _show_costs(measured, console)
    for run in measured.values():
        if run["idle"]:
            idle = run["idle"]
            console.print(
                f"idle system ({idle['turns']} single turns): submit to first step "
                f"p50 {idle['p50_ms_to_first_step']:g} ms, p99 {idle['p99_ms_to_first_step']:g} ms; "
                f"to the result p50 {idle['p50_ms_to_result']:g} ms, p99 {idle['p99_ms_to_result']:g} ms"
            )
    on = figures["machine"]
    console.print(
        f"{on['cpu']}, {on['cores']} cores, load before {on['load_before'][0]:g}; "
        f"python {on['python']}, {on['redis_server']}, celery {on['celery']}"
    )


NOOP_LABELS = {"noop_ms": "CPU ms, 14 no-op tasks", "ratio_to_noop": "total / 14 no-op tasks"}


def _show_costs(runs: dict[str, dict[str, Any]], console: Console) -> None:
    table = Table("a turn costs", *runs, title="CPU ms and Redis", title_justify="left")
    first = next(iter(runs.values()))
    for name in first["cpu_ms_per_turn"]:
        table.add_row(f"CPU ms, {name}", *(f"{run['cpu_ms_per_turn'][name]:.2f}" for run in runs.values()))
    for name in ("noop_ms", "ratio_to_noop"):
        table.add_row(NOOP_LABELS[name], *(f"{run[name]:.2f}" for run in runs.values()))
    for name in ("scripts", "round_trips", "commands", "lua_commands", "bytes_in", "bytes_out", "aof_bytes"):
        label = f"Redis {name.replace('_', ' ')}"
        table.add_row(label, *(f"{run['redis_per_turn'][name]:g}" for run in runs.values()))
    table.add_row("cores used", *(f"{run['cores_used']:g}" for run in runs.values()))
    console.print(table)
