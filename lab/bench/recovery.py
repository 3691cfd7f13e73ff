"""`python -m lab.bench.recovery`: workers are killed at their work; how long until it goes on, and until the turn ends.

In each round a worker of each pool dies (SIGKILL) in the middle of a turn of its own. The workers load this module as
BRAINQ_APP: whoever first comes to where a turn's worker is to die says so and stays there; who comes next says when.
The figures go into `.bench/latest.json`, and the table into docs/reference/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from brainq import Brain, Effect, Middleware, RunContext, ScriptedProvider
from brainq.adapters.redis.fleet import RedisPresence
from brainq.app.devserver.local_fleet import LocalFleet, LocalWorker
from brainq.client.client import Client
from brainq.client.connection import wiring_of
from brainq.contracts.callbacks import UsageInfo
from brainq.contracts.ids import new_turn_id
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.contracts.status import Ending, TraceStatus
from brainq.engine.brain.middleware import CallStart
from brainq.engine.models.scripted import calls, says
from lab.bench.machine import machine
from lab.bench.outcomes import BenchFailure, percentile
from lab.bench.stage import forget_settings, open_client

CASES = {
    "coordinator": "coordinator, while the model answers",
    "parallel": "parallel, in a read",
    "serial": "serial, before its intent",
    "serial_started": "serial, in a write: `unknown`",
    "finalizer": "finalizer, in a step",
}
WORKERS = {"coordinator": 2, "parallel": 2, "serial": 3, "finalizer": 2}
DIRECTORY, LEASE_ONLY = "BENCH_RECOVERY_DIR", "BENCH_LEASE_ONLY"
KILLS, HOLD_S, BEAT_S, PATIENCE_S = 30, 300.0, 3.0, 120.0
HERE = Path(__file__).parents[2]
PAGE = HERE / "docs" / "reference" / "benchmarks.md"
BEGINS, ENDS = "<!-- python -m lab.bench.recovery writes this -->", "<!-- to here -->"

# What the workers run.


def _mark(turn_id: str, name: str) -> Path:
    return Path(os.environ[DIRECTORY], f"{turn_id}.{name}")


def _come_to(case: str, turn_id: str) -> None:
    """Stay here to be killed if the turn is of this case and no process was here before.

    Otherwise report when this was.
    """
    if _mark(turn_id, "case").read_text() != case:
        return
    if _mark(turn_id, "first").exists():
        _write(_mark(turn_id, "again"), str(time.monotonic()))
        return
    _write(_mark(turn_id, "first"), str(os.getpid()))
    time.sleep(HOLD_S)


def _write(path: Path, text: str) -> None:
    """Write the whole file at once, so that a reader never finds a part of it."""
    part = path.with_suffix(".part")
    part.write_text(text)
    part.rename(path)


def _answer(request: ModelRequest) -> ModelReply:
    if request.step == 1:
        _come_to("coordinator", request.turn_id)
        return calls(("read", {}))
    if request.step == 2:
        return calls(("write", {}))
    if _mark(request.turn_id, "case").read_text() == "serial_started":
        _come_to("serial_started", request.turn_id)
    return says("done")


class BeforeIntents(Middleware):
    def before_call(self, call: CallStart) -> None:
        if call.call.name == "write":
            _come_to("serial", call.turn_id)


brain = Brain("recovery", ScriptedProvider(rules=_answer), "Do as you are told.", middleware=[BeforeIntents()])


@brain.tool(effect=Effect.READ_ONLY)
def read(context: RunContext) -> str:
    """Read."""
    _come_to("parallel", context.turn_id)
    return "read"


@brain.tool(effect=Effect.LOCAL_WRITE)
def write(context: RunContext) -> str:
    """Write."""
    _come_to("serial_started", context.turn_id)
    return "written"


@brain.on_usage
def count_usage(usage: UsageInfo) -> None:
    _come_to("finalizer", usage.turn_id)


if LEASE_ONLY in os.environ:
    RedisPresence.begin = lambda self: None  # a process that is not watched, as those of a build without presence


# Killing them.


@dataclass(frozen=True, slots=True)
class Death:
    """The seconds from a worker's SIGKILL until its work continued, and until its turn's result was published."""

    goes_on_s: float
    ends_s: float


@dataclass(slots=True)
class Victim:
    """A turn whose worker is to die at `case`.

    killed         by time.monotonic()
    killed_at_ms   by Redis' clock, which is this machine's
    """

    case: str
    turn_id: str
    killed: float = 0.0
    killed_at_ms: float = 0.0

    @property
    def pool(self) -> str:
        return self.case.partition("_")[0]


class Deaths:
    """A series of deaths on one stage."""

    def __init__(self, client: Client, fleet: LocalFleet, *, seed: int = 0) -> None:
        self._client = client
        self._fleet = fleet
        self._random = random.Random(seed)

    def round(self) -> dict[str, Death]:
        """Cause one death of each case, and replace the dead.

        Raises BenchFailure if a turn did not continue as expected.
        """
        victims = [self._begin(case) for case in CASES if case != "finalizer"]
        # Where in the middle between two beats they are is left to chance, but for the finalizer's: a second later its
        # turn's result would have gone out without it.
        time.sleep(self._random.uniform(0.0, BEAT_S))
        victims.append(self._begin("finalizer"))
        for victim in victims:
            self._kill(victim)
        found = {victim.case: self._follow(victim) for victim in victims}
        for worker in self._fleet.workers:
            if not worker.is_running:
                worker.launch()
        self._fleet.wait_ready()
        return found

    def _begin(self, case: str) -> Victim:
        victim = Victim(case, new_turn_id())
        _write(_mark(victim.turn_id, "case"), case)
        self._client.submit(f"s-{victim.turn_id}", "Go on.", turn_id=victim.turn_id)
        _wait_for(_mark(victim.turn_id, "first"), victim)
        return victim

    def _kill(self, victim: Victim) -> None:
        worker = self._worker(victim)
        victim.killed, victim.killed_at_ms = time.monotonic(), time.time() * 1000
        self._fleet.kill(worker, signal.SIGKILL)

    def _worker(self, victim: Victim) -> LocalWorker:
        pid = int(_mark(victim.turn_id, "first").read_text())
        for worker in self._fleet.of_pool(victim.pool):
            if worker.process is not None and worker.process.pid == pid:
                return worker
        raise BenchFailure(f"{victim.case} was reached in process {pid}, which is no {victim.pool} worker")

    def _follow(self, victim: Victim) -> Death:
        went_on = float(_wait_for(_mark(victim.turn_id, "again"), victim))
        handle = self._client.handle(victim.turn_id)
        result = handle.result(timeout_s=PATIENCE_S)
        *_, last = handle.events(timeout_s=PATIENCE_S)
        trace = wiring_of(self._client).state.calls.trace(handle.session_id, handle.turn_id)
        wrote = TraceStatus.UNKNOWN if victim.case == "serial_started" else TraceStatus.COMPLETED
        if result.ending is not Ending.COMPLETED or [call.status for call in trace] != [TraceStatus.COMPLETED, wrote]:
            raise BenchFailure(f"the turn of {victim.case} ended as {result.ending} with {trace}")
        return Death(went_on - victim.killed, (last.at_ms - victim.killed_at_ms) / 1000)


def _wait_for(mark: Path, victim: Victim) -> str:
    until = time.monotonic() + PATIENCE_S
    while not mark.exists():
        if time.monotonic() > until:
            raise BenchFailure(f"{victim.case}: turn {victim.turn_id} did not come to {mark.suffix[1:]!r}")
        time.sleep(0.002)
    return mark.read_text()


def measure(directory: Path, kills: int, *, lease_only: bool, console: Console) -> dict[str, Any]:
    """Measure the seconds by case, with default settings: `goes_on` and `ends`, each with p50, p90 and maximum."""
    marks = directory / "marks"
    marks.mkdir(parents=True)
    os.environ[DIRECTORY] = str(marks)
    with open_client(directory, app="lab.bench.recovery:brain") as (client, environment):
        environment |= {DIRECTORY: str(marks)} | ({LEASE_ONLY: "1"} if lease_only else {})
        found: dict[str, list[Death]] = {case: [] for case in CASES}
        with LocalFleet(directory / "workers", environment, workers=WORKERS) as fleet:
            deaths = Deaths(client, fleet)
            for number in range(1, kills + 1):
                for case, death in deaths.round().items():
                    found[case].append(death)
                console.print(f"{number} of {kills} rounds", end="\r")
    return {
        case: {
            "kills": len(died),
            "goes_on": _spread([death.goes_on_s for death in died]),
            "ends": _spread([death.ends_s for death in died]),
        }
        for case, died in found.items()
    }


def _spread(seconds: Sequence[float]) -> dict[str, float]:
    found = {"p50": percentile(seconds, 50), "p90": percentile(seconds, 90), "max": max(seconds)}
    return {name: round(value, 2) for name, value in found.items()}


# Showing them.


def table(figures: Mapping[str, Any]) -> str:
    """Return a Markdown table of both measured ways of noticing a death."""
    ways = {name: figures[name] for name in ("presence", "lease_only") if name in figures}
    heads = {"presence": "noticed at once", "lease_only": "by the lease alone"}
    columns = [f"{what}, {heads[way]}" for way in ways for what in ("goes on", "result out")]
    lines = ["| a worker dies | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for case, label in CASES.items():
        cells = [_cell(ways[way]["cases"][case][what]) for way in ways for what in ("goes_on", "ends")]
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(spread: Mapping[str, float]) -> str:
    return " / ".join(f"{spread[name]:.1f}" for name in ("p50", "p90", "max"))


def section(figures: Mapping[str, Any]) -> str:
    """Return the text between the marks of the page."""
    notes: list[str] = []
    for way, label in (("presence", "This build"), ("lease_only", "By the lease alone")):
        if way in figures:
            run = figures[way]
            load = ", ".join(f"{value:g}" for value in run["load"])
            kills = run["cases"]["coordinator"]["kills"]
            notes.append(f"{label}: build `{run['build']}`, {run['day']}, {kills} kills a row, load {load}.")
    return "\n".join([" ".join(notes), "", "Seconds from the SIGKILL, p50 / p90 / max:", "", table(figures)])


def write_page(page: Path, figures: Mapping[str, Any]) -> None:
    before, found, rest = page.read_text().partition(BEGINS)
    _, ended, after = rest.partition(ENDS)
    if not (found and ended):
        raise BenchFailure(f"{page} has no {BEGINS} ... {ENDS}")
    page.write_text(f"{before}{BEGINS}\n\n{section(figures)}\n\n{ENDS}{after}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.bench.recovery", description=__doc__)
    parser.add_argument("--kills", type=int, default=KILLS, help="of each case")
    parser.add_argument("--lease-only", action="store_true", help="nobody watches which processes are there")
    parser.add_argument("--json", default=".bench/latest.json", metavar="PATH", help="where the figures go")
    parser.add_argument("--page", default=str(PAGE), metavar="PATH", help="where the table goes")
    given = parser.parse_args(arguments)
    forget_settings()
    console, kept = Console(highlight=False), Path(given.json)
    kept.parent.mkdir(parents=True, exist_ok=True)
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="run-", dir=kept.parent) as name:
        try:
            cases = measure(Path(name), given.kills, lease_only=given.lease_only, console=console)
            figures = json.loads(kept.read_text()) if kept.exists() else {"machine": machine()}
            recovery = figures.setdefault("recovery_s", {})
            recovery["lease_only" if given.lease_only else "presence"] = {
                "build": _build(),
                "day": f"{datetime.now(UTC):%-d %B %Y}",
                "load": [round(load_before, 1), round(os.getloadavg()[0], 1)],
                "cases": cases,
            }
            kept.write_text(json.dumps(figures, indent=2) + "\n")
            write_page(Path(given.page), recovery)
        except BenchFailure as failure:
            console.print(f"bench: {failure}", markup=False, style="red")
            return 1
    console.print(table(recovery), markup=False)
    return 0


def _build() -> str:
    command = ["git", "rev-parse", "--short=7", "HEAD"]
    found = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=True)
    return found.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
