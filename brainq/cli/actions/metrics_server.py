"""The page of `brainq metrics --serve`: one path, on loopback, read at most once a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CACHE_S = 1.0
REQUEST_TIMEOUT_S = 10.0  # who sends half a request is not waited for
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def metrics_server(read: Callable[[], str], port: int) -> ThreadingHTTPServer:
    """Listens; `serve_forever` answers. Raises OSError where the port is taken."""
    page = _CachedText(read)

    class Handler(BaseHTTPRequestHandler):
        timeout = REQUEST_TIMEOUT_S

        def do_GET(self) -> None:
            if self.path.partition("?")[0] != "/metrics":
                self.send_error(404)
                return
            body = page.get().encode()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """A scrape every few seconds is no news."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def serve_metrics(read: Callable[[], str], port: int) -> None:
    """Serve until Ctrl+C."""
    with metrics_server(read, port) as server:
        server.serve_forever()


class _CachedText:
    """One reads at a time, and those who waited get what he read."""

    def __init__(self, read: Callable[[], str]) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._text = ""
        self._until = 0.0

    def get(self) -> str:
        with self._lock:
            if time.monotonic() >= self._until:
                self._text = self._read()
                self._until = time.monotonic() + CACHE_S
            return self._text
