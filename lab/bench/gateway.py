"""`python -m lab.bench.gateway`: what the gateway costs beside AsyncClient: requests, streams, the lag of events.

Real workers and a real gateway process, asked over loopback with plain sockets and a token; the same is then asked of
an AsyncClient in this process. Parked turns are streamed, and reference turns, one after another, are followed beside
them. Prints JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from brainq import AsyncClient
from brainq.client.connection import wiring_of
from lab.bench import brain as reference
from lab.bench.load import Submitted
from lab.bench.outcomes import BenchFailure, percentile
from lab.bench.parked import PARKS_WITHIN_S, park
from lab.bench.printed import print_figures
from lab.bench.served import Served, served
from lab.bench.stage import Stage, stage
from lab.bench.throughput import warm_up

STREAMS, ASKED, CLIENTS, TURNS = 500, 300, 16, 30
WATCHED_S = 10.0
JOINED_WITHIN_S = 60.0
LATENCIES_S = {"model": 0.05, "read": 0.02, "write": 0.02}
MESSAGE = "Make one note of the first three days."

Ask = Callable[[int], Awaitable[Any]]
"""Asks for the thing of a number."""


def gateway_figures(
    directory: Path, *, streams: int, asked: int, clients: int, turns: int, watched_s: float
) -> dict[str, Any]:
    """`first_byte`, `requests`, `live`, `streams`, `live_beside_streams`.

    Raises BenchFailure for an answer that is none, and when a follower did not get every event once and in order.
    """
    with stage(directory, latencies_s=LATENCIES_S) as on, served(on, directory / "gateway.log") as at:
        warm_up(on, min(20, asked))
        parked, flags = park(on, streams, PARKS_WITHIN_S)
        try:
            return asyncio.run(_measure(on, at, parked, asked, clients, turns, watched_s))
        finally:
            for flag in flags:
                flag.release()


async def _measure(
    on: Stage, at: Served, parked: Sequence[Submitted], asked: int, clients: int, turns: int, watched_s: float
) -> dict[str, Any]:
    ids = [turn.turn_id for turn in parked]
    ended = (await asyncio.to_thread(_ended, on)).turn_id
    await _live(at, 2)  # what is built at the first request
    first_byte = await _first_bytes(at, ids[:100])
    live = await _live(at, turns)
    streams, beside = await _streams(at, ids, turns, watched_s)
    return {
        "first_byte": first_byte,
        "requests": {
            "look": await _both(on, at, ("GET", f"/v1/turns/{ids[0]}"), _look(ids[0]), asked, clients),
            "result": await _both(on, at, ("GET", f"/v1/turns/{ended}/result"), _result(ended), asked, clients),
            "submit": await _both(on, at, ("POST", "/v1/turns"), _submit, asked, clients),
        },
        "live": live,
        "streams": streams,
        "live_beside_streams": beside,
    }


def _ended(on: Stage) -> Any:
    handle = on.client.submit("ended", MESSAGE)
    handle.result(timeout_s=60)
    return handle


def _look(turn_id: str) -> Callable[[AsyncClient, int], Awaitable[Any]]:
    async def look(client: AsyncClient, number: int) -> Any:
        return await (await client.handle(turn_id)).snapshot()

    return look


def _result(turn_id: str) -> Callable[[AsyncClient, int], Awaitable[Any]]:
    async def result(client: AsyncClient, number: int) -> Any:
        return await (await client.handle(turn_id)).result(timeout_s=1)

    return result


async def _submit(client: AsyncClient, number: int) -> Any:
    return await client.submit(f"c-{number}-{time.monotonic_ns()}", MESSAGE)


async def _both(
    on: Stage,
    at: Served,
    route: tuple[str, str],
    by_client: Callable[[AsyncClient, int], Awaitable[Any]],
    asked: int,
    clients: int,
) -> dict[str, Any]:
    """Measure the same request at the gateway and with an AsyncClient in this process."""
    method, path = route
    async with AsyncExitStack() as stack:
        connections = [await stack.enter_async_context(at.connected()) for _ in range(clients)]

        def by_http(which: int) -> Ask:
            async def ask(number: int) -> Any:
                body = {"session_id": f"h-{number}-{time.monotonic_ns()}", "user_message": MESSAGE}
                return await connections[which].ask(method, path, body if method == "POST" else None)

            return ask

        gateway = await _load([by_http(which) for which in range(clients)], asked, lambda: at.cpu_s)
    async with AsyncClient(wiring_of(on.client).settings, reference.brain) as client:

        async def ask_here(number: int) -> Any:
            return await by_client(client, number)

        await ask_here(-1)
        alone = await _load([ask_here] * clients, asked, time.process_time)
    return {"gateway": gateway, "async_client": alone}


async def _load(askers: Sequence[Ask], asked: int, cpu_s: Callable[[], float]) -> dict[str, Any]:
    """Let each caller send one request after another until all were sent."""
    took_ms: list[float] = []
    left = list(range(asked))
    before, begin = cpu_s(), time.perf_counter()

    async def ask_on(ask: Ask) -> None:
        while left:
            number, sent = left.pop(), time.perf_counter()
            await ask(number)
            took_ms.append((time.perf_counter() - sent) * 1000)

    await asyncio.gather(*(ask_on(ask) for ask in askers))
    passed_s = time.perf_counter() - begin
    return {
        "requests": asked,
        "at_once": len(askers),
        "a_second": round(asked / passed_s, 1),
        "p50_ms": round(percentile(took_ms, 50), 1),
        "p95_ms": round(percentile(took_ms, 95), 1),
        "cpu_ms_each": round((cpu_s() - before) * 1000 / asked, 2),
    }


async def _first_bytes(at: Served, turns: Sequence[str]) -> dict[str, Any]:
    """Measure the time from a request to the first event of a stream, one after another, in ms."""
    took_ms: list[float] = []
    before = at.cpu_s
    for turn_id in turns:
        async with at.connected() as connection:
            begin = time.perf_counter()
            await connection.open_stream(turn_id)
            await connection.next_event()
            took_ms.append((time.perf_counter() - begin) * 1000)
    return {
        "streams": len(turns),
        "p50_ms": round(percentile(took_ms, 50), 1),
        "p95_ms": round(percentile(took_ms, 95), 1),
        "cpu_ms_each": round((at.cpu_s - before) * 1000 / len(turns), 2),
    }


async def _live(at: Served, turns: int) -> dict[str, Any]:
    """Run reference turns one after another, each followed from its submit on, and measure how late
    its events arrive."""
    lags_ms: list[float] = []
    for number in range(turns):
        async with at.connected() as asking, at.connected() as streaming:
            body = {"session_id": f"l-{number}-{time.monotonic_ns()}", "user_message": MESSAGE}
            answer = await asking.ask("POST", "/v1/turns", body)
            turn_id = answer.split(b'"turn_id":"')[1].split(b'"')[0].decode()
            began_ms = time.time() * 1000
            await streaming.open_stream(turn_id)
            event: dict[str, Any] = {"seq": 0, "kind": ""}
            while event["kind"] != "result":
                seen, event = event["seq"], await streaming.next_event()
                if event["seq"] != seen + 1:
                    raise BenchFailure(f"turn {turn_id}: event {event['seq']} came after {seen}")
                # The embedded Redis has this machine's clock. What was there before did not come late.
                if event["at_ms"] > began_ms:
                    lags_ms.append(time.time() * 1000 - event["at_ms"])
    return {
        "turns": turns,
        "events": len(lags_ms),
        "lag_p50_ms": round(percentile(lags_ms, 50), 1),
        "lag_p95_ms": round(percentile(lags_ms, 95), 1),
        "lag_max_ms": round(max(lags_ms), 1),
    }


async def _streams(
    at: Served, turns: Sequence[str], live: int, watched_s: float
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Open all streams at once, quiet except for heartbeats, and run live turns next to them."""
    memory_mb = at.rss_mb
    async with AsyncExitStack() as stack:
        connections = [await stack.enter_async_context(at.connected()) for _ in turns]

        async def open_one(place: int) -> None:
            await connections[place].open_stream(turns[place])
            await connections[place].next_event()

        before, begin = at.cpu_s, time.perf_counter()
        async with asyncio.timeout(JOINED_WITHIN_S):
            await asyncio.gather(*(open_one(place) for place in range(len(turns))))
        joined_s, joining_cpu_s = time.perf_counter() - begin, at.cpu_s - before
        before = at.cpu_s
        await asyncio.sleep(watched_s)
        figures = {
            "streams": len(turns),
            "opened_in_s": round(joined_s, 2),
            "cpu_ms_each": round(joining_cpu_s * 1000 / len(turns), 2),
            "cores": round((at.cpu_s - before) / watched_s, 4),
            "rss_mb_before": round(memory_mb, 1),
            "kb_a_stream": round((at.rss_mb - memory_mb) * 1000 / len(turns), 1),
        }
        return figures, await _live(at, live)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.bench.gateway", description=__doc__)
    parser.add_argument("--streams", type=int, default=STREAMS, help=f"open at once ({STREAMS} unless given)")
    parser.add_argument("--asked", type=int, default=ASKED, help=f"requests of a kind ({ASKED} unless given)")
    parser.add_argument("--clients", type=int, default=CLIENTS, help=f"at once ({CLIENTS} unless given)")
    parser.add_argument("--turns", type=int, default=TURNS, help=f"live ones ({TURNS} unless given)")
    parser.add_argument("--watched", type=float, default=WATCHED_S, help="seconds to watch the open streams")
    given = parser.parse_args(arguments)
    return print_figures(
        lambda directory: gateway_figures(
            directory,
            streams=given.streams,
            asked=given.asked,
            clients=given.clients,
            turns=given.turns,
            watched_s=given.watched,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
