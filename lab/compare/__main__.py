"""`python -m lab.compare`: the reference turn on brainq and its rivals, interleaved, in one sitting."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from lab.bench.machine import machine
from lab.compare.chart import chart
from lab.compare.install import InstallFailure, install, version_of
from lab.compare.measuring import RunFailure, p99_ms, throughput
from lab.compare.results import Measured, markdown, table
from lab.compare.systems import NAMES, System, chosen

TURNS, AT_ONCE, ROUNDS, WITHIN_S = 300, 300, 3, 300.0


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    console = Console(stderr=True, highlight=False)
    on, loads = machine(), list[float]()
    results = [_set_up(system, console) for system in given.only]
    for number in range(given.rounds):
        # Who goes first changes: a machine that gets slower, or busier, is everybody's.
        for result in [*results[number % len(results) :], *results[: number % len(results)]]:
            if not result.failure:
                console.print(f"round {number + 1} of {given.rounds}: {result.system.label} ...")
                _measure(result, given)
                if result.failure:
                    console.print(f"  failed: {result.failure}", markup=False, style="red")
        loads.append(round(os.getloadavg()[0], 1))
        # After each round: a sitting that is broken off keeps what it has.
        _write(Path(given.to), results, {**on, "load_after_rounds": loads})
    shown = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
    shown.print(table(results))
    cpu, cores = on["cpu"], on["cores"]
    shown.print(
        f"{cpu}, {cores} cores, load before {on['load_before'][0]:g}, after each round {loads}; "
        f"Python {on['python']}, {on['redis_server']}; medians of {given.rounds} rounds (least to most)"
    )
    shown.print(f"written to {given.to}/compare.json, .md and .svg")
    return 0 if all(not result.failure for result in results) else 1


def _set_up(system: System, console: Console) -> Measured:
    console.print(f"setting up {system.label} (once) ...")
    result = Measured(system)
    try:
        install(system)
        result.version = version_of(system)
    except InstallFailure as failure:
        result.failure = f"cannot be set up: {failure}"
        console.print(f"  {result.failure}", markup=False, style="red")
    return result


def _measure(result: Measured, given: argparse.Namespace) -> None:
    """Run one round. An error that stops it is recorded, and the system takes part in no further rounds."""
    try:
        plain = throughput(result.system, given.turns, WITHIN_S)
        result.figures["turns_per_s"].append(plain.turns_per_s)
        result.figures["cpu_ms_per_turn"].append(plain.cpu_ms_per_turn)
        result.figures["p99_ms"].append(p99_ms(result.system, given.at_once, WITHIN_S))
    except RunFailure as failure:
        result.failure = str(failure)


def _write(directory: Path, results: Sequence[Measured], on: dict[str, Any]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    figures = {
        result.system.name: {"version": result.version, "failure": result.failure, **result.figures}
        for result in results
    }
    (directory / "compare.json").write_text(json.dumps({"systems": figures, "machine": on}, indent=2) + "\n")
    (directory / "compare.md").write_text(markdown(results) + "\n")
    (directory / "compare.svg").write_text(chart(results))


def _systems(names: str) -> tuple[System, ...]:
    try:
        return chosen(names)
    except ValueError as unknown:
        raise argparse.ArgumentTypeError(str(unknown)) from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab.compare", description=__doc__)
    parser.add_argument("--only", type=_systems, default=chosen(None), help=f"of {','.join(NAMES)}")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--turns", type=int, default=TURNS, help="turns of a throughput run")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help="turns of a latency run")
    parser.add_argument("--to", default=".bench", metavar="DIRECTORY", help="where table and chart go")
    return parser


if __name__ == "__main__":
    sys.exit(main())
