"""`python -m lab.bench.scripts [--against CHECKOUT]`: what each Lua script costs Redis, in CPU.

The reference turns run in one process and without Celery, as for `--profile`, so Redis does one command at a time.
After each the CPU time of its main thread is read, which the machine's other work does not change; what a PING costs
is taken off. With `--against` another checkout's turns run alternately, each in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parents[2]
PLAIN = "(plain commands)"
WARM_UP_TURNS = 20
AT_ONCE = 8
"""Turns in flight: as many as the finalizer's list holds. Behind more, each step would be rung for by itself, as in a
deployment whose finalizer does not keep up."""
PINGS = 500


@dataclass(slots=True)
class Used:
    """The use of one script, or of all plain commands: the number of runs, and CPU in µs."""

    calls: int = 0
    cpu_us: float = 0.0


@dataclass(frozen=True, slots=True)
class ScriptCost:
    """The number of a script's calls per turn, and the CPU of each call in µs."""

    calls: float = 0.0
    us_a_call: float = 0.0

    @property
    def us_a_turn(self) -> float:
        return self.calls * self.us_a_call


class CpuMeter:
    """A meter of the CPU time that a server's main thread spends on each command of a client."""

    def __init__(self, client: Any) -> None:
        pid = int(client.info("server")["process_id"])
        self._clock, self._state = (f"/proc/{pid}/task/{pid}/{name}" for name in ("schedstat", "stat"))
        self._send = client.execute_command
        self.used: defaultdict[str, Used] = defaultdict(Used)
        self._names: Mapping[str, str] = {}
        self._ping_us = 0.0
        before = self._asleep_us()
        for _ in range(PINGS):
            self._send("PING")
        self._ping_us = (self._asleep_us() - before) / PINGS

    def watch(self, client: Any, names: Mapping[str, str]) -> None:
        """Measure what `client` sends from now on. `names`: of scripts by their SHA."""
        self._names = names
        client.execute_command, client.replies = self.execute_command, self.replies

    def execute_command(self, *words: Any, **options: Any) -> Any:
        before = self._asleep_us()
        try:
            return self._send(*words, **options)
        finally:
            name = self._names.get(words[1], "") if words[0] == "EVALSHA" else PLAIN
            # The pump's own looks at the queues are in place of what a worker's BLMPOP is.
            if words[0] != "RPOP":
                used = self.used[name or words[1]]
                used.calls += 1
                used.cpu_us += max(0.0, self._asleep_us() - before - self._ping_us)

    def replies(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        """Send the commands one by one, so that each is measured."""
        return [self.execute_command(*command) for command in commands]

    def _asleep_us(self) -> float:
        """Return the CPU time until now. It is exact once the thread sleeps, which happens soon after its reply."""
        while Path(self._state).read_text().rpartition(")")[2].split()[0] != "S":
            os.sched_yield()
        return int(Path(self._clock).read_text().split()[0]) / 1000


def measure(turns: int) -> dict[str, ScriptCost]:
    """Measure by script, and for all plain commands together, over `turns` reference turns in this process."""
    from lab.bench.pump import pump
    from lab.bench.stage import forget_settings, open_client

    forget_settings()
    kept = Path(".bench")
    kept.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="scripts-", dir=kept) as name, open_client(Path(name)) as (client, _):
        state = _state(client)
        pump(client, WARM_UP_TURNS)
        meter = CpuMeter(state.redis)
        meter.watch(state.redis, {script.sha: name for name, script in _loaded(state.scripts).items()})
        turns = -(-turns // AT_ONCE) * AT_ONCE
        for _ in range(turns // AT_ONCE):
            pump(client, AT_ONCE)
    return {name: ScriptCost(used.calls / turns, used.cpu_us / used.calls) for name, used in meter.used.items()}


def _state(client: Any) -> Any:
    """Return the Redis part of a client's wiring.

    Before `client.connection` existed, releases had the wiring at the client.
    """
    if hasattr(client, "wiring"):
        return client.wiring.state
    from brainq.client.connection import wiring_of

    return wiring_of(client).state


def _loaded(scripts: Any) -> Mapping[str, Any]:
    """Return all scripts by name. Older releases keep them under a private name."""
    return scripts.loaded if hasattr(scripts, "loaded") else vars(scripts)["_scripts"]


def measure_in(checkout: Path, turns: int) -> dict[str, ScriptCost]:
    """Measure in a process that runs the code of `checkout`. Raises CalledProcessError."""
    run = subprocess.run(
        [checkout / ".venv/bin/python", __file__, "--turns", str(turns), "--raw"],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return {name: ScriptCost(**cost) for name, cost in json.loads(run.stdout.splitlines()[-1]).items()}


def medians(rounds: Sequence[Mapping[str, ScriptCost]]) -> dict[str, ScriptCost]:
    """Return the medians of each figure over the rounds. A script that a round did not call cost nothing there."""
    names = sorted({name for costs in rounds for name in costs})
    by_name = {name: [costs.get(name, ScriptCost()) for costs in rounds] for name in names}
    return {
        name: ScriptCost(
            statistics.median(cost.calls for cost in costs), statistics.median(cost.us_a_call for cost in costs)
        )
        for name, costs in by_name.items()
    }


def table(now: Mapping[str, ScriptCost], before: Mapping[str, ScriptCost] | None) -> Table:
    """Return all scripts, the most expensive first, with the other checkout's figures if there are any."""
    columns = ["script", "calls a turn", "us a call", "us a turn"]
    shown = Table(*columns, *(["calls before", "us a call before", "us a turn before"] if before else []))
    either = {**(before or {}), **now}
    for name in sorted(either, key=lambda name: -either[name].us_a_turn):
        shown.add_row(name, *_row(now.get(name)), *(_row(before.get(name)) if before else ()))
    total, total_before = (sum(cost.us_a_turn for cost in costs.values()) for costs in (now, before or {}))
    shown.add_section()
    shown.add_row("all", "", "", f"{total:.0f}", *(["", "", f"{total_before:.0f}"] if before else []))
    return shown


def _row(cost: ScriptCost | None) -> list[str]:
    return [f"{cost.calls:.2f}", f"{cost.us_a_call:.0f}", f"{cost.us_a_turn:.0f}"] if cost else ["", "", ""]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.bench.scripts", description=__doc__)
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="another checkout, with a .venv")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turns", type=int, default=200, help="reference turns a round")
    parser.add_argument("--raw", action="store_true", help="one round, as JSON")
    given = parser.parse_args(arguments)
    if given.raw:
        print(json.dumps({name: asdict(cost) for name, cost in measure(given.turns).items()}))
        return 0
    console = Console(highlight=False, width=110)
    checkouts = [HERE, *([given.against.resolve()] if given.against else [])]
    found: dict[Path, list[dict[str, ScriptCost]]] = {checkout: [] for checkout in checkouts}
    for number in range(given.rounds):
        console.print(f"round {number + 1} of {given.rounds} ...")
        for checkout in checkouts if number % 2 else reversed(checkouts):
            found[checkout].append(measure_in(checkout, given.turns))
    ours, *theirs = (medians(found[checkout]) for checkout in checkouts)
    console.print(table(ours, theirs[0] if theirs else None))
    return 0


if __name__ == "__main__":
    sys.exit(main())
