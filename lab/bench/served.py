"""A gateway's process for benchmarks, and plain sockets to ask it by, so that the asking costs little."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brainq.app.access import Tokens, Verb
from brainq.app.devserver.ports import free_port
from brainq.client.connection import wiring_of
from lab.bench.counters import cpu_s
from lab.bench.outcomes import BenchFailure
from lab.bench.stage import APP, ROOT, Stage


@dataclass(frozen=True)
class Served:
    """A gateway's process, where it listens, and a token that it takes."""

    pid: int
    port: int
    token: str

    @property
    def rss_mb(self) -> float:
        """Memory that is its own now, MB."""
        fields = Path(f"/proc/{self.pid}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    @property
    def cpu_s(self) -> float:
        """CPU time it has used, seconds."""
        return cpu_s(self.pid)

    @asynccontextmanager
    async def connected(self) -> AsyncGenerator[Connected]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            yield Connected(reader, writer, self.token)
        finally:
            writer.close()


@dataclass(frozen=True)
class Connected:
    """One connection. A request is answered before the next is sent."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    token: str

    async def ask(self, method: str, path: str, body: Any = None) -> bytes:
        """Return the body of the answer. Raises BenchFailure for a status other than 200 or 202."""
        self._send(method, path, "" if body is None else json.dumps(body))
        head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        if not head.startswith((b"http/1.1 200 ", b"http/1.1 202 ")):
            raise BenchFailure(f"{method} {path} was answered {head[:60]!r}")
        return await self.reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r\n")[0]))

    async def open_stream(self, turn_id: str) -> None:
        """Ask for a turn's events. Raises BenchFailure where they are refused."""
        self._send("GET", f"/v1/turns/{turn_id}/events", "")
        head = await self.reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head.split(b"\r\n")[0]:
            raise BenchFailure(f"a stream was answered {head[:60]!r}")

    async def next_event(self) -> dict[str, Any]:
        await self.reader.readuntil(b"data: ")
        return json.loads(await self.reader.readline())

    def _send(self, method: str, path: str, body: str) -> None:
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self.token}\r\n"
        if body:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self.writer.write(f"{head}\r\n{body}".encode())


@contextmanager
def served(
    on: Stage, log: Path, *, module: str = "brainq.workers.gateway", more: Mapping[str, str] | None = None
) -> Generator[Served]:
    """Run a gateway next to the stage's workers, whose callers need a token. Raises BenchFailure if it does not start.

    module   the module that is run as the gateway
    more     further variables of its environment
    """
    settings, port = wiring_of(on.client).settings, free_port()
    token = Tokens(wiring_of(on.client).store).create("bench", ["*"], list(Verb)).text
    given = {
        "BRAINQ_APP": APP,
        "BRAINQ_REDIS_URL": on.redis_url,
        "BRAINQ_SQL_URL": settings.sql_url.get_secret_value(),
        "BRAINQ_HTTP_PORT": str(port),
        "BRAINQ_HTTP_REQUESTS_S": "100000",
        "BRAINQ_HTTP_STREAMS_A_CALLER": "10000",
        "BRAINQ_HTTP_STREAMS": "10000",
        "BRAINQ_LOG_LEVEL": "info",
        **(more or {}),
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", module], cwd=ROOT, env={**os.environ, **given}, stdout=subprocess.PIPE, stderr=output
        )
    assert process.stdout is not None
    try:
        if not process.stdout.readline():
            raise BenchFailure(f"the gateway did not start:\n{log.read_text()}")
        yield Served(process.pid, port, token)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        process.stdout.close()
