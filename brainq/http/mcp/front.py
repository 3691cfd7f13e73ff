"""The front on a gateway. The SDK is imported, and started, when somebody first asks."""

from __future__ import annotations

import asyncio
import importlib.util
import secrets
from typing import TYPE_CHECKING, cast

from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from brainq.access import Caller
from brainq.http.gateway import Gateway
from brainq.http.problems import Refused

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from brainq.http.mcp.asked import Asked, Context
    from brainq.http.mcp.calls_in_flight import CallsInFlight

SESSION = b"mcp-session-id"


class McpFront:
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
            raise Refused("no-such-route", "MCP is off here; its operator may set BRAINQ_HTTP_MCP")
        if importlib.util.find_spec("mcp") is None:
            raise Refused("no-such-route", "MCP needs an extra here: pip install 'brainq[mcp]'")

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
                    "headers": [*message["headers"], (SESSION, secrets.token_hex(16).encode())],
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
        await asyncio.to_thread(importlib.import_module, "brainq.http.mcp.server")
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from brainq.http.mcp.calls_in_flight import CallsInFlight
        from brainq.http.mcp.server import make_server

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

    def _asked(self, context: Context) -> Asked:
        from brainq.http.mcp.asked import Asked

        request = cast("Request", context.request)
        caller: Caller = request.state.caller
        session = request.headers.get(SESSION.decode(), "")[:200]
        return Asked(self._here, caller, context, f"{caller.counted_as} {session}" if session else "")


def _has_failed(task: asyncio.Task[StreamableHTTPSessionManager]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
