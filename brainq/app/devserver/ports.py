"""Check ports with plain sockets."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

from brainq.errors import SetupError

ANSWER_S = 1.0


def ping(address: tuple[str, int] | Path) -> bool:
    """Return whether a server at `(host, port)` or on a unix socket path answers PING with PONG.

    A server that is still loading its data answers `-LOADING`, which counts as no answer.
    """
    family = socket.AF_UNIX if isinstance(address, Path) else socket.AF_INET
    target = str(address) if isinstance(address, Path) else address
    try:
        with socket.socket(family, socket.SOCK_STREAM) as connection:
            connection.settimeout(ANSWER_S)
            connection.connect(target)
            connection.sendall(b"*1\r\n$4\r\nPING\r\n")
            return connection.recv(64).startswith(b"+PONG")
    except OSError:
        return False


def free_port() -> int:
    """Return a TCP port on loopback that was free a moment ago."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def listener_at(address: str, port: int) -> socket.socket:
    """Return a listening socket on this port, or on a free port if it is in use. The socket reserves the port."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((address, port))
        bound.listen()  # one that is bound only, another may bind, too
    except OSError:
        bound.close()
        return listener_at(address, 0)
    return bound


def require_free_port(address: str, port: int, what: str, option: str) -> None:
    """Raise SetupError if `what` cannot listen on this port. `option` is the way to choose another port."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((address, port))
        except OSError as error:
            why = "is taken" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
            raise SetupError(
                f"{what} cannot listen on port {port} of {address}, which {why}; "
                f"stop the other program, or choose another port with {option}"
            ) from error
