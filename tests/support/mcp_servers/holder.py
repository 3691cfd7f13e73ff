"""A process that holds servers as a worker does: `python holder.py`, with the servers as a line of JSON on its stdin.

It prints `busy` once all are open and one is in the middle of a call, and then waits to be killed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from brainq.engine.tools.mcp.connection import Connection
from brainq.engine.tools.mcp.server import McpServer


async def hold(servers: list[dict[str, Any]], busy: dict[str, Any], then: dict[str, Any]) -> None:
    """Open the servers. `busy` and `then` are calls of the first server, which answers the second during the first."""

    async def told(progress: float, total: float | None, message: str | None) -> None: ...

    held = [Connection(McpServer(**one), None) for one in servers]
    for connection in held:
        await connection.open()
    long = asyncio.create_task(held[0].call(busy["tool"], busy["arguments"], {}, told))
    await asyncio.sleep(0)  # its message goes first
    await held[0].call(then["tool"], then["arguments"], {}, told)
    print("busy", flush=True)
    await long


if __name__ == "__main__":
    asyncio.run(hold(**json.loads(sys.stdin.readline())))
