"""A server over HTTP that restarts under load: each order is made once, and what is unknown was really in doubt."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from brainq.contracts.call import ToolFailure, ToolSuccess, ToolUnknown
from brainq.engine.calls.executor import BoundedToolExecutor
from brainq.engine.calls.function_run import CallReturn
from brainq.engine.tools.mcp.server import McpServer
from brainq.engine.tools.mcp.tools import tools_of_server
from tests.integration.mcp.conftest import looked
from tests.support.mcp_servers.restarting import GONE, RestartedShop
from tests.support.wait import wait_until
from tests.unit.engine.calls.support import run

THREADS = 8


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[RestartedShop]:
    shop = RestartedShop(tmp_path)
    shop.start(0)
    yield shop
    shop.stop(signal.SIGKILL)


def restarted(shop: RestartedShop, times: int) -> None:
    """Restart it under load, every second time with time for orders to end."""
    for number in range(1, times + 1):
        before = len(shop.orders())
        wait_until(lambda before=before: len(shop.orders()) > before + THREADS, "orders come", 60)
        shop.stop(signal.SIGKILL if number % 2 else signal.SIGTERM)
        shop.start(number % len(GONE))


def test_each_order_is_made_once_while_its_server_is_killed_and_restarted(
    executor: BoundedToolExecutor, shop: RestartedShop
) -> None:
    server = McpServer("shop", url=shop.url)
    order = {tool.name: tool for tool in tools_of_server(server, looked(server))}["shop__order"]
    over = threading.Event()

    def buy(buyer: int) -> dict[str, CallReturn]:
        bought: dict[str, CallReturn] = {}
        while not over.is_set():
            sku = f"{buyer}-{len(bought)}"
            bought[sku] = run(executor, order, {"sku": sku})
        return bought

    with ThreadPoolExecutor(THREADS) as threads:
        buying = [threads.submit(buy, buyer) for buyer in range(THREADS)]
        try:
            restarted(shop, 1)
            before = len(shop.orders())
            wait_until(lambda: len(shop.orders()) > before + THREADS, "orders come after the last restart", 60)
        finally:
            over.set()
        ended = {sku: one for bought in buying for sku, one in bought.result(60).items()}
    made = Counter(shop.orders())
    for sku, one in ended.items():
        assert isinstance(one, ToolSuccess | ToolFailure | ToolUnknown), one
        if isinstance(one, ToolSuccess):
            assert made[sku] == 1
        elif isinstance(one, ToolFailure):
            assert (made[sku], one.retryable) == (0, True), one
        else:
            assert made[sku] <= 1
    assert 0 < sum(isinstance(one, ToolUnknown) for one in ended.values()) <= THREADS  # in flight when it was killed
