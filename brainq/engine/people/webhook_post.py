"""One POST to a webhook, bounded in time: the name lookup, the connection and TLS share one deadline. Redirects are not
followed."""

from __future__ import annotations

import functools
import queue
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from brainq.runtime.observe.threads import start_thread
from brainq.runtime.processes.timers import TIMERS, Watch

Address = tuple[Any, Any, int, str, Any]
"""As `socket.getaddrinfo` gives it."""
CONNECT_S = 5.0
ANSWER_S = 10.0
MAX_ERROR_CHARS = 300


def open_connection(host: str, port: int, trust: ssl.SSLContext | None, within_s: float) -> socket.socket:
    """Return a socket to the first address that answers. Several addresses share the time. If `trust` is given, the
    connection uses TLS.

    Raises TimeoutError, or the OSError or ValueError of the last address that was tried.
    """
    until = time.monotonic() + within_s
    addresses = _addresses(host, port, within_s)
    failure: OSError = TimeoutError("no address answered in time")
    for nth, (family, kind, protocol, _, address) in enumerate(addresses):
        remaining_s = until - time.monotonic()
        if remaining_s <= 0:
            break
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(remaining_s / (len(addresses) - nth))
            sock.connect(address)
        except OSError as refused:
            sock.close()
            failure = refused
            continue
        return sock if trust is None else _start_tls(sock, host, trust, until)
    raise failure


def _start_tls(sock: socket.socket, host: str, trust: ssl.SSLContext, until: float) -> socket.socket:
    try:
        sock.settimeout(max(0.001, until - time.monotonic()))  # for the whole handshake
        return trust.wrap_socket(sock, server_hostname=host)
    except BaseException:
        sock.close()
        raise


def _addresses(host: str, port: int, within_s: float) -> list[Address]:
    """Look up the addresses in another thread, because a lookup cannot be cut off. The resolver ends it at last."""
    found: queue.SimpleQueue[list[Address] | Exception] = queue.SimpleQueue()

    def look() -> None:
        try:
            found.put(list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)))
        except Exception as failure:
            found.put(failure)

    start_thread("brainq-webhook-name", look)
    try:
        addresses = found.get(timeout=within_s)
    except queue.Empty:
        raise TimeoutError("the name was not found in time") from None
    if isinstance(addresses, Exception):
        raise addresses
    return addresses


def post(url: str, body: bytes, headers: Mapping[str, str], answer_s: float = ANSWER_S) -> str:
    """Send a body. Returns "" if it was accepted (a status from 200 to 299), otherwise the reason. Connecting may take
    CONNECT_S.

    answer_s   the time from the connection until the head of the answer has arrived
    """
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    host = parts.hostname or ""
    trust = _trust() if parts.scheme == "https" else None
    connection = HTTPConnection(host, parts.port) if trust is None else HTTPSConnection(host, parts.port, context=trust)
    over = threading.Event()
    timer = Watch(0.0, lambda: (over.set(), _shut_down(connection)))
    is_connected = False
    try:
        connection.sock = open_connection(host, connection.port, trust, CONNECT_S)
        is_connected = True
        connection.sock.settimeout(answer_s)
        timer.due = time.monotonic() + answer_s
        TIMERS.add(timer)
        connection.request("POST", path, body, dict(headers))
        status = connection.getresponse().status
    except (OSError, HTTPException, ValueError) as failure:
        if over.is_set() or isinstance(failure, TimeoutError):
            return f"no answer within {answer_s:g} s" if is_connected else f"no connection within {CONNECT_S:g} s"
        return f"{type(failure).__name__}: {failure}"[:MAX_ERROR_CHARS]
    finally:
        timer.act = None
        connection.close()
    if 200 <= status < 300:
        return ""
    moved = "; redirects are not followed, give the url it leads to" if 300 <= status < 400 else ""
    return f"HTTP {status}{moved}"


@functools.cache
def _trust() -> ssl.SSLContext:
    return ssl.create_default_context()


def _shut_down(connection: HTTPConnection) -> None:
    """Shut down the socket, so that a thread that reads from it ends."""
    sock = connection.sock
    if sock is not None:
        try:
            socket.socket.shutdown(sock, socket.SHUT_RDWR)  # of the socket beneath TLS, which another thread uses
        except OSError:
            return
