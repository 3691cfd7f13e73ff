"""Limits of one gateway: requests a second of each caller, and open streams in all and of each caller."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from types import TracebackType

from brainq.gateway.edge.problems import RequestRejected

# How often each may ask: a bucket that fills again as time goes by.

BURST_S = 10.0

MAX_NAMES = 10_000


class RateLimiter:
    """`a_second` requests of each name in the long run, and ten seconds' worth of them at once after a pause.

    The names that asked last are kept; one that is forgotten begins with a full bucket.
    """

    def __init__(self, a_second: float, now: Callable[[], float] = time.monotonic) -> None:
        self._a_second = a_second
        self._most = max(1.0, a_second * BURST_S)
        self._now = now
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> float:
        """0 when the request is granted; else the seconds until the next would be."""
        now = self._now()
        left, at = self._left.pop(name, (self._most, now))
        left = min(self._most, left + (now - at) * self._a_second)
        granted = left >= 1.0
        self._left[name] = (left - 1.0 if granted else left, now)
        if len(self._left) > MAX_NAMES:
            self._left.popitem(last=False)
        return 0.0 if granted else (1.0 - left) / self._a_second

    def give_back(self, name: str) -> None:
        """The last request of this name is not to be counted."""
        if name in self._left:
            left, at = self._left[name]
            self._left[name] = (min(self._most, left + 1.0), at)


def address_key(address: str) -> str:
    """Under what requests of an address are counted: one that has IPv6 has a whole network of them, its /64."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(found, ipaddress.IPv6Address):
        of_v4 = found.ipv4_mapped
        return str(of_v4 or ipaddress.ip_network((found, 64), strict=False))
    return str(found)


# Which streams are open, and for whom: they are counted, and told when the gateway stops.


class StreamSlot:
    """One open stream, or one request that waits for a result. `stopping` is set when it has to end."""

    def __init__(self, streams: StreamLimiter, caller: str) -> None:
        self._streams = streams
        self.caller = caller
        self.stopping = asyncio.Event()

    def leave(self) -> None:
        """Make room. Doing it again changes nothing."""
        self._streams.left(self)

    def __enter__(self) -> StreamSlot:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()


class StreamLimiter:
    """At most `most` at once, and `most_a_caller` of one caller."""

    def __init__(self, most: int, most_a_caller: int) -> None:
        self._most = most
        self._most_a_caller = most_a_caller
        self._open: set[StreamSlot] = set()
        self._by_caller: Counter[str] = Counter()
        self._is_stopping = False

    def __len__(self) -> int:
        return len(self._open)

    def enter(self, caller: str) -> StreamSlot:
        """Take a place. Raises Refused where there is none."""
        self.require_running()
        if self._by_caller[caller] >= self._most_a_caller:
            raise RequestRejected(
                "too-many-streams",
                f"{self._most_a_caller} streams and waits are open for this caller; close one, then ask again",
            )
        if len(self._open) >= self._most:
            raise RequestRejected("streams-full", "ask again later, or ask another gateway")
        place = StreamSlot(self, caller)
        self._open.add(place)
        self._by_caller[caller] += 1
        return place

    def require_running(self) -> None:
        """Raise Refused when the gateway stops."""
        if self._is_stopping:
            raise RequestRejected("stopping", "the gateway stops; ask again, another one answers")

    def left(self, place: StreamSlot) -> None:
        if place not in self._open:
            return
        self._open.remove(place)
        self._by_caller[place.caller] -= 1
        if not self._by_caller[place.caller]:
            del self._by_caller[place.caller]

    def stop(self) -> None:
        """Tell each that it has to end, and let none begin."""
        self._is_stopping = True
        for place in self._open:
            place.stopping.set()
