"""Cuts all connections to a primary as soon as another server replaces it: one that Sentinel watches, or the one that
has a slot of a Redis Cluster.

After a planned failover of Sentinel the old primary still calls itself one, and accepts writes, until the sentinels
demote it some ten seconds later. Such writes are lost.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from typing import Any, NamedTuple
from weakref import WeakSet

Address = tuple[str, int]


class _Successor(NamedTuple):
    primary: Address
    until_s: float  # of time.monotonic


class PrimaryConnections:
    """The connections of this process to primaries, and the primaries that have been replaced.

    A service is what a primary is the primary of: the master's name in Sentinel, or a slot of a cluster.
    """

    def __init__(self) -> None:
        self._connections: WeakSet[Any] = WeakSet()
        self._replaced: dict[tuple[str, Address], _Successor] = {}
        self._lock = threading.Lock()

    def add(self, connection: Any) -> None:
        """Add a connection that has `host`, `port`, and redis-py's `_sock` and `connection_pool.service_name`."""
        with self._lock:
            self._connections.add(connection)

    def successor(self, service: str, address: Address) -> Address:
        """Return the present primary for one that a sentinel or a node may still name. Returns `address` itself if it
        was not replaced, or long enough ago."""
        found = self._replaced.get((service, address))
        return found.primary if found and time.monotonic() < found.until_s else address

    def replace(self, service: str, old: Address, new: Address, stale_for_s: float) -> int:
        """Cut the connections of a service to its old primary. Returns how many there were.

        stale_for_s   how long somebody may still name the old primary
        """
        successor = _Successor(new, time.monotonic() + stale_for_s)
        with self._lock:
            former = {was for of, was in self._replaced if of == service} | {old}
            others = {key: now for key, now in self._replaced.items() if key[0] != service}
            self._replaced = others | {(service, was): successor for was in former if was != new}
            cut = [one for one in self._connections if _leads_to(one, service, old)]
        for connection in cut:
            with suppress(OSError, AttributeError):  # it was closed meanwhile
                # Do not close it, because another thread may wait for its reply. A shutdown wakes that thread.
                connection._sock.shutdown(socket.SHUT_RDWR)
        return len(cut)


def _leads_to(connection: Any, service: str, primary: Address) -> bool:
    has_service = connection.connection_pool.service_name == service
    return has_service and (connection.host, connection.port) == primary and connection._sock is not None


PRIMARIES = PrimaryConnections()


class FollowsFailover:
    """A mixin for redis-py's SentinelManagedConnection, placed before it."""

    def connect_to(self: Any, address: Address) -> None:
        service = self.connection_pool.service_name
        primary = PRIMARIES.successor(service, address)
        PRIMARIES.add(self)
        super().connect_to(primary)  # type: ignore[misc]
        if PRIMARIES.successor(service, primary) != primary:  # the primary was replaced meanwhile
            self.disconnect()
            self.connect_to(primary)
