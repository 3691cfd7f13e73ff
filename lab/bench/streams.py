"""`python -m lab.bench.streams`: one AsyncClient that follows 500 idle turns and a live one.

Real workers; turns that are parked are the idle ones, and reference turns, one after another, the live ones: first with
nothing else followed, then beside the idle ones. Prints JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from brainq import AsyncClient, AsyncTurnHandle
from brainq.client.connection import wiring_of
from brainq.contracts.event import TurnEvent
from brainq.contracts.ids import new_turn_id
from lab.bench import brain as reference
from lab.bench.counters import Counters, read_counters
from lab.bench.load import Submitted
from lab.bench.outcomes import BenchFailure, percentile
from lab.bench.parked import PARKS_WITHIN_S, park
from lab.bench.printed import print_figures
from lab.bench.stage import Stage, stage
from lab.bench.throughput import warm_up

STREAMS, TURNS = 500, 50
WATCHED_S = 10.0
LATENCIES_S = {"model": 0.05, "read": 0.02, "write": 0.02}
JOINED_WITHIN_S = 30.0


def followed_streams(directory: Path, streams: int, turns: int, *, watched_s: float) -> dict[str, Any]:
    """`alone`: a live turn with nothing else followed; `beside`: beside `streams` idle ones; `idle`: what those cost.

    Raises BenchFailure when a follower did not get every event of its turn once and in order.
    """
    with stage(directory, latencies_s=LATENCIES_S) as on:
        warm_up(on, turns)
        idle, flags = park(on, streams, PARKS_WITHIN_S)
        figures = asyncio.run(_follow(on, idle, turns, watched_s, [flag.release for flag in flags]))
        return {"streams": streams, **figures}


async def _follow(
    on: Stage, idle: Sequence[Submitted], turns: int, watched_s: float, releases: Sequence[Any]
) -> dict[str, Any]:
    async with AsyncClient(wiring_of(on.client).settings, reference.brain) as client:
        await _live(client, 2)
        alone = await _live(client, turns)
        unfollowed = await _watch(on, watched_s)
        begin = time.monotonic()
        handles = [await client.handle(turn.turn_id) for turn in idle]
        first = [asyncio.Event() for _ in handles]
        following = [asyncio.create_task(_whole(handle, begun)) for handle, begun in zip(handles, first, strict=True)]
        async with asyncio.timeout(JOINED_WITHIN_S):
            await asyncio.gather(*(begun.wait() for begun in first))
        joined_s = time.monotonic() - begin
        followed = await _watch(on, watched_s)
        beside = await _live(client, turns)
        for release in releases:
            await asyncio.to_thread(release)
        await asyncio.gather(*following)
        return {
            "alone": alone,
            "beside": beside,
            "joined_in_s": round(joined_s, 2),
            "idle_cores": {"nothing_followed": unfollowed, "followed": followed},
        }


async def _live(client: AsyncClient, turns: int) -> dict[str, Any]:
    """Run reference turns one after another, each followed from its submit on."""
    submits_ms: list[float] = []
    lags_ms: list[float] = []
    for _ in range(turns):
        turn_id = new_turn_id()
        begin = time.perf_counter()
        handle = await client.submit(f"s-{turn_id}", "Make one note of the first three days.", turn_id=turn_id)
        submits_ms.append((time.perf_counter() - begin) * 1000)
        began_ms = time.time() * 1000
        numbers: list[int] = []
        async for event in handle.events(timeout_s=60):
            # The embedded Redis has this machine's clock. What was there before it was followed did not come late.
            if event.at_ms > began_ms:
                lags_ms.append(time.time() * 1000 - event.at_ms)
            numbers.append(event.seq)
        _check(handle, numbers)
    return {
        "turns": turns,
        "events": len(lags_ms),
        "lag_p50_ms": round(percentile(lags_ms, 50), 1),
        "lag_p95_ms": round(percentile(lags_ms, 95), 1),
        "lag_max_ms": round(max(lags_ms), 1),
        "submit_p50_ms": round(percentile(submits_ms, 50), 1),
        "submit_p95_ms": round(percentile(submits_ms, 95), 1),
    }


async def _whole(handle: AsyncTurnHandle, begun: asyncio.Event) -> None:
    seen: list[TurnEvent] = []
    async for event in handle.events():
        seen.append(event)
        begun.set()
    _check(handle, [event.seq for event in seen])


def _check(handle: AsyncTurnHandle, numbers: Sequence[int]) -> None:
    if not numbers or list(numbers) != list(range(1, len(numbers) + 1)):
        raise BenchFailure(f"turn {handle.turn_id}: its events came as {numbers}")


async def _watch(on: Stage, for_s: float) -> dict[str, float]:
    """Return the cores that this process and Redis use while nothing happens."""
    before, own, begin = read_counters(on), time.process_time(), time.monotonic()
    await asyncio.sleep(for_s)
    passed_s = time.monotonic() - begin
    own_s = time.process_time() - own
    used: Counters = read_counters(on).since(before)
    return {"client": round(own_s / passed_s, 4), "redis": round(used.cpu_s["redis"] / passed_s, 4)}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.bench.streams", description=__doc__)
    parser.add_argument("--streams", type=int, default=STREAMS, help=f"idle ones ({STREAMS} unless given)")
    parser.add_argument("--turns", type=int, default=TURNS, help=f"live ones ({TURNS} unless given)")
    parser.add_argument("--watched", type=float, default=WATCHED_S, help="seconds to watch the idle ones")
    given = parser.parse_args(arguments)
    return print_figures(
        lambda directory: followed_streams(directory, given.streams, given.turns, watched_s=given.watched)
    )


if __name__ == "__main__":
    sys.exit(main())
