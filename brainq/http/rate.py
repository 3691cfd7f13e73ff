"""How often each may ask: a bucket that fills again as time goes by."""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable

BURST_S = 10.0
MOST_KEPT = 10_000


class Rate:
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
        if len(self._left) > MOST_KEPT:
            self._left.popitem(last=False)
        return 0.0 if granted else (1.0 - left) / self._a_second

    def give_back(self, name: str) -> None:
        """The last request of this name is not to be counted."""
        if name in self._left:
            left, at = self._left[name]
            self._left[name] = (min(self._most, left + 1.0), at)


def counted_address(address: str) -> str:
    """Under what requests of an address are counted: one that has IPv6 has a whole network of them, its /64."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(found, ipaddress.IPv6Address):
        of_v4 = found.ipv4_mapped
        return str(of_v4 or ipaddress.ip_network((found, 64), strict=False))
    return str(found)
