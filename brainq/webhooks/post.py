"""One POST, bounded in time. Redirects are not followed, and no answer is read beyond its status."""

from __future__ import annotations

import functools
import socket
import ssl
import threading
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from brainq.webhooks.connecting import connected

CONNECT_S = 5.0
ANSWER_S = 10.0
MOST_ERROR_CHARS = 300


def post(url: str, body: bytes, headers: Mapping[str, str], answer_s: float = ANSWER_S) -> str:
    """Send it; "" when it was taken (a status from 200 to 299), else why not. The connection has CONNECT_S in all.

    answer_s   from the connection on until the answer's head is there, also where that comes a byte at a time
    """
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    host = parts.hostname or ""
    trust = _trust() if parts.scheme == "https" else None
    connection = (
        HTTPConnection(host, parts.port)
        if trust is None
        else HTTPSConnection(host, parts.port, context=trust)
    )
    over = threading.Event()
    timer = threading.Timer(answer_s, lambda: (over.set(), _cut(connection)))
    timer.daemon = True
    is_connected = False
    try:
        connection.sock = connected(host, connection.port, trust, CONNECT_S)
        is_connected = True
        connection.sock.settimeout(answer_s)
        timer.start()
        connection.request("POST", path, body, dict(headers))
        status = connection.getresponse().status
    except (OSError, HTTPException, ValueError) as failure:
        if over.is_set() or isinstance(failure, TimeoutError):
            return (
                f"no answer within {answer_s:g} s"
                if is_connected
                else f"no connection within {CONNECT_S:g} s"
            )
        return f"{type(failure).__name__}: {failure}"[:MOST_ERROR_CHARS]
    finally:
        timer.cancel()
        connection.close()
    if 200 <= status < 300:
        return ""
    moved = "; redirects are not followed, give the url it leads to" if 300 <= status < 400 else ""
    return f"HTTP {status}{moved}"


@functools.cache
def _trust() -> ssl.SSLContext:
    return ssl.create_default_context()


def _cut(connection: HTTPConnection) -> None:
    """Whoever reads from it finds its end."""
    sock = connection.sock
    if sock is not None:
        try:
            socket.socket.shutdown(
                sock, socket.SHUT_RDWR
            )  # of the socket beneath TLS, which another thread uses
        except OSError:
            return
