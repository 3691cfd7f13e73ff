"""`python -m lab.bench.http_cost`: the CPU that a request costs the gateway, beside a bare FastAPI route, and what on.

A submit, a look at an ended turn's result, and a stream that is opened, read to its first event, and left. A gateway,
a bare app on the gateway's uvicorn settings and one on httptools are asked in turn, by plain sockets and with a token;
a gateway whose functions are wrapped tells the parts. No worker runs meanwhile, unless asked for. Prints JSON: ms of a
process's CPU a request, `[lowest, middle, highest]` of the rounds. The parts are shares of the unwrapped gateway's ms.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from brainq.app.devserver.ports import free_port
from lab.bench.cpu_parts import SPENT_IN, ask_spent_s
from lab.bench.outcomes import BenchFailure
from lab.bench.printed import print_figures
from lab.bench.served import Served, served
from lab.bench.stage import stage

ROUNDS, ASKED, CLIENTS = 5, 1000, 1
STREAMS_OF = 3  # a stream is asked for a third as often: each takes a connection of its own
MESSAGE = "Make one note of the first three days."
LEAST_SHARE = 0.003

Ask = Callable[[Served, int], Coroutine[Any, Any, None]]
"""Asks one of them so many times."""


@dataclass(frozen=True)
class Asked:
    """The three things that are asked, of turns that are there."""

    ended: str
    live: str
    asked: int
    clients: int

    def kinds(self) -> dict[str, tuple[Ask, int]]:
        return {
            "submit": (self._submits, self.asked),
            "result": (self._results, self.asked),
            "stream": (self._streams, max(1, self.asked // STREAMS_OF)),
        }

    async def _submits(self, at: Served, times: int) -> None:
        await self._each(at, times, "POST", "/v1/turns")

    async def _results(self, at: Served, times: int) -> None:
        await self._each(at, times, "GET", f"/v1/turns/{self.ended}/result")

    async def _each(self, at: Served, times: int, method: str, path: str) -> None:
        left = list(range(times))

        async def ask_on() -> None:
            async with at.connected() as connection:
                while left:
                    body = {"session_id": f"h-{left.pop()}-{time.monotonic_ns()}", "user_message": MESSAGE}
                    await connection.ask(method, path, body if method == "POST" else None)

        await asyncio.gather(*(ask_on() for _ in range(self.clients)))

    async def _streams(self, at: Served, times: int) -> None:
        for _ in range(times):
            async with at.connected() as connection:
                await connection.open_stream(self.live)
                await connection.next_event()


def cost_figures(directory: Path, *, rounds: int, asked: int, clients: int, with_workers: bool) -> dict[str, Any]:
    """By kind: `gateway_ms`, `bare_ms`, `bare_httptools_ms`, `wrapped_ms`, their ratios, `parts_sum_ms`, `parts_ms`.

    Raises BenchFailure for an answer that is none, and where a wrapped function is not there any more.
    """
    spent_in = directory / "spent.json"
    with stage(directory) as on, ExitStack() as stack:
        ended = on.client.submit("ended", MESSAGE)
        ended.result(timeout_s=60)
        if not with_workers:
            on.fleet.stop()
        live = on.client.submit("live", MESSAGE)
        wrapped = served(
            on, directory / "wrapped.log", module="lab.bench.probed_gateway", more={SPENT_IN: str(spent_in)}
        )
        apps = {
            "gateway": stack.enter_context(served(on, directory / "gateway.log")),
            "bare": stack.enter_context(_bare(directory, "gateway")),
            "bare_httptools": stack.enter_context(_bare(directory, "httptools")),
            "wrapped": stack.enter_context(wrapped),
        }
        asks = Asked(ended.turn_id, live.turn_id, asked, clients)
        measured = _measure(apps, asks, rounds, lambda: ask_spent_s(apps["wrapped"].pid, spent_in))
        return {"rounds": rounds, "asked": asked, "at_once": clients, "workers": with_workers, **measured}


def _measure(
    apps: dict[str, Served], asks: Asked, rounds: int, spent_s: Callable[[], dict[str, float]]
) -> dict[str, Any]:
    for ask, _ in asks.kinds().values():
        for at in apps.values():
            asyncio.run(ask(at, 50))  # what is built at the first requests
    used: dict[str, list[dict[str, float]]] = {kind: [] for kind in asks.kinds()}
    parts: dict[str, list[dict[str, float]]] = {kind: [] for kind in asks.kinds()}
    for _ in range(rounds):
        for kind, (ask, times) in asks.kinds().items():
            before = spent_s()
            used[kind].append({name: _ms_each(at, ask, times) for name, at in apps.items()})
            after = spent_s()
            spent = {part: (after[part] - before.get(part, 0.0)) * 1000 / times for part in after}
            parts[kind].append(spent)
    return {kind: _figures(used[kind], parts[kind]) for kind in used}


def _ms_each(at: Served, ask: Ask, times: int) -> float:
    before = _cpu_s(at.pid)
    asyncio.run(ask(at, times))
    time.sleep(0.05)  # a stream that was left is tidied up after
    return (_cpu_s(at.pid) - before) * 1000 / times


def _figures(used: Sequence[dict[str, float]], parts: Sequence[dict[str, float]]) -> dict[str, Any]:
    gateway_ms = median(one["gateway"] for one in used)
    shares: dict[str, float] = {}
    for part in parts[-1]:
        shares[part] = median(one.get(part, 0.0) / sum(one.values()) for one in parts)
    told = sorted(shares.items(), key=lambda item: -item[1])
    return {
        **{f"{name}_ms": _range([one[name] for one in used]) for name in used[0]},
        "ratio": _range([one["gateway"] / one["bare"] for one in used]),
        "ratio_httptools": _range([one["gateway"] / one["bare_httptools"] for one in used]),
        "parts_sum_ms": _range([sum(one.values()) for one in parts]),
        "parts_ms": {part: round(share * gateway_ms, 3) for part, share in told if share >= LEAST_SHARE},
    }


def _range(values: Sequence[float]) -> list[float]:
    return [round(value, 3) for value in (min(values), median(values), max(values))]


def _cpu_s(pid: int) -> float:
    """Return the CPU time of a process, with all its threads, in seconds.

    It is exact to the nanosecond, whereas `cpu_s` has steps of 10 ms.
    """
    return time.clock_gettime((~pid << 3) | 2)  # clock_getcpuclockid of the C library, which Python has not


@contextmanager
def _bare(directory: Path, parser: str) -> Generator[Served]:
    """Run the process of the bare app."""
    port, log = free_port(), directory / f"bare-{parser}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "lab.bench.bare", str(port), parser], stdout=subprocess.PIPE, stderr=output
        )
    assert process.stdout is not None
    try:
        if not process.stdout.readline():
            raise BenchFailure(f"the bare app did not start:\n{log.read_text()}")
        yield Served(process.pid, port, "none-is-asked-for")
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.bench.http_cost", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"of all in turn ({ROUNDS} unless given)")
    parser.add_argument("--asked", type=int, default=ASKED, help=f"requests of a kind a round ({ASKED})")
    parser.add_argument("--clients", type=int, default=CLIENTS, help=f"at once ({CLIENTS}); streams: one")
    parser.add_argument("--workers", action="store_true", help="let the pools run the turns meanwhile")
    given = parser.parse_args(arguments)
    return print_figures(
        lambda directory: cost_figures(
            directory, rounds=given.rounds, asked=given.asked, clients=given.clients, with_workers=given.workers
        )
    )


if __name__ == "__main__":
    sys.exit(main())
