"""Asking a Redis server whether it is there, with a socket and nothing else."""

from __future__ import annotations

import socket
from pathlib import Path


def ping(address: tuple[str, int] | Path, timeout_s: float = 1.0) -> bool:
    """Whether a server at `(host, port)` or on a unix socket path answers PING with PONG.

    A server that is still loading its data answers `-LOADING`, which counts as not there yet.
    """
    family = socket.AF_UNIX if isinstance(address, Path) else socket.AF_INET
    target = str(address) if isinstance(address, Path) else address
    try:
        with socket.socket(family, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout_s)
            connection.connect(target)
            connection.sendall(b"*1\r\n$4\r\nPING\r\n")
            return connection.recv(64).startswith(b"+PONG")
    except OSError:
        return False


def free_port() -> int:
    """A TCP port on loopback that was free a moment ago."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
