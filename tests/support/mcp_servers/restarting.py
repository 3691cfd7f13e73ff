"""The forgetful shop as a separate process: `python -m tests.support.mcp_servers.restarting FOLDER PORT KIND`.

`orders` in FOLDER has a line for each order, whichever process accepted it. `answers` has the HTTP status of each call
of `order`, and 0 when it arrived. Calls of unknown sessions are answered with GONE[KIND]. SIGTERM lets orders finish;
SIGKILL does not.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tests.support.mcp_servers.forgetful import Answer, ForgetfulShop
from tests.support.wait import wait_until

NOT_FOUND = '{"jsonrpc": "2.0", "id": null, "error": {"code": -32001, "message": "Session not found"}}'
GONE = (
    Answer(404, NOT_FOUND),
    Answer(404, "session not found", "text/plain"),
    Answer(404, "<html><h1>404 Not Found</h1></html>", "text/html"),
    Answer(404, "", ""),
)
ORDER_S = 0.02


class Ledger(list[str]):
    """Orders in a file, which outlives the process that accepted them."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    def append(self, order: str, /) -> None:
        with self._file.open("a") as file:
            file.write(f"{order}\n")
        super().append(order)
        time.sleep(ORDER_S)


class NotingShop(ForgetfulShop):
    """A shop that records the arrival and the answer of each request for an order."""

    def __init__(self, port: int, file: Path) -> None:
        super().__init__(port)
        self._file = file

    def app(self) -> Any:
        app = super().app()

        async def noting(scope: dict[str, Any], receive: Any, send: Any) -> None:
            sku = ""

            async def receiving() -> Any:
                nonlocal sku
                message = await receive()
                call = json.loads(message.get("body") or "{}") if message["type"] == "http.request" else {}
                if call.get("method") == "tools/call":
                    sku = call["params"]["arguments"]["sku"]
                    self._note(sku, 0)
                return message

            async def sending(event: dict[str, Any]) -> None:
                if sku and event["type"] == "http.response.start":
                    self._note(sku, event["status"])
                await send(event)

            await app(scope, receiving, sending)

        return noting

    def _note(self, sku: str, status: int) -> None:
        with self._file.open("a") as file:
            file.write(f"{sku} {status}\n")


class RestartedShop:
    """The shop's process, which can be replaced by another one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, kind: int) -> None:
        command = [sys.executable, "-m", __name__, str(self._folder), str(self.port), str(kind)]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        wait_until(self._listens, "the shop is open")

    def stop(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        self._process.wait(30)

    def orders(self) -> list[str]:
        file = self._folder / "orders"
        return file.read_text().splitlines() if file.exists() else []

    def answers(self) -> list[tuple[str, int]]:
        """Return the records of each order's requests: 0 at arrival, and the status when the answer began."""
        file = self._folder / "answers"
        lines = file.read_text().splitlines() if file.exists() else []
        return [(sku, int(status)) for sku, status in map(str.split, lines)]

    def _listens(self) -> bool:
        with socket.socket() as asking:
            return asking.connect_ex(("127.0.0.1", self.port)) == 0


def main() -> None:
    folder, port, kind = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    ends = threading.Event()

    def end(_number: int, _frame: object) -> None:
        ends.set()

    signal.signal(signal.SIGTERM, end)
    shop = NotingShop(port, folder / "answers")
    shop.gone = GONE[kind]
    shop.orders = Ledger(folder / "orders")
    parent = os.getppid()
    with shop:
        while not ends.wait(0.2) and os.getppid() == parent:
            pass


if __name__ == "__main__":
    main()
