"""Streamable HTTP: a server that the SDK made, and bodies that do not end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from typing import Any

import pytest

from brainq.contracts.call import ToolFailure, ToolSuccess, ToolUnknown
from brainq.engine.calls.executor import BoundedToolExecutor
from brainq.engine.calls.function_run import CallReturn
from brainq.engine.tools.mcp.server import McpServer
from brainq.engine.tools.mcp.session import discover
from brainq.engine.tools.mcp.tools import tools_of_server
from tests.integration.mcp.conftest import looked
from tests.support.mcp_servers.over_http import ShopOverHttp
from tests.support.wait import wait_until
from tests.unit.engine.calls.support import run

TOKEN, URL_KEY = "sk-in-a-header", "sk-in-the-query"


def calls_of(executor: BoundedToolExecutor, shop: ShopOverHttp) -> Callable[..., CallReturn]:
    server = McpServer("shop", url=f"{shop.url}?key={URL_KEY}", headers={"Authorization": f"Bearer {TOKEN}"})
    tools = {tool.name: tool for tool in tools_of_server(server, looked(server))}

    def call(name: str, **arguments: Any) -> CallReturn:
        return run(executor, tools[f"shop__{name}"], arguments)

    return call


def test_a_server_over_http_is_called_and_outlived(
    executor: BoundedToolExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    with ShopOverHttp() as shop:
        call = calls_of(executor, shop)
        read, changed = call("price", sku="tea"), call("order", sku="tea")
        assert isinstance(read, ToolSuccess)
        assert read.value == {"cents": 300}
        assert isinstance(changed, ToolSuccess)
        assert changed.value == "ordered tea"
        assert {headers.get("authorization") for headers in shop.headers} == {f"Bearer {TOKEN}"}
    gone = call("price", sku="tea")
    assert isinstance(gone, ToolFailure)
    assert gone.retryable
    with ShopOverHttp(shop.port) as again:  # a new process: it knows no session of before
        back = call("price", sku="tea")
        assert isinstance(back, ToolSuccess), back
        again.stop_before_answer = True
        lost = call("order", sku="cup")
        assert isinstance(lost, ToolUnknown), lost
        assert again.orders == ["cup"]
        again.stop_before_answer = False
        assert isinstance(call("price", sku="tea"), ToolSuccess)
    assert TOKEN not in caplog.text
    assert URL_KEY not in caplog.text


def test_a_change_that_no_server_took_has_failed_and_is_not_unknown(executor: BoundedToolExecutor) -> None:
    with ShopOverHttp() as shop:
        call = calls_of(executor, shop)
        assert isinstance(call("order", sku="tea"), ToolSuccess)
    refused = call("order", sku="cup")
    assert isinstance(refused, ToolFailure), refused
    assert refused.retryable
    with ShopOverHttp(shop.port) as again:
        assert isinstance(call("order", sku="pot"), ToolSuccess)
        assert again.orders == ["pot"]


def test_what_is_in_flight_outlives_a_connection_that_is_refused(executor: BoundedToolExecutor) -> None:
    with ShopOverHttp() as shop, ThreadPoolExecutor(8) as threads:
        call = calls_of(executor, shop)
        assert isinstance(call("price", sku="tea"), ToolSuccess)
        shop.answers.clear()
        first = threads.submit(call, "order", sku="tea")
        wait_until(lambda: shop.orders == ["tea"], "an order is in flight")
        shop.refuse()
        others = [threads.submit(call, "order", sku="cup") for _ in range(5)]
        wait_until(
            lambda: len(shop.orders) - 1 + sum(other.done() for other in others) == len(others),
            "each other one was taken, over a connection that was open, or refused",
        )
        shop.answers.set()
        assert isinstance(first.result(60), ToolSuccess)
        ended = [other.result(60) for other in others]
        assert {type(one) for one in ended} <= {ToolSuccess, ToolFailure}, ended
        assert sum(isinstance(one, ToolSuccess) for one in ended) == len(shop.orders) - 1
        assert any(isinstance(one, ToolFailure) for one in ended)


def test_servers_are_told_the_version_that_is_installed(executor: BoundedToolExecutor) -> None:
    with ShopOverHttp() as shop:
        told = calls_of(executor, shop)("client")
    assert isinstance(told, ToolSuccess), told
    assert told.value == f"brainq {version('brainq')}"


class _Endless(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        try:
            while True:
                self.wfile.write(b" " * 1_000_000)
        except OSError:
            pass

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/mcp?key=sk-in-the-url", ""])
def test_nobody_there_and_a_body_without_end_are_told(url: str) -> None:
    endless = ThreadingHTTPServer(("127.0.0.1", 0), _Endless)
    threading.Thread(target=endless.serve_forever, daemon=True).start()
    try:
        server = McpServer("shop", url=url or f"http://127.0.0.1:{endless.server_port}/", start_timeout_s=20)
        seen = discover([server])["shop"]
    finally:
        endless.shutdown()
        endless.server_close()
    assert seen.found is None
    assert "could not be opened" in seen.problem
    assert "sk-in-the-url" not in seen.problem
