"""Where a pool's time goes: its machine under cProfile, in one process and without Celery.

This process takes doorbells from the queues itself and answers them one by one, so one pool's calls can be
profiled apart from all others. What Celery adds to a doorbell is not in it: the difference to the worker's
CPU in the throughput table is Celery, the beats and the switching between threads.
"""

from __future__ import annotations

import cProfile
import json
import pstats
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from rich.console import Console

from brainq.adapters.celery import names
from brainq.app.wiring import Wiring
from brainq.client.client import Client
from brainq.client.connection import wiring_of
from lab.bench.load import submit
from lab.bench.outcomes import BenchFailure
from lab.bench.stage import open_client

POOLS = ("coordinator", "parallel", "serial", "finalizer")
WARM_UP_TURNS = 20


@dataclass
class Pool:
    """A pool's machine, its queues, and what it has used: CPU seconds of this process, doorbells."""

    answer: Callable[..., object]
    queues: tuple[str, ...]
    cpu_s: float = 0.0
    doorbells: int = 0


def profile(directory: Path, pool: str, turns: int, kept: Path, console: Console, *, top: int = 25) -> None:
    """Run `turns` turns twice: for the CPU of all pools, then with `pool` profiled. Prints its functions by own
    time, and keeps the whole profile in `kept`. Raises BenchFailure when a turn did not finish.
    """
    # CPU time, not wall time: most of the latter is waiting for Redis.
    profiler = cProfile.Profile(time.thread_time)
    with open_client(directory) as (client, _):
        pump(client, WARM_UP_TURNS)
        plain = pump(client, turns)
        pump(client, turns, profiler, pool)
    console.print(f"CPU ms a turn in the machines, without Celery and without the profiler ({turns} turns):")
    for name, used in plain.items():
        cpu_ms, doorbells = used.cpu_s * 1000 / turns, used.doorbells / turns
        console.print(f"  {name:12} {cpu_ms:6.2f}  for {doorbells:g} doorbells")
    stats = pstats.Stats(profiler)
    kept.parent.mkdir(parents=True, exist_ok=True)
    stats.dump_stats(kept)
    stats.strip_dirs().sort_stats("tottime").print_stats(top)
    console.print(f"the whole profile is in {kept} (python -m pstats {kept})")


def pump(client: Client, turns: int, profiler: cProfile.Profile | None = None, pool: str = "") -> dict[str, Pool]:
    """Submit `turns` turns and answer doorbells until the queues are empty."""
    wiring = wiring_of(client)
    load = submit(client, turns)
    pools = _pools(wiring)
    while any(_answer_all(wiring, used, profiler if name == pool else None) for name, used in pools.items()):
        pass
    for turn in load.turns:
        if wiring.state.redis.hget(wiring.state.keys.turn(turn.session_id, turn.turn_id), "awaits") != "nobody":
            raise BenchFailure(f"turn {turn.turn_id} has not finished though the queues are empty")
    return pools


def drain(wiring: Wiring, after_each: Callable[[], None]) -> dict[str, Pool]:
    """Answer doorbells until the queues are empty, and call `after_each` after each round of the pools.

    Returns what each pool used.
    """
    pools = _pools(wiring)
    while sum(_answer_all(wiring, used, None) for used in pools.values()):
        after_each()
    return pools


def take(wiring: Wiring, queues: Iterable[str]) -> tuple[str, list[Any]] | None:
    """Take the next doorbell of these queues. Returns its task and arguments."""
    for key in [key for queue in queues for key in names.queue_keys(wiring.settings, queue)]:
        if (text := cast("str | None", wiring.state.redis.rpop(key))) is not None:
            message = json.loads(text)
            return message["headers"]["task"], json.loads(message["body"])[0]
    return None


def no_cut(_: object) -> None:
    """Do nothing.

    Calls run in this thread, as in a worker's own pool, and those of the benchmark's brain end in time.
    """
    raise BenchFailure("a call was cut off")


def _pools(wiring: Wiring) -> dict[str, Pool]:
    run_call = partial(wiring.runner.run, abandon=no_cut)
    return {
        "coordinator": Pool(wiring.coordinator.advance, names.COORDINATOR_QUEUES),
        "parallel": Pool(run_call, names.PARALLEL_QUEUES),
        "serial": Pool(run_call, names.SERIAL_QUEUES),
        "finalizer": Pool(wiring.finalizer.run, (names.FINALIZE_QUEUE,)),
    }


def _answer_all(wiring: Wiring, pool: Pool, profiler: cProfile.Profile | None) -> int:
    """Answer the doorbells that are in the pool's queues now. Returns their number."""
    bells: list[list[Any]] = []
    while (bell := take(wiring, pool.queues)) is not None:
        bells.append(bell[1])
    began_s = time.process_time()
    if profiler is not None:
        profiler.enable()
    for arguments in bells:
        pool.answer(*arguments)
    if profiler is not None:
        profiler.disable()
    pool.cpu_s += time.process_time() - began_s
    pool.doorbells += len(bells)
    return len(bells)
