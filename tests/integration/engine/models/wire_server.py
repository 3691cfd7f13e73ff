"""A model server that sends exactly what a test gives it, and counts connections."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Answer = Callable[["Exchange"], None]


class Exchange(BaseHTTPRequestHandler):
    """One connection. An answer is a function that writes to it."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]

    def setup(self) -> None:
        super().setup()
        self.server.owner.connections += 1

    def do_POST(self) -> None:
        owner = self.server.owner
        self.body: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["content-length"])))
        owner.bodies.append(self.body)
        owner.headers.append({name.lower(): value for name, value in self.headers.items()})
        try:
            (owner.answers.pop(0) if owner.answers else owner.otherwise)(self)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""

    def send_json(self, status: int, body: Any, **headers: str) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def begin(self, content_type: str = "text/event-stream") -> None:
        self.send_response(200)
        self.send_header("content-type", content_type)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def piece(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def event(self, data: Any) -> None:
        self.piece(b"data: %s\n\n" % (data if isinstance(data, str) else json.dumps(data)).encode())

    def finish(self) -> None:
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def hold(self, seconds: float) -> bool:
        """Wait, but no longer than the server lives; False once it is closing."""
        return not self.server.owner.closing.wait(seconds)


def _unexpected(exchange: Exchange) -> None:
    raise AssertionError(f"a request came that no answer was given for: {exchange.server.owner.bodies[-1]}")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    owner: WireServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are what these tests are about; anything else is shown."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class WireServer:
    """`answers` are used up one a request, then `otherwise` answers; `bodies` and `headers` are those of what came."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.otherwise: Answer = _unexpected
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.connections = 0
        self.closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), Exchange)
        self._server.owner = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
