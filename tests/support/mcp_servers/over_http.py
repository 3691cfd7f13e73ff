"""A server made with the SDK, over streamable HTTP, in a thread of this process."""

from __future__ import annotations

import socket
import threading
from types import TracebackType
from typing import Any, Self

import uvicorn
from mcp.server import MCPServer
from mcp_types import ToolAnnotations

from tests.support.wait import wait_until


class ShopOverHttp:
    """Tools `price` (a read) and `order` (a change); `orders` and `headers` keep what came.

    stop_before_answer   the next order is taken, and its connection broken off
    """

    def __init__(self, port: int = 0) -> None:
        self.orders: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.stop_before_answer = False
        self._server: uvicorn.Server | None = None
        self._socket = socket.create_server(("127.0.0.1", port))
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self._thread = threading.Thread(target=self._run, name="mcp-shop", daemon=True)

    def _run(self) -> None:
        shop = MCPServer("shop")

        @shop.tool(annotations=ToolAnnotations(read_only_hint=True))
        def price(sku: str) -> dict[str, int]:
            """The price of a thing."""
            return {"cents": len(sku) * 100}

        @shop.tool(annotations=ToolAnnotations(destructive_hint=False))
        def order(sku: str) -> str:
            """Order a thing."""
            self.orders.append(sku)
            return f"ordered {sku}"

        app: Any = shop.streamable_http_app()

        async def noting(scope: dict[str, Any], receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                self.headers.append({key.decode(): value.decode() for key, value in scope["headers"]})
            asked = len(self.orders)

            async def sending(message: dict[str, Any]) -> None:
                if self.stop_before_answer and len(self.orders) > asked:
                    raise ConnectionAbortedError
                await send(message)

            await app(scope, receive, sending)

        config = uvicorn.Config(
            noting, log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=1
        )
        self._server = uvicorn.Server(config)
        self._server.run(sockets=[self._socket])

    def __enter__(self) -> Self:
        self._thread.start()
        wait_until(lambda: self._server is not None and self._server.started, "the shop is open")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.should_exit = True
        self._thread.join(20)
        self._socket.close()
        assert not self._thread.is_alive()
