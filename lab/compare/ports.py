"""A free TCP port on loopback."""

from __future__ import annotations

import socket


def free_port() -> int:
    """Free a moment ago: what is started on it next should be started at once."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
