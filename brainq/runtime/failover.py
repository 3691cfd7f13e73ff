"""Cuts all connections to a primary that Sentinel watches as soon as another server replaces it.

After a planned failover the old primary still calls itself one, and accepts writes, until the sentinels demote it some
ten seconds later. Such writes are lost.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Any
from weakref import WeakSet

Address = tuple[str, int]


class PrimaryConnections:
    """The connections of this process to primaries, and the primaries that have been replaced."""

    def __init__(self) -> None:
        self._connections: WeakSet[Any] = WeakSet()
        self._replaced: dict[Address, Address] = {}
        self._lock = threading.Lock()

    def add(self, connection: Any) -> None:
        """Add a connection that has `host`, `port` and redis-py's `_sock`."""
        with self._lock:
            self._connections.add(connection)

    def successor(self, address: Address) -> Address:
        """Return the current primary for an address that a sentinel may still name. Returns `address` itself if it was
        not replaced."""
        return self._replaced.get(address, address)

    def replace(self, old: Address, new: Address) -> int:
        """Cut the connections to `old`. Returns how many there were."""
        with self._lock:
            self._replaced = {was: new for was in (*self._replaced, old) if was != new}
            cut = [one for one in self._connections if (one.host, one.port) == old and one._sock is not None]
        for connection in cut:
            with suppress(OSError, AttributeError):  # it was closed meanwhile
                # Do not close it, because another thread may wait for its reply. A shutdown wakes that thread.
                connection._sock.shutdown(socket.SHUT_RDWR)
        return len(cut)


PRIMARIES = PrimaryConnections()


class FollowsFailover:
    """A mixin for redis-py's SentinelManagedConnection, placed before it."""

    def connect_to(self: Any, address: Address) -> None:
        primary = PRIMARIES.successor(address)
        PRIMARIES.add(self)
        super().connect_to(primary)  # type: ignore[misc]
        if PRIMARIES.successor(primary) != primary:  # the primary was replaced meanwhile
            self.disconnect()
            self.connect_to(primary)
