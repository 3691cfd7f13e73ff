"""The front over stdin and stdout: a program starts it, and has the power of the deployment's environment."""

from __future__ import annotations

import asyncio
import secrets

from mcp.server.stdio import stdio_server

from brainq.access import Caller
from brainq.brains import GivenBrains
from brainq.http.gateway import Gateway
from brainq.http.mcp.asked import Asked, Context
from brainq.http.mcp.calls_in_flight import CallsInFlight
from brainq.http.mcp.server import make_server
from brainq.http.serving import make_gateway
from brainq.http.who import LOCAL, anybody_here
from brainq.settings import Settings


def serve_stdio(settings: Settings, brains: GivenBrains) -> None:
    """Serve until stdin ends. What was begun by then goes on. `settings` name a Redis."""
    asyncio.run(_serve(make_gateway(settings, brains, anybody_here())))


async def _serve(here: Gateway) -> None:
    calls = CallsInFlight(here.client)
    server = make_server(here, calls, Asks(here, LOCAL))
    try:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
        await calls.close()
    finally:
        here.long_work.shutdown(wait=False, cancel_futures=True)
        await here.client.close()


class Asks:
    """Requests of one connection, whose ids count in it."""

    def __init__(self, here: Gateway, caller: Caller) -> None:
        self._here = here
        self._caller = caller
        self._scope = f"connection {secrets.token_hex(16)}"

    def __call__(self, context: Context) -> Asked:
        return Asked(self._here, self._caller, context, self._scope)
