"""Servers made with the SDK, over streamable HTTP, in a thread of this process."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import ToolAnnotations

from tests.support.mcp_servers.tasks import task_server
from tests.support.wait import wait_until


class OverHttp:
    """An ASGI app that is served while this is entered. `headers` are those of the requests."""

    def __init__(self, port: int = 0) -> None:
        self.headers: list[dict[str, str]] = []
        self._server: uvicorn.Server | None = None
        self._socket = socket.create_server(("127.0.0.1", port))
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self._thread = threading.Thread(target=self._run, name="mcp-over-http", daemon=True)

    def app(self) -> Any:
        raise NotImplementedError

    def _run(self) -> None:
        app = self.app()

        async def noting(scope: dict[str, Any], receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                self.headers.append({key.decode(): value.decode() for key, value in scope["headers"]})
            await app(scope, receive, send)

        config = uvicorn.Config(noting, log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._server.run(sockets=[self._socket])

    def __enter__(self) -> Self:
        self._thread.start()
        wait_until(lambda: self._server is not None and self._server.started, "the server is open")
        return self

    def refuse(self) -> None:
        """Refuse new connections. Open ones continue."""
        assert self._server is not None
        for listening in self._server.servers:
            listening.get_loop().call_soon_threadsafe(listening.close)
        self._socket.close()
        wait_until(self._is_closed, "nobody listens")

    def _is_closed(self) -> bool:
        with socket.socket() as asking:
            return asking.connect_ex(("127.0.0.1", self.port)) != 0

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.should_exit = True
        self._thread.join(20)
        self._socket.close()
        assert not self._thread.is_alive()


class ShopOverHttp(OverHttp):
    """A server with the tools `price` and `client` (reads) and `order` (a change). `orders` keeps the orders.

    stop_before_answer: the next order is accepted, and its connection broken off.
    answers: orders wait for this event.
    """

    def __init__(self, port: int = 0) -> None:
        super().__init__(port)
        self.orders: list[str] = []
        self.stop_before_answer = False
        self.answers = threading.Event()
        self.answers.set()

    def app(self) -> Any:
        shop = MCPServer("shop")

        @shop.tool(annotations=ToolAnnotations(read_only_hint=True))
        def price(sku: str) -> dict[str, int]:
            """The price of a thing."""
            return {"cents": len(sku) * 100}

        @shop.tool(annotations=ToolAnnotations(read_only_hint=True))
        def client(context: Context[Any, Any]) -> str:  # pyright: ignore[reportUnusedFunction]
            """Who asks."""
            params = context.session.client_params
            assert params is not None
            return f"{params.client_info.name} {params.client_info.version}"

        @shop.tool(annotations=ToolAnnotations(destructive_hint=False))
        def order(sku: str) -> str:
            """Order a thing."""
            self.orders.append(sku)
            assert self.answers.wait(60)
            return f"ordered {sku}"

        app: Any = shop.streamable_http_app()

        async def breaking(scope: dict[str, Any], receive: Any, send: Any) -> None:
            asked = len(self.orders)

            async def sending(message: dict[str, Any]) -> None:
                if self.stop_before_answer and len(self.orders) > asked:
                    raise ConnectionAbortedError
                await send(message)

            await app(scope, receive, sending)

        return breaking


class TasksOverHttp(OverHttp):
    """The server whose tools run as tasks. It knows all tasks of `folder`."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        super().__init__(port)
        self.folder = folder

    def app(self) -> Any:
        return task_server(self.folder, keeps_all=True).streamable_http_app()
