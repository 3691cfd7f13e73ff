"""From a server's list of tools to what is pinned of it. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, cast

from pydantic import ValidationError

from brainq.errors import ToolSchemaError
from brainq.text.surrogates import clean_json
from brainq.tools.given_schema import checked_schema
from brainq.tools.mcp.pinned import PinnedServer, PinnedTool
from brainq.tools.mcp.server import McpServer

MAX_TOOLS = 500
_TASKS = ("optional", "required")
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
            tools[name] = _tool(name, entry)
        except (ToolSchemaError, ValidationError) as error:
            left_out[name[:200]] = " ".join(str(error).split())[:300]
    return PinnedServer(
        transport=server.transport,
        env=tuple(sorted(server.env)),
        headers=tuple(sorted(server.headers)),
        tools=tuple(tools.values()),
        leftOut=left_out,
    )


def _tool(name: str, entry: dict[str, Any]) -> PinnedTool:
    if not name:
        raise ToolSchemaError("it has no name")
    kept = {key: entry[key] for key in ("name", "title", "description", "annotations") if key in entry}
    kept["inputSchema"] = checked_schema(name, entry.get("inputSchema"))
    if entry.get("outputSchema") is not None:
        kept["outputSchema"] = entry["outputSchema"]
    if (support := cast("dict[str, Any]", entry.get("execution") or {}).get("taskSupport")) in _TASKS:
        kept["taskSupport"] = support
    kept = cast("dict[str, Any]", clean_json(kept))
    if len(json.dumps(kept)) > MAX_TOOL_CHARS:
        raise ToolSchemaError(f"its description and schemas have more than {MAX_TOOL_CHARS:,} characters")
    return PinnedTool.model_validate(kept)
