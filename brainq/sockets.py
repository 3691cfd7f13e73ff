"""Options of TCP connections that have the kernel find one whose other end is gone, within some 20 s."""

from __future__ import annotations

import socket

_WANTED = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 3, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 10_000}

KEEPALIVE: dict[int, int] = {
    getattr(socket, name): value for name, value in _WANTED.items() if hasattr(socket, name)
}
"""For setsockopt at IPPROTO_TCP, as far as this system knows them."""
