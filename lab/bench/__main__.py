"""`python -m lab.bench`: measures, prints the tables, writes `.bench/latest.json`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from brainq.app.devserver.local_fleet import ALL
from brainq.errors import SetupError
from lab.bench.growth import growth
from lab.bench.latency import IDEAL_MS, latency
from lab.bench.long_turn import long_turns
from lab.bench.machine import machine
from lab.bench.outcomes import BenchFailure
from lab.bench.parked import parked_turns
from lab.bench.pump import POOLS, profile
from lab.bench.report import show, summary
from lab.bench.scripts import measure
from lab.bench.stage import forget_settings
from lab.bench.three_steps import three_steps
from lab.bench.throughput import throughput

FULL_TURNS, QUICK_TURNS = 1500, 300
IDLE_TURNS = 50
SCRIPT_TURNS = 100


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    forget_settings()
    console = Console(stderr=given.profile is None, highlight=False)
    kept = Path(given.json)
    kept.parent.mkdir(parents=True, exist_ok=True)
    turns = given.turns or (QUICK_TURNS if given.quick else FULL_TURNS)
    # Beside the figures, and not in the system's temporary directory, which may be memory and no disk.
    with tempfile.TemporaryDirectory(prefix="run-", dir=kept.parent) as name:
        try:
            if given.profile:
                profile(Path(name), given.profile, turns, kept.parent / f"profile-{given.profile}.pstats", console)
                return 0
            figures = _measure(given, turns, Path(name), console)
        except (BenchFailure, SetupError) as failure:
            console.print(f"bench: {failure}", markup=False, style="red")
            return 1
    if kept.exists() and (recovery := json.loads(kept.read_text()).get("recovery_s")):
        figures["recovery_s"] = recovery  # by lab.bench.recovery, with its own build and day
    kept.write_text(json.dumps(figures, indent=2) + "\n")
    show(figures, Console(highlight=False))
    console.print(f"written to {kept}")
    return 0


def _measure(given: argparse.Namespace, turns: int, directory: Path, console: Console) -> dict[str, Any]:
    wanted: str = given.only or "throughput idle latency long parked growth scripts three"
    on = machine()
    concurrency, workers = dict(given.concurrency), dict(given.workers)
    idle_turns = max(2, round(IDLE_TURNS * given.scale)) if "idle" in wanted else 0
    plain = events = late = None
    if "throughput" in wanted or "idle" in wanted:
        console.print(f"throughput, zero latencies, task events off: {turns} turns ...")
        plain = throughput(
            directory / "plain",
            turns if "throughput" in wanted else 1,
            task_events=False,
            idle_turns=idle_turns,
            concurrency=concurrency,
            workers=workers,
        )
    if "throughput" in wanted:
        console.print(f"throughput, zero latencies, task events on: {turns} turns ...")
        events = throughput(
            directory / "events", turns, task_events=True, idle_turns=0, concurrency=concurrency, workers=workers
        )
    if "latency" in wanted:
        console.print(f"latency, ideal {IDEAL_MS} ms: 60 at once, 300 at 60 a second, 300 at once ...")
        late = latency(
            directory / "latency", scale=given.scale, task_events=given.events, concurrency=concurrency, workers=workers
        )
    long = None
    if "long" in wanted:
        console.print("one turn of 20 steps, and of 200 ...")
        long = long_turns(directory / "long")
    parked = None
    if "parked" in wanted:
        console.print("new turns beside 500 that wait for people ...")
        parked = parked_turns(directory / "parked", scale=given.scale)
    scripts = None
    if "scripts" in wanted:
        console.print(f"Redis' CPU by script: {SCRIPT_TURNS} turns, without Celery ...")
        scripts = measure(SCRIPT_TURNS)
    grown = None
    if "growth" in wanted:
        console.print("a session's 2nd turn, and its 501st ...")
        grown = growth(directory / "growth", scale=given.scale)
    three = None
    if "three" in wanted:
        console.print("workflows of three steps: one after another, and 200 at once ...")
        three = three_steps(directory / "three", scale=given.scale)
    return summary(
        machine=on,
        ideal_ms=IDEAL_MS,
        plain=plain,
        events=events,
        latency=late,
        long=long,
        parked=parked,
        growth=grown,
        scripts=scripts,
        three=three,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_TURNS} turns instead of {FULL_TURNS}")
    parser.add_argument("--turns", type=int, help="turns of each throughput run")
    parser.add_argument(
        "--only", choices=("throughput", "latency", "idle", "long", "parked", "growth", "scripts", "three")
    )
    parser.add_argument("--events", action="store_true", help="latency with task events on")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="multiplies the turns of the latency and idle runs (smoke tests)"
    )
    for option, what in (("concurrency", "threads a process"), ("workers", "processes, all=N for all pools in each;")):
        parser.add_argument(
            f"--{option}", type=_of_pool, action="append", default=[], metavar="POOL=N", help=f"{what} of a pool"
        )
    parser.add_argument("--profile", choices=POOLS, help="profile one pool's machine instead of measuring")
    parser.add_argument("--json", default=".bench/latest.json", metavar="PATH", help="where the figures go")
    return parser


def _of_pool(text: str) -> tuple[str, int]:
    pool, _, number = text.partition("=")
    if pool not in (*POOLS, ALL) or not number.isdecimal() or int(number) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not POOL=N with a pool of {', '.join(POOLS)}, or all")
    return pool, int(number)


if __name__ == "__main__":
    sys.exit(main())
