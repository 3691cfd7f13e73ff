"""Connections to a primary that Sentinel watches: all are cut as soon as another server takes its place.

After a planned failover the old primary still calls itself one, and takes writes, until the sentinels demote it some
ten seconds later. What is written there is lost.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Any
from weakref import WeakSet

Address = tuple[str, int]


class PrimaryConnections:
    """This process's connections to primaries, and which primaries others have replaced."""

    def __init__(self) -> None:
        self._connections: WeakSet[Any] = WeakSet()
        self._replaced: dict[Address, Address] = {}
        self._lock = threading.Lock()

    def add(self, connection: Any) -> None:
        """`connection` has `host`, `port` and redis-py's `_sock`."""
        with self._lock:
            self._connections.add(connection)

    def successor(self, address: Address) -> Address:
        """The primary now, for one that a sentinel may still name; `address` itself where nobody replaced it."""
        return self._replaced.get(address, address)

    def replace(self, old: Address, new: Address) -> int:
        """Cut the connections to `old`. Returns how many there were."""
        with self._lock:
            self._replaced = {was: new for was in (*self._replaced, old) if was != new}
            cut = [one for one in self._connections if (one.host, one.port) == old and one._sock is not None]
        for connection in cut:
            with suppress(OSError, AttributeError):  # it was closed meanwhile
                # Not closed: another thread may wait for its reply, and learns of it like this.
                connection._sock.shutdown(socket.SHUT_RDWR)
        return len(cut)


PRIMARIES = PrimaryConnections()


class FollowsFailover:
    """Mixed into redis-py's SentinelManagedConnection, before it."""

    def connect_to(self: Any, address: Address) -> None:
        primary = PRIMARIES.successor(address)
        PRIMARIES.add(self)
        super().connect_to(primary)  # type: ignore[misc]
        if PRIMARIES.successor(primary) != primary:  # meanwhile
            self.disconnect()
            self.connect_to(primary)
