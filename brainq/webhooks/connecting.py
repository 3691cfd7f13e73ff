"""A connection within one deadline: name, addresses and TLS together. http.client's own takes as long for each."""

from __future__ import annotations

import queue
import socket
import ssl
import threading
import time
from typing import Any

Address = tuple[Any, Any, int, str, Any]
"""As `socket.getaddrinfo` gives it."""


def connected(host: str, port: int, trust: ssl.SSLContext | None, within_s: float) -> socket.socket:
    """A socket to the first address that answers; of several each has its share of the time. `trust`: speak TLS.

    Raises TimeoutError, and any other OSError or ValueError of the last address that was tried.
    """
    until = time.monotonic() + within_s
    addresses = _addresses(host, port, within_s)
    failure: OSError = TimeoutError("no address answered in time")
    for nth, (family, kind, protocol, _, address) in enumerate(addresses):
        left_s = until - time.monotonic()
        if left_s <= 0:
            break
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(left_s / (len(addresses) - nth))
            sock.connect(address)
        except OSError as refused:
            sock.close()
            failure = refused
            continue
        return sock if trust is None else _secured(sock, host, trust, until)
    raise failure


def _secured(sock: socket.socket, host: str, trust: ssl.SSLContext, until: float) -> socket.socket:
    try:
        sock.settimeout(max(0.001, until - time.monotonic()))  # of the handshake as a whole
        return trust.wrap_socket(sock, server_hostname=host)
    except BaseException:
        sock.close()
        raise


def _addresses(host: str, port: int, within_s: float) -> list[Address]:
    """Looked up beside, because no lookup can be cut off; a resolver ends it at last."""
    found: queue.SimpleQueue[list[Address] | Exception] = queue.SimpleQueue()

    def look() -> None:
        try:
            found.put(list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)))
        except Exception as failure:
            found.put(failure)

    threading.Thread(target=look, name="webhook-name", daemon=True).start()
    try:
        said = found.get(timeout=within_s)
    except queue.Empty:
        raise TimeoutError("the name was not found in time") from None
    if isinstance(said, Exception):
        raise said
    return said
