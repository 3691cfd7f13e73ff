"""Looking at what servers offer, for `brainq mcp pin` and `brainq doctor`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from brainq.tools.mcp.failures import NotOpen
from brainq.tools.mcp.pinned import PinnedServer
from brainq.tools.mcp.server import McpServer


@dataclass(frozen=True, slots=True)
class Looked:
    """What a server offers, or why it could not be asked, with the end of what it wrote to stderr."""

    found: PinnedServer | None = None
    problem: str = ""
    last_words: str = ""


def discover(servers: Sequence[McpServer]) -> dict[str, Looked]:
    """Start all servers at once, list their tools, and end them."""
    return asyncio.run(_discover(servers))


async def _discover(servers: Sequence[McpServer]) -> dict[str, Looked]:
    looked = await asyncio.gather(*map(_look, servers))
    return {server.name: seen for server, seen in zip(servers, looked, strict=True)}


async def _look(server: McpServer) -> Looked:
    from brainq.tools.mcp.connection import Connection

    connection = Connection(server, None)
    try:
        await connection.open()
        return Looked(found=connection.found)
    except NotOpen as failure:
        return Looked(problem=str(failure), last_words=connection.last_words)
    finally:
        await connection.close()
