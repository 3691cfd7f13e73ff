"""Two checkouts side by side: what is divided by what, and what an older one does not have."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from lab.bench.ab import flat, ratios, table


def run(total: float, **more: float) -> dict[str, Any]:
    redis = {"round_trips": 60.0, "scripts": 42.0, "commands": 500.0}
    return {"turns_per_s": 50.0, "cpu_ms_per_turn": {"total": total}, "redis_per_turn": redis, **more}


def figures(off: dict[str, Any], on: dict[str, Any]) -> dict[str, Any]:
    return {"details": {"throughput": off, "throughput_events": on}}


def test_the_ratio_is_this_over_the_other_of_the_same_round() -> None:
    new = [flat(figures(run(10.0), run(12.0))), flat(figures(run(30.0), run(33.0)))]
    old = [flat(figures(run(20.0), run(24.0))), flat(figures(run(40.0), run(44.0)))]
    rounds = list(zip(new, old, strict=True))
    assert ratios(rounds, "CPU ms total, events off") == [0.5, 0.75]
    assert ratios(rounds, "CPU ms total, events on") == [0.5, 0.75]


def test_a_checkout_without_a_figure_has_no_ratio_of_it() -> None:
    new = flat(figures(run(10.0, noop_ms=3.0, ratio_to_noop=3.33), run(12.0)))
    old = flat(figures(run(20.0), run(24.0)))
    assert ratios([(new, old)], "14 no-op tasks, CPU ms, events off") == []
    console = Console(width=200, record=True, file=None, quiet=True)
    shown = table([(new, old)])
    console.print(shown)
    assert shown.row_count == len(new)
