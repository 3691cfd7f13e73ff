"""One tenant's flood beside another's turns: `python -m lab.bench.fair`.

Tenant `b` sends a turn now and then, each in a session of its own: first alone, then while 5,000 turns of tenant `a`
wait, in 5,000 sessions or in few. With `--a-minute 600` it is the model that is short: it takes so many requests. With
`--callback-s 0.3` it is the finalizer: `on_usage` takes so long, and `b` begins when the flood's turns end. With
`--write-s 0.3` it is the serial pool, which has one thread: each turn's write takes so long.
Times are ms from submit to TurnResult, of `b`'s turns; they are written to `.bench/fair.json`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from brainq.client.connection import wiring_of
from brainq.contracts.ids import new_turn_id
from lab.bench.load import Submitted
from lab.bench.outcomes import BenchFailure, percentile, read_outcomes
from lab.bench.stage import Stage, forget_settings, stage
from lab.bench.throughput import warm_up

FLOOD, MEASURED, PER_S = 5000, 60, 2.0
FEW_SESSIONS = 200
LIMITED_FLOOD, LIMITED_MEASURED, LIMITED_PER_S = 1000, 30, 0.5
SLOW_FLOOD, SLOW_MEASURED, SLOW_PER_S = 300, 10, 1.0
LATENCIES_S = {"model": 2.0}
TEXT = "Make one note of the first three days."
WHILE_WAITING, PATIENCE_S = 500, 900.0


def flood(on: Stage, turns: int, sessions: int) -> None:
    """Submit all turns of tenant `a`, as fast as four threads can."""

    def part(first: int) -> None:
        for number in range(first, turns, 4):
            on.client.submit(f"a:{number % sessions}", TEXT)

    threads = [threading.Thread(target=part, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def now_and_then(on: Stage, count: int, per_s: float) -> dict[str, Any]:
    """Submit tenant `b`'s turns at a steady rate, and wait for their ends.

    `others_left` is the number of unfinished turns of others at that time.
    """
    turns: list[Submitted] = []
    begin = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, begin + number / per_s - time.monotonic()))
        turn_id = new_turn_id()
        session_id, at_ms = f"b:{turn_id}", time.time() * 1000
        on.client.submit(session_id, TEXT, turn_id=turn_id)
        turns.append(Submitted(session_id, turn_id, at_ms))
    left = unfinished(on) - count
    wait_patiently(on, turns)
    times = [outcome.to_result_ms for outcome in read_outcomes(on, turns)]
    p50, p95 = (round(percentile(times, percent)) for percent in (50, 95))
    return {"turns": count, "p50_ms": p50, "p95_ms": p95, "others_left": max(0, left)}


def wait_patiently(on: Stage, turns: Sequence[Submitted]) -> None:
    """Wait until all turns have ended, however long they wait behind a flood.

    Raises BenchFailure after `PATIENCE_S`.
    """
    redis, keys = wiring_of(on.client).state.redis, wiring_of(on.client).state.keys
    until = time.monotonic() + PATIENCE_S
    for turn in turns:
        while redis.hget(keys.turn(turn.session_id, turn.turn_id), "awaits") != "nobody":
            on.check_alive()
            if time.monotonic() > until:
                raise BenchFailure(f"turn {turn.turn_id} is not over after {PATIENCE_S:g} s")
            time.sleep(0.05)


def unfinished(on: Stage) -> int:
    """Return the number of turns that have not ended."""
    return int(wiring_of(on.client).state.redis.zcard(wiring_of(on.client).state.keys.index))


def fair(
    directory: Path, *, turns: int, sessions: Sequence[int], measured: int, workers: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """`alone`, and beside a flood over each of these numbers of sessions, with `ratio_p95` to alone.

    `others_left` is how many of the flood were left when the last of `b`'s was sent. Raises BenchFailure when those are
    few: nothing was measured then.
    """
    found: dict[str, Any] = {"flood": turns, "latencies_s": LATENCIES_S}
    with stage(directory / "alone", latencies_s=LATENCIES_S, workers=workers) as on:
        warm_up(on, 20)
        found["alone"] = now_and_then(on, measured, PER_S)
    for number in sessions:
        with stage(directory / f"in-{number}", latencies_s=LATENCIES_S, workers=workers) as on:
            warm_up(on, 20)
            flood(on, turns, number)
            beside = now_and_then(on, measured, PER_S)
        if turns >= FLOOD and beside["others_left"] < WHILE_WAITING:
            raise BenchFailure(f"only {beside['others_left']} turns of the flood were left; flood with more")
        beside["ratio_p95"] = round(beside["p95_ms"] / found["alone"]["p95_ms"], 2)
        found[f"in {number} sessions"] = beside
    return found


def fair_of_a_limit(directory: Path, *, most: int, turns: int, measured: int) -> dict[str, Any]:
    """The same where the model takes `most` requests a minute. Raises BenchFailure when none
    of the flood was left."""
    found: dict[str, Any] = {"flood": turns, "requests_a_minute": most, "latencies_s": LATENCIES_S}
    for name, flooded in (("alone", 0), ("beside", turns)):
        with stage(directory / name, latencies_s=LATENCIES_S, rates=f"scripted:*={most}/min") as on:
            warm_up(on, 20)
            flood(on, flooded, max(1, flooded))
            found[name] = now_and_then(on, measured, LIMITED_PER_S)
    if not found["beside"]["others_left"]:
        raise BenchFailure("nothing of the flood was left; flood with more")
    found["ratio_p95"] = round(found["beside"]["p95_ms"] / found["alone"]["p95_ms"], 2)
    return found


def fair_of_slow(directory: Path, *, latencies_s: dict[str, float], turns: int, measured: int) -> dict[str, Any]:
    """The same where `on_usage` or a write takes as long as is said, and the model nothing. Raises BenchFailure when
    none of the flood was left."""
    found: dict[str, Any] = {"flood": turns, "latencies_s": latencies_s}
    for name, flooded in (("alone", 0), ("beside", turns)):
        with stage(directory / name, latencies_s=latencies_s) as on:
            warm_up(on, 20)
            flood(on, flooded, max(1, flooded))
            found[name] = now_and_then(on, measured, SLOW_PER_S)
    if not found["beside"]["others_left"]:
        raise BenchFailure("nothing of the flood was left; flood with more")
    found["ratio_p95"] = round(found["beside"]["p95_ms"] / found["alone"]["p95_ms"], 2)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.bench.fair", description=__doc__)
    parser.add_argument(
        "--turns",
        type=int,
        help=f"turns of the flood; {FLOOD}, or {LIMITED_FLOOD} of a limited model, {SLOW_FLOOD} of what is slow",
    )
    parser.add_argument("--a-minute", type=int, help="the model takes so many requests a minute")
    parser.add_argument("--callback-s", type=float, help="`on_usage` takes so long; the model nothing")
    parser.add_argument("--write-s", type=float, help="a write takes so long; the model nothing")
    parser.add_argument("--sessions", type=int, nargs="+", default=[FLOOD, FEW_SESSIONS])
    parser.add_argument("--all", type=int, help="so many workers of all pools, in place of one for each pool")
    parser.add_argument("--measured", type=int, help="turns of the other tenant")
    parser.add_argument("--json", default=".bench/fair.json")
    given = parser.parse_args(arguments)
    forget_settings()
    kept = Path(given.json)
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="run-", dir=kept.parent) as name:
        slow = {"callback": given.callback_s, "write": given.write_s}
        latencies_s = {name: seconds for name, seconds in slow.items() if seconds is not None}
        if latencies_s:
            turns, measured = given.turns or SLOW_FLOOD, given.measured or SLOW_MEASURED
            found = fair_of_slow(Path(name), latencies_s=latencies_s, turns=turns, measured=measured)
        elif given.a_minute is None:
            turns, measured = given.turns or FLOOD, given.measured or MEASURED
            workers = {"all": given.all} if given.all else None
            found = fair(Path(name), turns=turns, sessions=given.sessions, measured=measured, workers=workers)
        else:
            turns, measured = given.turns or LIMITED_FLOOD, given.measured or LIMITED_MEASURED
            found = fair_of_a_limit(Path(name), most=given.a_minute, turns=turns, measured=measured)
    kept.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
