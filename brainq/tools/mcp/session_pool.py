"""The sessions of this process: one a server, on the loop that its calls run on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Hashable
from concurrent.futures import TimeoutError as FutureTimeout
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from brainq.tools.mcp.catalogue import PinnedServer
from brainq.tools.mcp.server import McpServer

if TYPE_CHECKING:
    from brainq.tools.mcp.session import Session

CLOSE_S = 6.0
INSTALL_HINT = "MCP servers need the extra `mcp`; install it with: pip install 'brainq[mcp]'"

_lock = threading.Lock()
_sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Hashable, Session]] = WeakKeyDictionary()


def shared_session(key: Hashable, server: McpServer, pinned: PinnedServer) -> Session:
    """The running loop's session of this key. Its first use starts the server, not this."""
    from brainq.tools.mcp.session import Session

    with _lock:
        sessions = _sessions.setdefault(asyncio.get_running_loop(), {})
        return sessions.setdefault(key, Session(server, pinned))


def close_sessions() -> None:
    """End every server this process started, from a thread that runs no loop; waits 6 s at most."""
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
