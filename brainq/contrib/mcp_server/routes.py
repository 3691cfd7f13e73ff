"""`POST /mcp`: MCP over streamable HTTP. The SDK is imported and started at the first request."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import secrets
from typing import TYPE_CHECKING, Any, cast

from fastapi import APIRouter, Depends, Request, Response
from starlette.types import Message, Receive, Scope, Send

from brainq.app.access import Caller, Verb
from brainq.errors import SetupError
from brainq.gateway.edge.access import current_request
from brainq.gateway.edge.limits import replay_body
from brainq.gateway.edge.problems import RequestRejected
from brainq.gateway.edge.request import Gateway
from brainq.gateway.wire import Wire
from brainq.runtime.observe.tasks import KeptTask

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from brainq.contrib.mcp_server.requests import CallsInFlight, McpContext, McpRequest


SESSION_HEADER = b"mcp-session-id"
VERBS: dict[str, Verb] = {"POST /mcp": Verb.READ}
"""The verb that every request needs. Most tools need further verbs."""
router = APIRouter(include_in_schema=False)  # tools/list documents it


class McpWire(Wire):
    """The MCP server behind `/mcp`. Requests are independent, so any gateway may answer the next one."""

    def __init__(self, gateway: Gateway) -> None:
        super().__init__("mcp_server", router, VERBS)
        self._gateway = gateway
        self._manager: StreamableHTTPSessionManager | None = None  # the running one
        self._running = KeptTask("brainq-mcp", self._run)
        self._changed = asyncio.Event()
        self._calls: CallsInFlight | None = None

    def require(self) -> None:
        """Raise RequestRejected if MCP is off or its extra is not installed."""
        if not self._gateway.settings.http_mcp:
            raise RequestRejected("no-such-route", "MCP is off; the operator can turn it on with BRAINQ_HTTP_MCP")
        if importlib.util.find_spec("mcp") is None:
            raise RequestRejected("no-such-route", "the extra for MCP is not installed: pip install 'brainq[mcp]'")

    async def answer(self, scope: Scope, receive: Receive, send: Send, *, opens: bool) -> None:
        """Let the SDK answer a request. Raises SetupError while the SDK's server does not start.

        opens   True if the request begins a session of an older client. It gets a session id, within which the ids of
                its requests are unique.
        """
        manager = await self._started()

        async def named(message: Message) -> None:
            if opens and message["type"] == "http.response.start" and message["status"] == 200:
                message = {
                    **message,
                    "headers": [*message["headers"], (SESSION_HEADER, secrets.token_hex(16).encode())],
                }
            await send(message)

        await manager.asgi_app(scope, receive, named)

    async def close(self) -> None:
        await self._running.stop()
        if self._calls is not None:
            await self._calls.close()

    async def _started(self) -> StreamableHTTPSessionManager:
        self._running.ensure()
        if self._manager is None:
            self._changed.clear()
            await self._changed.wait()
        if self._manager is None:
            raise SetupError(
                "the MCP server did not start and is being restarted; see the gateway's log for the reason"
            )
        return self._manager

    async def _run(self) -> None:
        """Run a new session manager until it is cancelled or fails. A manager cannot run twice."""
        try:
            manager = await self._make()
            async with manager.run():
                self._manager = manager
                self._changed.set()
                await asyncio.Event().wait()
        finally:
            self._manager = None
            self._changed.set()

    async def _make(self) -> StreamableHTTPSessionManager:
        # The import takes half a second. In a thread it does not delay other requests.
        await asyncio.to_thread(importlib.import_module, "brainq.contrib.mcp_server.server")
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from brainq.contrib.mcp_server.requests import CallsInFlight
        from brainq.contrib.mcp_server.server import make_server

        self._calls = self._calls or CallsInFlight(self._gateway.client)
        return StreamableHTTPSessionManager(
            make_server(self._gateway, self._calls, self._to_request),
            stateless=True,
            max_request_body_size=self._gateway.settings.http_body_bytes,
        )

    def _to_request(self, context: McpContext) -> McpRequest:
        from brainq.contrib.mcp_server.requests import McpRequest

        request = cast("Request", context.request)
        caller: Caller = request.state.caller
        session = request.headers.get(SESSION_HEADER.decode(), "")[:200]
        return McpRequest(
            self._gateway, caller, Verb.READ, context, f"{caller.counted_as} {session}" if session else ""
        )


class _McpResponse(Response):
    """The SDK's answer, which is sent as it is made."""

    def __init__(self, wire: McpWire, body: bytes, *, opens: bool) -> None:
        super().__init__()
        self._wire = wire
        self._body = body
        self._opens = opens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._wire.answer(scope, replay_body(self._body, receive), send, opens=self._opens)


@router.post("/mcp", dependencies=[Depends(current_request)])
async def post_message(request: Request) -> Response:
    """Answer a message of an MCP client. The table of tools has the verbs that tools need in addition to `read`."""
    wire = cast("McpWire", request.app.state.wires["mcp_server"])
    wire.require()
    body = await request.body()
    return _McpResponse(wire, body, opens=_opens_a_session(body))


def _opens_a_session(body: bytes) -> bool:
    try:
        message: Any = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(message, dict) and cast("dict[str, Any]", message).get("method") == "initialize"
