"""A webhook's receiver: a real HTTP server that answers as ordered, and checks every signature."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class Received:
    """One request. `signed` means that its signature fits its body."""

    path: str
    headers: dict[str, str]
    body: bytes
    signed: bool

    @property
    def message_id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def content(self) -> Any:
        return json.loads(self.body)


class Receiver:
    """A receiver.

    `answer(n)` is the status of the n-th request, from 1. For a negative one it waits until `let_go` is set.
    """

    def __init__(self, answer: Callable[[int], int] = lambda _: 204) -> None:
        self.key = secrets.token_bytes(32)
        self.received: list[Received] = []
        self.let_go = threading.Event()
        self._answer = answer
        self._lock = threading.Lock()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                status = receiver.take(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
                if status < 0:
                    receiver.let_go.wait(30)
                    self.close_connection = True
                    return
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("location", "/elsewhere")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002 - its name there

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None: ...  # who asked was killed

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/hook?from=brainq"

    def setting(self, **more: object) -> str:
        """Return BRAINQ_WEBHOOKS with this receiver alone."""
        secret = "whsec_" + base64.b64encode(self.key).decode()
        return json.dumps([{"url": self.url, "secret": secret, **more}])

    def take(self, path: str, headers: dict[str, str], body: bytes) -> int:
        text = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.{body.decode()}"
        wanted = base64.b64encode(hmac.new(self.key, text.encode(), hashlib.sha256).digest()).decode()
        with self._lock:
            signed = headers["webhook-signature"].split(" ") == [f"v1,{wanted}"]
            self.received.append(Received(path, headers, body, signed))
            number = len(self.received)
        return self._answer(number)

    def close(self) -> None:
        self.let_go.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
