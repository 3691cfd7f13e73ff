"""`python -m lab.bench.soak --minutes 60`: does a deployment drift while it works for long?

Reference turns at a steady rate, each in a session of its own, with keys that live two intervals, and at least 30 s.
Every interval it notes memory of each process, keys and connections of Redis, and how long turns took; at the end, how
much each grew an hour after the warm-up. `--max-turns 500` renews workers meanwhile. Prints JSON.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from brainq.app.devserver.local_fleet import POOLS
from brainq.client.connection import wiring_of
from lab.bench.load import submit
from lab.bench.outcomes import percentile, read_outcomes, wait_finished
from lab.bench.printed import print_figures
from lab.bench.stage import Stage, stage

INTERVALS = 30
WARM_UP = 0.3  # of the intervals: pools fill their threads, caches their entries, and the first keys expire
KEEP_S = 30.0  # at least: results are read at the end of an interval, which a busy machine makes longer
LATENCIES_S = {"model": 0.05, "read": 0.02, "write": 0.02}


@dataclass(frozen=True, slots=True)
class Sample:
    """The measurements at the end of an interval.

    at_s          seconds since the start
    rss_mb        resident memory by pool and of `redis`; with a keeper, that of the keeper and its workers
    processes     the number of worker processes that have served so far, including renewed ones
    """

    at_s: float
    turns: int
    rss_mb: Mapping[str, float]
    keys: int
    connections: int
    p50_ms: float
    p99_ms: float
    processes: int


def soak(directory: Path, *, minutes: float, per_s: float, max_turns: int | None) -> dict[str, Any]:
    """Return the figures of a run: every sample, and the drift per hour.

    Raises BenchFailure if a turn does not complete.
    """
    every_s = minutes * 60 / INTERVALS
    keep_s = max(KEEP_S, every_s * 2)
    environment = {"BRAINQ_KEEP_TURN_S": f"{keep_s:g}", "BRAINQ_KEEP_SESSION_S": f"{keep_s:g}"}
    if max_turns is not None:
        environment["BRAINQ_MAX_TURNS_A_WORKER"] = str(max_turns)
    samples: list[Sample] = []
    with stage(directory, latencies_s=LATENCIES_S, environment=environment) as on:
        begin, total, served = time.monotonic(), 0, set[int]()
        for _ in range(INTERVALS):
            took_ms = _work(on, max(1, round(per_s * every_s)), per_s)
            total += len(took_ms)
            served |= {pid for pool in on.fleet.workers if pool.process for pid in _family(pool.process.pid)}
            samples.append(_sample(on, time.monotonic() - begin, total, took_ms, len(served)))
            last = samples[-1]
            print(f"{last.at_s:6.0f} s  {total} turns  {last.rss_mb}  {last.keys} keys", file=sys.stderr, flush=True)
    return {"turns": total, "drift_an_hour": drift(samples), "samples": [asdict(each) for each in samples]}


def _work(on: Stage, count: int, per_s: float) -> list[float]:
    """Return how long each of `count` turns took, in ms, by Redis' clock."""
    load = submit(on.client, count, per_s=per_s)
    wait_finished(on, load.turns)
    took = [outcome.to_result_ms for outcome in read_outcomes(on, load.turns)]
    on.check_alive()
    return took


def _sample(on: Stage, at_s: float, turns: int, took_ms: Sequence[float], processes: int) -> Sample:
    redis = wiring_of(on.client).state.redis
    rss = {name: round(sum(map(_rss_mb, _family(pid))), 1) for name, pid in on.pids().items()}
    return Sample(
        at_s=round(at_s, 1),
        turns=turns,
        rss_mb=rss,
        keys=int(redis.dbsize()),
        connections=int(redis.info("clients")["connected_clients"]),
        p50_ms=round(percentile(took_ms, 50)),
        p99_ms=round(percentile(took_ms, 99)),
        processes=processes,
    )


def drift(samples: Sequence[Sample]) -> dict[str, float]:
    """Return how much each figure grew per hour after the warm-up, as the slope of the line of least squares."""
    settled = samples[round(len(samples) * WARM_UP) :]
    at_h = [each.at_s / 3600 for each in settled]
    series: dict[str, list[float]] = {
        **{f"rss_mb {name}": [each.rss_mb[name] for each in settled] for name in settled[0].rss_mb},
        "keys": [float(each.keys) for each in settled],
        "connections": [float(each.connections) for each in settled],
        "p50_ms": [each.p50_ms for each in settled],
        "p99_ms": [each.p99_ms for each in settled],
    }
    return {name: round(slope(at_h, values), 1) for name, values in series.items()}


def slope(at: Sequence[float], values: Sequence[float]) -> float:
    """Return the slope of the line of least squares, or 0 if all values were taken at one moment."""
    mean_at, mean = sum(at) / len(at), sum(values) / len(values)
    spread = sum((each - mean_at) ** 2 for each in at)
    return sum((x - mean_at) * (y - mean) for x, y in zip(at, values, strict=True)) / spread if spread else 0.0


def _family(pid: int) -> list[int]:
    """Return a process and the processes that it started. Without a keeper this is only the process."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return []
    return [pid, *(found for child in children for found in _family(int(child)))]


def _rss_mb(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1e6
    except FileNotFoundError:
        return 0.0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long (60 unless given)")
    parser.add_argument("--rate", type=float, default=5.0, help="turns a second (5 unless given)")
    parser.add_argument("--max-turns", type=int, help=f"renew a worker of {', '.join(POOLS)} after so many turns")
    given = parser.parse_args(arguments)
    return print_figures(
        lambda directory: soak(directory, minutes=given.minutes, per_s=given.rate, max_turns=given.max_turns)
    )


if __name__ == "__main__":
    sys.exit(main())
