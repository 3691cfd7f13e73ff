"""Cuts an answer that is still coming at its deadline.

The HTTP library's read timeout starts anew with every piece it receives, so a server that drips bytes, or
stalls late, outlives any total. Shutting the socket down ends the read in whichever thread sits in it.
"""

from __future__ import annotations

import socket
import threading
import time
from typing import Any


class DeadlineCut:
    """Shuts `response`'s socket down after `after_s` seconds, unless it is closed before; `fired` once it did.

    `move` gives it another time, as often as a stream has pieces: a later one costs no new timer.

    `response` is an httpx or httpx2 response. Without a socket behind it (a mock transport) nothing is cut.
    """

    def __init__(self, response: Any, after_s: float) -> None:
        self.fired = False
        self._lock = threading.Lock()
        self._socket = _socket_of(response)
        self._timer: threading.Timer | None = None
        self._rings_at = self._cuts_at = 0.0
        self._is_last = False
        with self._lock:
            self._arm(after_s)

    def move(self, after_s: float) -> None:
        """Cut `after_s` seconds from now instead."""
        with self._lock:
            if self._is_last:
                return
            self._cuts_at = time.monotonic() + after_s
            if self._cuts_at < self._rings_at:
                if self._timer is not None:
                    self._timer.cancel()
                self._arm(after_s)

    def finish_within(self, after_s: float) -> None:
        """Cut `after_s` seconds from now, whatever `move` says afterwards."""
        self.move(after_s)
        self._is_last = True

    def _arm(self, after_s: float) -> None:
        if self._socket is None:
            return
        self._rings_at = self._cuts_at = time.monotonic() + after_s
        self._timer = threading.Timer(after_s, self._cut_if_due)
        self._timer.daemon = True
        self._timer.start()

    def _cut_if_due(self) -> None:
        with self._lock:
            if self._socket is None or self.fired:
                return
            early_s = self._cuts_at - time.monotonic()
            if early_s > 0:
                self._arm(early_s)
                return
            self.fired = True
            try:
                # Not SSLSocket.shutdown: it drops the TLS state under the thread that is reading.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
            except OSError:
                pass  # closed by the other side in the meantime

    def close(self) -> None:
        """Cut nothing any more: the connection may serve another call."""
        with self._lock:
            self._socket = None
        if self._timer is not None:
            self._timer.cancel()


def _socket_of(response: Any) -> socket.socket | None:
    stream = response.extensions.get("network_stream")
    behind = None if stream is None else stream.get_extra_info("socket")
    return behind if isinstance(behind, socket.socket) else None
