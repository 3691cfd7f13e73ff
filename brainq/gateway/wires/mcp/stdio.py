"""MCP over stdin and stdout: a program starts it, with the power of the deployment's environment."""

from __future__ import annotations

import asyncio
import secrets

from mcp.server.stdio import stdio_server

from brainq.access import Caller
from brainq.brain.brains import BrainsArgument
from brainq.gateway.edge.authentication import LOCAL_CALLER, local_authenticator
from brainq.gateway.edge.dependencies import Gateway
from brainq.gateway.server import make_gateway
from brainq.gateway.wires.mcp.requests import CallsInFlight, McpContext, McpRequest
from brainq.gateway.wires.mcp.server import make_server
from brainq.settings.deployment import Settings


def serve_stdio(settings: Settings, brains: BrainsArgument) -> None:
    """Serve until stdin ends. What was begun by then goes on. `settings` name a Redis."""
    asyncio.run(_serve(make_gateway(settings, brains, local_authenticator())))


async def _serve(here: Gateway) -> None:
    calls = CallsInFlight(here.client)
    server = make_server(here, calls, ConnectionRequests(here, LOCAL_CALLER))
    try:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
        await calls.close()
    finally:
        here.long_work.shutdown(wait=False, cancel_futures=True)
        await here.client.close()


class ConnectionRequests:
    """Requests of one connection, whose ids count in it."""

    def __init__(self, here: Gateway, caller: Caller) -> None:
        self._here = here
        self._caller = caller
        self._scope = f"connection {secrets.token_hex(16)}"

    def __call__(self, context: McpContext) -> McpRequest:
        return McpRequest(self._here, self._caller, context, self._scope)
