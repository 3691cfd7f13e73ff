"""Cuts an answer that is still coming at its deadline.

The HTTP library's read timeout starts anew with every piece it receives, so a server that drips bytes, or
stalls late, outlives any total. Shutting the socket down ends the read in whichever thread sits in it.
"""

from __future__ import annotations

import socket
import threading
from types import TracebackType
from typing import Any, Self


class Cutoff:
    """While entered, shuts `response`'s socket down after `after_s` seconds; `fired` tells whether it did.

    `response` is an httpx or httpx2 response. Without a socket behind it (a mock transport) nothing is cut.
    """

    def __init__(self, response: Any, after_s: float) -> None:
        self.fired = False
        self._lock = threading.Lock()
        self._socket = _socket_of(response)
        self._timer: threading.Timer | None = None
        self._arm(after_s)

    def shorten(self, after_s: float) -> None:
        """Cut `after_s` seconds from now instead."""
        if self._timer is not None:
            self._timer.cancel()
            self._arm(after_s)

    def _arm(self, after_s: float) -> None:
        if self._socket is None:
            return
        self._timer = threading.Timer(after_s, self._cut)
        self._timer.daemon = True
        self._timer.start()

    def _cut(self) -> None:
        with self._lock:
            if self._socket is None:
                return
            self.fired = True
            try:
                # Not SSLSocket.shutdown: it drops the TLS state under the thread that is reading.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
            except OSError:
                pass  # closed by the other side in the meantime

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:  # afterwards the connection may serve another call
            self._socket = None
        if self._timer is not None:
            self._timer.cancel()


def _socket_of(response: Any) -> socket.socket | None:
    stream = response.extensions.get("network_stream")
    found = None if stream is None else stream.get_extra_info("socket")
    return found if isinstance(found, socket.socket) else None
