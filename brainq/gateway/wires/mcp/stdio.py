"""MCP over stdin and stdout: a program starts it, with all rights of the deployment's environment."""

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
    """Serve until stdin ends. Turns that have begun go on. `settings` name a Redis."""
    asyncio.run(_serve(make_gateway(settings, brains, local_authenticator())))


async def _serve(gateway: Gateway) -> None:
    calls = CallsInFlight(gateway.client)
    server = make_server(gateway, calls, ConnectionRequests(gateway, LOCAL_CALLER))
    try:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
        await calls.close()
    finally:
        gateway.long_work.shutdown(wait=False, cancel_futures=True)
        await gateway.client.close()


class ConnectionRequests:
    """Requests of one connection, in which their ids are unique."""

    def __init__(self, gateway: Gateway, caller: Caller) -> None:
        self._gateway = gateway
        self._caller = caller
        self._scope = f"connection {secrets.token_hex(16)}"

    def __call__(self, context: McpContext) -> McpRequest:
        return McpRequest(self._gateway, self._caller, context, self._scope)
