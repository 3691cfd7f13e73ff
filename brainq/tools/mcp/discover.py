"""Discovery of what servers offer: their lists of tools, as far as they can be pinned. For `brainq mcp pin`
and `brainq doctor`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError

from brainq.errors import ToolSchemaError
from brainq.text.surrogates import clean_json
from brainq.tools.mcp.catalogue import PinnedServer, PinnedTool
from brainq.tools.mcp.results import ConnectionNotOpen
from brainq.tools.mcp.server import McpServer
from brainq.tools.schema import check_tool_schema

MAX_TOOLS = 500
_TASK_SUPPORT = ("optional", "required")
MAX_TOOL_CHARS = 100_000  # description and schemas: a model reads them at every step


def pinned_server(server: McpServer, listed: Iterable[dict[str, Any]]) -> PinnedServer:
    """`listed` are the protocol's tools as JSON. What no model can call is left out, and why is kept."""
    tools: dict[str, PinnedTool] = {}
    left_out: dict[str, str] = {}
    for number, entry in enumerate(listed):
        name = str(entry.get("name", ""))
        try:
            if number >= MAX_TOOLS:
                raise ToolSchemaError(f"the server lists more than {MAX_TOOLS} tools")
            if name in tools:
                raise ToolSchemaError("the server lists it twice")
            tools[name] = _pinned_tool(name, entry)
        except (ToolSchemaError, ValidationError) as error:
            left_out[name[:200]] = " ".join(str(error).split())[:300]
    return PinnedServer(
        transport=server.transport,
        env=tuple(sorted(server.env)),
        headers=tuple(sorted(server.headers)),
        tools=tuple(tools.values()),
        leftOut=left_out,
    )


def _pinned_tool(name: str, entry: dict[str, Any]) -> PinnedTool:
    if not name:
        raise ToolSchemaError("it has no name")
    kept = {key: entry[key] for key in ("name", "title", "description", "annotations") if key in entry}
    kept["inputSchema"] = check_tool_schema(name, entry.get("inputSchema"))
    if entry.get("outputSchema") is not None:
        kept["outputSchema"] = entry["outputSchema"]
    if (support := cast("dict[str, Any]", entry.get("execution") or {}).get("taskSupport")) in _TASK_SUPPORT:
        kept["taskSupport"] = support
    kept = cast("dict[str, Any]", clean_json(kept))
    if len(json.dumps(kept)) > MAX_TOOL_CHARS:
        raise ToolSchemaError(f"its description and schemas have more than {MAX_TOOL_CHARS:,} characters")
    return PinnedTool.model_validate(kept)


@dataclass(frozen=True, slots=True)
class DiscoveryResult:
    """What a server offers, or why it could not be asked, with the end of what it wrote to stderr."""

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
    from brainq.tools.mcp.connection import Connection

    connection = Connection(server, None)
    try:
        await connection.open()
        return DiscoveryResult(found=connection.found)
    except ConnectionNotOpen as failure:
        return DiscoveryResult(problem=str(failure), last_words=connection.stderr_tail)
    finally:
        await connection.close()
