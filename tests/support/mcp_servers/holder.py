"""A process that holds servers as a worker does: `python holder.py`, with what it holds as a line of JSON on its stdin.

It says `busy` once all are open and one is in the middle of a call, and then waits to be killed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from brainq.tools.mcp.connection import Connection
from brainq.tools.mcp.server import McpServer


async def hold(servers: list[dict[str, Any]], busy: dict[str, Any]) -> None:
    async def told(progress: float, total: float | None, message: str | None) -> None:
        if progress == 1:
            print("busy", flush=True)

    held = {one["name"]: Connection(McpServer(**one), None) for one in servers}
    for connection in held.values():
        await connection.open()
    server, tool = busy.pop("server"), busy.pop("tool")
    await held[server].call(tool, busy, {}, told)


if __name__ == "__main__":
    asyncio.run(hold(**json.loads(sys.stdin.readline())))
