"""`python -m lab.faults`: real processes are killed, frozen and cut off under load; what was lost, what ran twice?

python -m lab.faults                           all; exit code 1 where anything is lost or doubled, or did not fire
python -m lab.faults kill-serial --times 3     one of them
python -m lab.faults --list                    their names
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from lab.bench.machine import machine
from lab.bench.stage import forget_settings
from lab.faults.effects import end_in_order
from lab.faults.fault import QUICK, Pace
from lab.faults.page import PAGE, run_label, write_page
from lab.faults.rounds import Plan, run_faults
from lab.faults.table import FAULTS, by_name
from lab.faults.verdict import Verdict

TIMES, RATE = 3, 2.0


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 1 when anything was lost or doubled, or a fault did not fire; 2 for what cannot be asked."""
    parser = _parser()
    given = parser.parse_args(arguments)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
    if given.list:
        _show_list(console)
        return 0
    try:
        chosen = by_name(given.faults)
    except ValueError as unknown:
        parser.error(str(unknown))
    forget_settings()
    times = given.times or (1 if given.quick else TIMES)
    plan = Plan(times=times, rate=given.rate, pace=QUICK if given.quick else Pace(), seed=given.seed)
    load_before = os.getloadavg()[0]
    verdicts: list[Verdict] = []
    for verdict in run_faults(chosen, plan, console):
        verdicts.append(verdict)
        if given.page:  # after each: a run that is broken off keeps what it has
            write_page(Path(given.page), verdicts, run_label(), _notes(plan, load_before))
    _show(verdicts, console)
    return 0 if all(verdict.is_right for verdict in verdicts) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lab.faults", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("faults", nargs="*", metavar="FAULT", help="names; all unless given")
    parser.add_argument("--list", action="store_true", help="print the names, and what cannot be run here")
    parser.add_argument("--times", type=int, default=0, help=f"each is injected; {TIMES}, or 1 with --quick")
    parser.add_argument("--seed", type=int, default=0, help="of when, between two beats, a worker is killed")
    parser.add_argument("--rate", type=float, default=RATE, help="turns a second that are submitted meanwhile")
    parser.add_argument("--quick", action="store_true", help="once each, with short outages")
    parser.add_argument("--page", default=str(PAGE), metavar="PATH", help="where the rows go; empty: nowhere")
    return parser


def _show_list(console: Console) -> None:
    for fault in FAULTS:
        why_not = fault.why_not()
        console.print(f"{fault.name:24} {fault.title}" + (f" (not here: {why_not})" if why_not else ""), markup=False)


def _show(verdicts: Sequence[Verdict], console: Console) -> None:
    table = Table("fault", "fired", "turns", "lost", "doubled", "unknown", "other endings", "p50 s", "max s")
    for verdict in verdicts:
        if verdict.why_not:
            table.add_row(verdict.name, f"not run here: {verdict.why_not}")
            continue
        spread = verdict.spread()
        table.add_row(
            verdict.name,
            f"{sum(map(bool, verdict.fired))} of {verdict.times}",
            *map(str, (verdict.turns, len(verdict.lost), len(verdict.doubled), verdict.unknown)),
            ", ".join(f"{count} {ending}" for ending, count in verdict.otherwise.items()) or "0",
            *(f"{value:.1f}" for value in spread or ()),
            style="" if verdict.is_right else "red",
        )
    console.print(table)
    for verdict in verdicts:
        for line in filter(None, [verdict.failure, *verdict.lost[:20], *verdict.doubled[:20]]):
            console.print(f"  {verdict.name}: {line}", style="red", markup=False)
        if not verdict.why_not and not verdict.has_fired:
            console.print(f"  {verdict.name}: it did not fire", style="red", markup=False)


def _notes(plan: Plan, load_before: float) -> str:
    on = machine()
    return (
        f"The last run: {on['cpu']}, {on['cores']} cores, load {load_before:.1f} before and {os.getloadavg()[0]:.1f} "
        f"after. Python {on['python']}, {on['redis_server']}. {plan.times} times each, {plan.rate:g} turns/s, "
        f"outages of {plan.pace.outage_s:g} s, seed {plan.seed}."
    )


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, end_in_order)
    sys.exit(main())
