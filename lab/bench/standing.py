"""`python -m lab.bench.standing`: a great many turns that wait for people, and what they cost while nobody comes.

Parks them on real workers (100,000 take some twenty minutes), then watches: first while the sweeper compares them all
with SQL, then when it has. Prints JSON: cores by process, and how many looks at turns were late.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from brainq.client.connection import wiring_of
from lab.bench.counters import Counters, read_counters
from lab.bench.parked import park
from lab.bench.printed import print_figures
from lab.bench.stage import Stage, stage

TURNS = 100_000
PARKS_A_SECOND = 20.0  # at least: a slow machine's
FIRST_S, SETTLED_S = 120.0, 60.0
EVERY_S = 1.0
LATE_MS = 1_000  # a look is late when it has been due for longer


def standing_turns(directory: Path, turns: int, *, first_s: float, settled_s: float) -> dict[str, Any]:
    """Measure the cores by process, and the highest number of late checks at any moment, directly after the parks and
    later."""
    with stage(directory) as on:
        begin = time.monotonic()
        park(on, turns, 60.0 + turns / PARKS_A_SECOND)
        parks_s = time.monotonic() - begin
        return {
            "turns": turns,
            "parked_in_s": round(parks_s, 1),
            "first": _watch(on, first_s),
            "settled": _watch(on, settled_s),
            "redis_mb": round(wiring_of(on.client).state.redis.info("memory")["used_memory"] / 1e6, 1),
        }


def _watch(on: Stage, for_s: float) -> dict[str, Any]:
    before, begin = read_counters(on), time.monotonic()
    late = 0
    while (passed_s := time.monotonic() - begin) < for_s:
        late = max(late, late_looks(on))
        time.sleep(EVERY_S)
    used = read_counters(on).since(before)
    return {"seconds": round(passed_s), "late_looks": late, "cores": _cores(used, passed_s)}


def _cores(used: Counters, passed_s: float) -> dict[str, float]:
    by_process = {name: round(value / passed_s, 3) for name, value in used.cpu_s.items()}
    return {**by_process, "total": round(sum(used.cpu_s.values()) / passed_s, 3)}


def late_looks(on: Stage) -> int:
    state = wiring_of(on.client).state
    seconds, micros = state.redis.time()
    return int(state.redis.zcount(state.keys.index, "-inf", seconds * 1000 + micros // 1000 - LATE_MS))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.bench.standing", description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS, help=f"how many ({TURNS} unless given)")
    parser.add_argument("--first", type=float, default=FIRST_S, help="seconds to watch at first")
    parser.add_argument("--settled", type=float, default=SETTLED_S, help="seconds to watch then")
    given = parser.parse_args(arguments)
    return print_figures(
        lambda directory: standing_turns(directory, given.turns, first_s=given.first, settled_s=given.settled)
    )


if __name__ == "__main__":
    sys.exit(main())
