"""Sessions: one for each server and event loop. Its connection opens at the first call, and again with backoff. Servers
can also be discovered."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Hashable, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from brainq.engine.tools.mcp.catalogue import PinnedServer
from brainq.engine.tools.mcp.results import ConnectionNotOpen
from brainq.engine.tools.mcp.server import McpServer
from brainq.runtime.observe.logs import logger

if TYPE_CHECKING:
    from brainq.engine.tools.mcp.connection import Connection

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0
MAX_CALL_WAIT_S = 5.0  # the longest wait of a call for the next try; if that takes longer, the call fails at once
CLOSE_S = 6.0
INSTALL_HINT = "MCP servers need the extra `mcp`; install it with: pip install 'brainq[mcp]'"
log = logger("brainq.mcp")
_lock = threading.Lock()
_sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Hashable, Session]] = WeakKeyDictionary()


def backoff_s(failures: int) -> float:
    """Return how many seconds to wait after this many failures in a row.

    Two losses, by a call and its repeat, cause no wait.
    """
    return 0.0 if failures < 3 else min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** (min(failures, 20) - 3))


class Session:
    """A session, which belongs to one event loop and is not thread-safe."""

    def __init__(self, server: McpServer, pinned: PinnedServer) -> None:
        self._server = server
        self._pinned = pinned
        self._connection: Connection | None = None
        self._retired: list[Connection] = []  # they may have calls in flight
        self._opening: asyncio.Task[Connection] | None = None
        self._failures = 0  # since the last answer
        self._not_before = 0.0
        self._last_words = ""

    async def connection(self) -> Connection:
        """Return the open connection, or open one. Raises ConnectionNotOpen."""
        if self._connection is not None and not self._connection.is_open:
            await self.drop(self._connection)
        if self._connection is not None:
            return self._connection
        if self._opening is None:
            if (wait_s := self._not_before - time.monotonic()) > MAX_CALL_WAIT_S:
                raise ConnectionNotOpen(
                    f"The MCP server {self._server.name!r} failed {self._failures} times in a row "
                    f"({self._last_words}). It is tried again in {wait_s:.0f} s."
                )
            self._opening = asyncio.create_task(self._open())
        # A call whose time is up does not cancel an opening that other calls need.
        return await asyncio.shield(self._opening)

    @property
    def open_connection(self) -> Connection | None:
        """The open connection, or None if a call would open one."""
        return self._connection if self._connection is not None and self._connection.is_open else None

    async def drop(self, connection: Connection) -> None:
        """Forget a lost connection, so that the next call opens another. Does nothing if it was dropped before."""
        if self._connection is connection:
            self._connection = None
            self._retired = [one for one in self._retired if not one.has_ended] + [connection]
            self._failed("its connection was lost")
            await connection.retire()

    def reset_backoff(self) -> None:
        self._failures = 0
        self._not_before = 0.0

    async def close(self) -> None:
        """End the server, even while it is being started."""
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])
        held = [*self._retired, *([] if self._connection is None else [self._connection])]
        await asyncio.gather(*(connection.close() for connection in held))

    async def _open(self) -> Connection:
        from brainq.engine.tools.mcp.connection import Connection

        try:
            await asyncio.sleep(max(0.0, self._not_before - time.monotonic()))
            connection = Connection(self._server, self._pinned)
            await connection.open()
        except ConnectionNotOpen as failure:
            self._failed(str(failure))
            raise
        else:
            if connection.drift:
                log.warning("MCP tools drifted", server=self._server.name, drift=str(connection.drift)[:300])
            self._connection = connection
            return connection
        finally:
            self._opening = None

    def _failed(self, words: str) -> None:
        self._failures += 1
        self._last_words = words
        self._not_before = time.monotonic() + backoff_s(self._failures)
        log.warning("MCP server failed", server=self._server.name, in_a_row=self._failures)


def shared_session(key: Hashable, server: McpServer, pinned: PinnedServer) -> Session:
    """Return the running loop's session of this key. Its first use starts the server."""
    with _lock:
        sessions = _sessions.setdefault(asyncio.get_running_loop(), {})
        return sessions.setdefault(key, Session(server, pinned))


def close_sessions() -> None:
    """End every server that this process started, from a thread without a loop, within 6 s."""
    with _lock:
        found = [(loop, list(sessions.values())) for loop, sessions in _sessions.items()]
        _sessions.clear()
    for loop, sessions in found:
        if sessions and loop.is_running():
            closing = asyncio.run_coroutine_threadsafe(_close_all(sessions), loop)
            try:
                closing.result(CLOSE_S)
            except FutureTimeout:
                closing.cancel()


async def _close_all(sessions: list[Session]) -> None:
    await asyncio.gather(*(session.close() for session in sessions), return_exceptions=True)


@dataclass(frozen=True, slots=True)
class DiscoveryResult:
    """The list of a server, or why it could not be read, with the end of its stderr."""

    found: PinnedServer | None = None
    problem: str = ""
    last_words: str = ""


def discover(servers: Sequence[McpServer]) -> dict[str, DiscoveryResult]:
    """Start all servers at once, list their tools, and end them."""
    return asyncio.run(_discover_all(servers))


async def _discover_all(servers: Sequence[McpServer]) -> dict[str, DiscoveryResult]:
    looked = await asyncio.gather(*map(_discover_server, servers))
    return {server.name: result for server, result in zip(servers, looked, strict=True)}


async def _discover_server(server: McpServer) -> DiscoveryResult:
    from brainq.engine.tools.mcp.connection import Connection

    connection = Connection(server, None)
    try:
        await connection.open()
        return DiscoveryResult(found=connection.found)
    except ConnectionNotOpen as failure:
        return DiscoveryResult(problem=str(failure), last_words=connection.stderr_tail)
    finally:
        await connection.close()
