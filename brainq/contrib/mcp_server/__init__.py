"""An MCP server with one tool for each brain and tools for the verbs of turns. Needs the extra `mcp`.

The SDK speaks the protocol over streamable HTTP (`/mcp` of the gateway) and over stdio (`brainq mcp serve`). Its HTTP
transport has no sessions, so any gateway can answer any request; what a call began is a turn, which outlives them all.
"""

from __future__ import annotations

from brainq.gateway.edge.request import Gateway
from brainq.gateway.wire import Wire


def open_wire(gateway: Gateway) -> Wire:
    """Return the wire. If BRAINQ_HTTP_MCP is off or the extra is missing, its route answers with the remedy."""
    from brainq.contrib.mcp_server.routes import McpWire

    return McpWire(gateway)
