"""`python -m ops.bench.http`: what the gateway costs: a stream's first byte, requests a second, 500 open streams.

Real workers and a real gateway process, asked over loopback with plain sockets, so that the asking costs little. Parked
turns are streamed. Prints JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brainq.devserver.probe import free_port
from ops.bench.counters import cpu_s
from ops.bench.load import Submitted
from ops.bench.outcomes import BenchFailure, percentile
from ops.bench.parked import PARKS_WITHIN_S, park
from ops.bench.printed import print_figures
from ops.bench.stage import APP, ROOT, Stage, stage
from ops.bench.throughput import warm_up

STREAMS, ASKED, CLIENTS = 500, 300, 16
WATCHED_S = 10.0
JOINED_WITHIN_S = 60.0


@dataclass(frozen=True)
class Served:
    """A gateway's process, and where it listens."""

    pid: int
    port: int

    @property
    def rss_mb(self) -> float:
        """Memory that is its own now, MB."""
        fields = Path(f"/proc/{self.pid}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextmanager
def served(on: Stage, log: Path) -> Generator[Served]:
    """A gateway beside the stage's workers. Raises BenchFailure when it does not start."""
    settings, port = on.client.wiring.settings, free_port()
    given = {
        "BRAINQ_APP": APP,
        "BRAINQ_REDIS_URL": on.redis_url,
        "BRAINQ_SQL_URL": settings.sql_url.get_secret_value(),
        "BRAINQ_HTTP_PORT": str(port),
        "BRAINQ_HTTP_REQUESTS_S": "100000",
        "BRAINQ_HTTP_STREAMS_A_CALLER": "10000",
        "BRAINQ_HTTP_STREAMS": "10000",
        "BRAINQ_LOG_LEVEL": "info",
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "brainq.workers.gateway"],
            cwd=ROOT,
            env={**os.environ, **given},
            stdout=subprocess.PIPE,
            stderr=output,
        )
    assert process.stdout is not None
    try:
        if not process.stdout.readline():
            raise BenchFailure(f"the gateway did not start:\n{log.read_text()}")
        yield Served(process.pid, port)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        process.stdout.close()


def gateway_figures(
    directory: Path, *, streams: int, asked: int, clients: int, watched_s: float
) -> dict[str, Any]:
    """`first_byte`, `looks`, `submits`, `streams`. Raises BenchFailure for an answer that is none."""
    with stage(directory) as on, served(on, directory / "gateway.log") as at:
        warm_up(on, min(20, asked))
        parked, flags = park(on, streams, PARKS_WITHIN_S)
        try:
            return asyncio.run(_measure(on, at, parked, asked, clients, watched_s))
        finally:
            for flag in flags:
                flag.release()


async def _measure(
    on: Stage, at: Served, parked: Sequence[Submitted], asked: int, clients: int, watched_s: float
) -> dict[str, Any]:
    look = f"/v1/turns/{parked[0].turn_id}"
    await _load(at, "GET", [look] * clients, clients)  # what is built at the first request
    begin = time.perf_counter()
    for _ in range(asked):
        await asyncio.to_thread(on.client.handle(parked[0].turn_id).snapshot)
    alone_ms = (time.perf_counter() - begin) * 1000 / asked
    return {
        "first_byte": await _first_bytes(at, [turn.turn_id for turn in parked[: min(100, len(parked))]]),
        "looks": {**await _load(at, "GET", [look] * asked, clients), "client_alone_ms": round(alone_ms, 2)},
        "submits": await _load(at, "POST", ["/v1/turns"] * asked, clients),
        "streams": await _streams(at, [turn.turn_id for turn in parked], watched_s),
    }


async def _first_bytes(at: Served, turns: Sequence[str]) -> dict[str, Any]:
    """From the request to the first event of a stream, one after another; ms."""
    took_ms: list[float] = []
    for turn_id in turns:
        reader, writer = await asyncio.open_connection("127.0.0.1", at.port)
        begin = time.perf_counter()
        await _open_stream(reader, writer, turn_id)
        took_ms.append((time.perf_counter() - begin) * 1000)
        writer.close()
    return {
        "streams": len(turns),
        "p50_ms": round(percentile(took_ms, 50), 1),
        "p95_ms": round(percentile(took_ms, 95), 1),
    }


async def _load(at: Served, method: str, paths: Sequence[str], clients: int) -> dict[str, Any]:
    """Each of `clients` asks one thing after another on a connection of its own."""
    took_ms: list[float] = []
    left = list(paths)
    before, begin = cpu_s(at.pid), time.perf_counter()

    async def ask() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", at.port)
        while left:
            path = left.pop()
            body = json.dumps({"session_id": f"h-{len(left)}-{begin:.6f}", "user_message": "Make one note."})
            sent = time.perf_counter()
            writer.write(_request(method, path, body if method == "POST" else ""))
            await _answer(reader)
            took_ms.append((time.perf_counter() - sent) * 1000)
        writer.close()

    await asyncio.gather(*(ask() for _ in range(clients)))
    passed_s = time.perf_counter() - begin
    return {
        "requests": len(paths),
        "clients": clients,
        "a_second": round(len(paths) / passed_s, 1),
        "p50_ms": round(percentile(took_ms, 50), 1),
        "p95_ms": round(percentile(took_ms, 95), 1),
        "cpu_ms_each": round((cpu_s(at.pid) - before) * 1000 / len(paths), 2),
    }


async def _streams(at: Served, turns: Sequence[str], watched_s: float) -> dict[str, Any]:
    """All at once, open and quiet but for heartbeats."""
    memory_mb, begin = at.rss_mb, time.perf_counter()
    connections = [await asyncio.open_connection("127.0.0.1", at.port) for _ in turns]
    async with asyncio.timeout(JOINED_WITHIN_S):
        await asyncio.gather(
            *(
                _open_stream(reader, writer, turn_id)
                for (reader, writer), turn_id in zip(connections, turns, strict=True)
            )
        )
    joined_s, before = time.perf_counter() - begin, cpu_s(at.pid)
    await asyncio.sleep(watched_s)
    cores = (cpu_s(at.pid) - before) / watched_s
    figures = {
        "streams": len(turns),
        "opened_in_s": round(joined_s, 2),
        "cores": round(cores, 4),
        "rss_mb_before": round(memory_mb, 1),
        "kb_a_stream": round((at.rss_mb - memory_mb) * 1000 / len(turns), 1),
    }
    for _, writer in connections:
        writer.close()
    return figures


async def _open_stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, turn_id: str) -> None:
    writer.write(_request("GET", f"/v1/turns/{turn_id}/events", ""))
    head = await reader.readuntil(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n")[0]:
        raise BenchFailure(f"a stream was answered {head[:60]!r}")
    await reader.readuntil(b"data: ")


def _request(method: str, path: str, body: str) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return f"{head}\r\n{body}".encode()


async def _answer(reader: asyncio.StreamReader) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if not head.startswith((b"http/1.1 200 ", b"http/1.1 202 ")):
        raise BenchFailure(f"a request was answered {head[:60]!r}")
    await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r\n")[0]))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m ops.bench.http", description=__doc__)
    parser.add_argument("--streams", type=int, default=STREAMS, help=f"open at once ({STREAMS} unless given)")
    parser.add_argument("--asked", type=int, default=ASKED, help=f"requests of a kind ({ASKED} unless given)")
    parser.add_argument("--clients", type=int, default=CLIENTS, help=f"at once ({CLIENTS} unless given)")
    parser.add_argument("--watched", type=float, default=WATCHED_S, help="seconds to watch the open streams")
    given = parser.parse_args(arguments)
    return print_figures(
        lambda directory: gateway_figures(
            directory,
            streams=given.streams,
            asked=given.asked,
            clients=given.clients,
            watched_s=given.watched,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
