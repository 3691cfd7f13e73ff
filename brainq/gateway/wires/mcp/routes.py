"""`POST /mcp`: MCP over streamable HTTP. The SDK is imported, and started, at the first request."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import secrets
from typing import TYPE_CHECKING, Any, cast

from fastapi import APIRouter, Depends, Request, Response
from starlette.types import Message, Receive, Scope, Send

from brainq.access import Caller
from brainq.gateway.edge.dependencies import Gateway, current_principal
from brainq.gateway.edge.problems import RequestRejected

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from brainq.gateway.wires.mcp.requests import CallsInFlight, McpContext, McpRequest


# The front on a gateway. The SDK is imported, and started, when somebody first asks.

SESSION_HEADER = b"mcp-session-id"


class McpEndpoint:
    """What `/mcp` answers. Each request stands alone, so that any gateway may have the next one."""

    def __init__(self, here: Gateway) -> None:
        self._here = here
        self._manager: asyncio.Task[StreamableHTTPSessionManager] | None = None
        self._running: asyncio.Task[None] | None = None
        self._calls: CallsInFlight | None = None
        self._ending = asyncio.Event()

    def require(self) -> None:
        """Raise Refused where it is off, or its extra is not here."""
        if not self._here.settings.http_mcp:
            raise RequestRejected("no-such-route", "MCP is off here; its operator may set BRAINQ_HTTP_MCP")
        if importlib.util.find_spec("mcp") is None:
            raise RequestRejected("no-such-route", "MCP needs an extra here: pip install 'brainq[mcp]'")

    async def answer(self, scope: Scope, receive: Receive, send: Send, *, opens: bool) -> None:
        """Have the SDK answer a request. `opens`: it begins a session of an older client, which is given a name for it:
        the ids of its requests count in there."""
        if self._manager is None or _has_failed(self._manager):
            self._manager = asyncio.create_task(self._start())
        manager = await asyncio.shield(self._manager)

        async def named(message: Message) -> None:
            if opens and message["type"] == "http.response.start" and message["status"] == 200:
                message = {
                    **message,
                    "headers": [*message["headers"], (SESSION_HEADER, secrets.token_hex(16).encode())],
                }
            await send(message)

        await manager.asgi_app(scope, receive, named)

    async def close(self) -> None:
        self._ending.set()
        if self._running is not None:
            await asyncio.wait({self._running})
        if self._calls is not None:
            await self._calls.close()

    async def _start(self) -> StreamableHTTPSessionManager:
        # The import takes half a second, in which others are answered.
        await asyncio.to_thread(importlib.import_module, "brainq.gateway.wires.mcp.server")
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from brainq.gateway.wires.mcp.requests import CallsInFlight
        from brainq.gateway.wires.mcp.server import make_server

        self._calls = CallsInFlight(self._here.client)
        manager = StreamableHTTPSessionManager(
            make_server(self._here, self._calls, self._asked),
            stateless=True,
            max_request_body_size=self._here.settings.http_body_bytes,
        )
        started = asyncio.Event()
        self._running = asyncio.create_task(self._run(manager, started))
        await started.wait()
        return manager

    async def _run(self, manager: StreamableHTTPSessionManager, started: asyncio.Event) -> None:
        async with manager.run():
            started.set()
            await self._ending.wait()

    def _asked(self, context: McpContext) -> McpRequest:
        from brainq.gateway.wires.mcp.requests import McpRequest

        request = cast("Request", context.request)
        caller: Caller = request.state.caller
        session = request.headers.get(SESSION_HEADER.decode(), "")[:200]
        return McpRequest(self._here, caller, context, f"{caller.counted_as} {session}" if session else "")


def _has_failed(task: asyncio.Task[StreamableHTTPSessionManager]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


# `POST /mcp`: streamable HTTP. There is no stream to GET and no session to DELETE.

router = APIRouter(include_in_schema=False)  # its document is tools/list


class _McpResponse(Response):
    """The SDK's answer, written as it comes."""

    def __init__(self, front: McpEndpoint, body: bytes, *, opens: bool) -> None:
        super().__init__()
        self._front = front
        self._given = body
        self._opens = opens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body: bytes | None = self._given

        async def given() -> Any:
            nonlocal body
            if body is None:
                return await receive()
            told, body = body, None
            return {"type": "http.request", "body": told, "more_body": False}

        await self._front.answer(scope, given, send, opens=self._opens)


@router.post("/mcp", dependencies=[Depends(current_principal)])
async def post_message(request: Request) -> Response:
    """One message of an MCP client. What a tool needs beside the verb `read` is in the table of tools."""
    front = cast("McpEndpoint", request.app.state.mcp)
    front.require()
    body = await request.body()
    return _McpResponse(front, body, opens=_opens_a_session(body))


def _opens_a_session(body: bytes) -> bool:
    try:
        said: Any = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(said, dict) and cast("dict[str, Any]", said).get("method") == "initialize"
