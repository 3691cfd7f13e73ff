"""The SDK's own client for tests of the MCP front, over HTTP or over a pair of streams."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from typing import Any, Literal

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.memory import create_client_server_memory_streams
from mcp_types import CallToolResult, ElicitRequestFormParams, ElicitRequestParams, ElicitResult

from brainq.app.access import Caller
from brainq.contrib.mcp_server.requests import CallsInFlight
from brainq.contrib.mcp_server.server import connection_requests, make_server
from brainq.gateway.edge.request import Gateway

Age = Literal["auto", "legacy"]
"""`auto` is the newest version, without sessions. `legacy` is one that begins with `initialize`."""
AGES: tuple[Age, ...] = ("auto", "legacy")


class User:
    """A user who answers the questions of the client. `asked` keeps these."""

    def __init__(self, action: Literal["accept", "decline", "cancel"], decision: str = "approve") -> None:
        self.asked: list[str] = []
        self._answer = ElicitResult(
            action=action, content={"decision": decision, "reason": "not today"} if action == "accept" else None
        )

    async def __call__(self, context: object, params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        self.asked.append(params.message)
        return self._answer


@asynccontextmanager
async def over_http(
    url: str, headers: dict[str, str] | None = None, *, age: Age = "auto", user: User | None = None
) -> AsyncGenerator[Client]:
    verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # no TLS: its roots take 0.1 s
    async with httpx2.AsyncClient(headers=headers, timeout=30, verify=verify) as http:
        streams: Any = streamable_http_client(f"{url}/mcp", http_client=http)
        async with Client(streams, mode=age, elicitation_callback=user, cache=None) as client:
            yield client


@asynccontextmanager
async def over_streams(
    here: Gateway, caller: Caller, *, age: Age = "auto", user: User | None = None
) -> AsyncGenerator[Client]:
    """Yield a client of the loop that serves stdin and stdout, on streams in memory."""
    calls = CallsInFlight(here.client)
    server = make_server(here, calls, connection_requests(here, caller))
    async with create_client_server_memory_streams() as (theirs, ours):
        serving = asyncio.create_task(server.run(*ours, server.create_initialization_options()))

        @asynccontextmanager
        async def transport() -> AsyncGenerator[Any]:
            yield theirs

        streams: Any = transport()
        async with Client(streams, mode=age, elicitation_callback=user, cache=None) as client:
            yield client
        await theirs[1].aclose()
        await serving
    await calls.close()


def told(result: CallToolResult) -> dict[str, Any]:
    """Return the structured content of a tool that did not fail."""
    assert not result.is_error, result
    assert isinstance(result.structured_content, dict)
    return result.structured_content


def words(result: CallToolResult) -> str:
    return " ".join(getattr(block, "text", "") for block in result.content)


def run(made: Awaitable[Any]) -> Any:
    async def bounded() -> Any:
        return await asyncio.wait_for(made, 60)

    return asyncio.run(bounded())
