"""`python -m lab.bench.cells`: the same load by one, two and four cells on this machine, split by tenants.

A turn is to cost the same CPU however many cells there are (within 5 %), and each cell's Redis its share of the turns.
Each round runs each number of cells once, so that what else the machine does falls on all of them. Each cell has one
process a pool: four cells are sixteen workers on the same cores, each of which has less to do and so wakes oftener for
each turn. `--processes 4` gives each pool four processes in all, however many cells they are in: what differs then
is the cells alone.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from brainq.app.devserver.local_fleet import POOLS, LocalFleet
from brainq.app.devserver.redis_server import EmbeddedServer, socket_path
from brainq.client.client import Client
from brainq.client.connection import wiring_of
from brainq.contracts.cell import hashed_cell
from brainq.contracts.ids import new_turn_id
from brainq.engine.brain.brains import load_brains
from brainq.errors import SetupError
from brainq.runtime.settings.deployment import load_settings
from lab.bench.counters import Counters, read_counters
from lab.bench.load import Submitted
from lab.bench.noop_task import DONE_IN
from lab.bench.outcomes import BenchFailure, read_outcomes, wait_finished
from lab.bench.stage import APP, ROOT, Stage, forget_settings

WARM_UP_TURNS = 20
NAMES = "abcdefgh"
MESSAGE = "Make one note of the first three days."


@dataclass(frozen=True, slots=True)
class Run:
    """The figures of one run: CPU ms per turn of all processes, and of each cell's Redis.

    redis   CPU ms of each cell's Redis, over all turns of the run
    """

    cells: int
    turns_per_s: float
    cpu_ms: float
    producer_ms: float
    redis: tuple[float, ...]


@contextmanager
def running_cells(
    directory: Path, count: int, processes: int | None = None
) -> Generator[tuple[Client, dict[str, Stage]]]:
    """Run this many cells. Yields a front over them, and each cell by its name, with its workers ready.

    processes   the number per pool over all cells; None for one per cell
    """
    workers: dict[str, int] = dict.fromkeys(POOLS, max(1, (processes or count) // count))
    with ExitStack() as exits:
        said: dict[str, dict[str, str]] = {}
        for name in NAMES[:count]:
            home = directory / name
            server = exits.enter_context(EmbeddedServer(home / "redis", unix_socket=socket_path(home / "redis")))
            said[name] = {"redis": server.url, "sql": f"sqlite:///{home.absolute() / 'bench.db'}"}
        cells = json.dumps(said)
        stages = {
            name: exits.enter_context(_running_cell(directory / name, name, cells, servers, workers))
            for name, servers in said.items()
        }
        settings = load_settings(app=APP, cells=cells, task_events=False)
        front = exits.enter_context(Client(settings, load_brains(APP)))
        yield front, stages


@contextmanager
def _running_cell(
    directory: Path, name: str, cells: str, servers: Mapping[str, str], workers: Mapping[str, int]
) -> Generator[Stage]:
    (directory / "done").mkdir(parents=True)
    environment = {
        "BRAINQ_APP": APP,
        "BRAINQ_CELLS": cells,
        "BRAINQ_CELL": name,
        "BRAINQ_TASK_EVENTS": "false",
        DONE_IN: str(directory / "done"),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])),
    }
    # A client of this one cell: it waits for turns, and reads counters.
    alone = load_settings(app=APP, redis_url=servers["redis"], sql_url=servers["sql"], task_events=False)
    with Client(alone, load_brains(APP)) as client:
        wiring_of(client).warm_up()
        with LocalFleet(directory / "workers", environment, workers=workers) as fleet:
            pid = int(wiring_of(client).state.redis.info("server")["process_id"])
            yield Stage(client, fleet, pid, directory / "done")


def tenants_of(names: Sequence[str]) -> list[str]:
    """Return one tenant of each cell, as the directory places them."""
    found: dict[str, str] = {}
    number = 0
    while len(found) < len(names):
        tenant = f"t{number}:"
        found.setdefault(hashed_cell(tenant, names), tenant)
        number += 1
    return [found[name] for name in names]


def submit(front: Client, tenants: Sequence[str], count: int) -> tuple[list[list[Submitted]], float]:
    """Submit this many turns of the tenants in rotation.

    Returns each tenant's turns, and the producer's CPU time in seconds.
    """
    turns: list[list[Submitted]] = [[] for _ in tenants]
    cpu_s = time.thread_time()
    for number in range(count):
        which = number % len(tenants)
        turn_id = new_turn_id()
        session_id = f"{tenants[which]}{turn_id}"
        at_ms = time.time() * 1000
        handle = front.submit(session_id, MESSAGE, turn_id=turn_id)
        turns[which].append(Submitted(session_id, handle.turn_id, at_ms))
    return turns, time.thread_time() - cpu_s


def run(directory: Path, count: int, turns: int, processes: int | None = None) -> Run:
    """Do one run. Raises BenchFailure if a turn is not as expected."""
    with running_cells(directory, count, processes) as (front, stages):
        tenants = tenants_of(list(stages))
        for stage, warm in zip(stages.values(), submit(front, tenants, WARM_UP_TURNS * count)[0], strict=True):
            wait_finished(stage, warm)
        before = {name: read_counters(stage) for name, stage in stages.items()}
        began = time.monotonic()
        submitted, producer_s = submit(front, tenants, turns)
        for stage, theirs in zip(stages.values(), submitted, strict=True):
            wait_finished(stage, theirs)
        took_s = time.monotonic() - began
        used = {name: read_counters(stage).since(before[name]) for name, stage in stages.items()}
        for stage, theirs in zip(stages.values(), submitted, strict=True):
            read_outcomes(stage, theirs)
    return _run(count, turns, took_s, producer_s, list(used.values()))


def _run(count: int, turns: int, took_s: float, producer_s: float, used: Sequence[Counters]) -> Run:
    all_s = sum(sum(counters.cpu_s.values()) for counters in used) + producer_s
    return Run(
        cells=count,
        turns_per_s=round(turns / took_s, 1),
        cpu_ms=round(all_s * 1000 / turns, 2),
        producer_ms=round(producer_s * 1000 / turns, 2),
        redis=tuple(round(counters.cpu_s["redis"] * 1000 / turns, 2) for counters in used),
    )


def summary(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return, by number of cells, the medians, and the medians of each round's ratio to its first run. Pure."""
    rounds: dict[int, list[Run]] = {}
    for one in runs:
        rounds.setdefault(one.cells, []).append(one)
    (first, *_) = rounds.values()
    return [
        {
            "cells": count,
            "turns_per_s": median(one.turns_per_s for one in of),
            "cpu_ms": median(one.cpu_ms for one in of),
            "cpu_ratio": round(median(one.cpu_ms / base.cpu_ms for one, base in zip(of, first, strict=True)), 3),
            "redis_a_cell_ms": round(median(max(one.redis) for one in of), 2),
            "redis_ratio": round(
                median(max(one.redis) / max(base.redis) for one, base in zip(of, first, strict=True)), 3
            ),
            "producer_ms": median(one.producer_ms for one in of),
        }
        for count, of in rounds.items()
    ]


def show(rows: Sequence[dict[str, Any]], console: Console) -> None:
    table = Table(title="the same turns by so many cells: medians, and ratios to the first")
    for name in ("cells", "turns/s", "CPU ms a turn", "ratio", "busiest Redis, ms a turn", "ratio", "producer"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    console.print(table)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.bench.cells", description=__doc__)
    parser.add_argument("--cells", default="1,2,4", help="how many cells, each number once a round")
    parser.add_argument("--turns", type=int, default=300, help="in all, whatever the number of cells")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--processes", type=int, help="of each pool, over all cells (one a cell unless given)")
    parser.add_argument("--json", default=".bench/cells.json", help="where the figures go")
    given = parser.parse_args(arguments)
    counts = [int(number) for number in given.cells.split(",")]
    forget_settings()
    console = Console(highlight=False)
    kept = Path(given.json)
    kept.parent.mkdir(parents=True, exist_ok=True)
    runs: list[Run] = []
    try:
        for number in range(1, given.rounds + 1):
            for count in counts:
                with tempfile.TemporaryDirectory(prefix="run-", dir=kept.parent) as name:
                    runs.append(run(Path(name), count, given.turns, given.processes))
                console.print(f"round {number}, {count} cells: {runs[-1]}")
    except (BenchFailure, SetupError) as failure:
        console.print(f"bench: {failure}", markup=False, style="red")
        return 1
    rows = summary(runs)
    kept.write_text(json.dumps(rows, indent=2) + "\n")
    show(rows, console)
    console.print(f"written to {kept}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
