"""Rates of callers: how many requests a second are answered. Requests without a known token are counted by address.
Too many are answered with 429 and `Retry-After`.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping

from brainq.access import Caller
from brainq.gateway.edge.authentication import Authenticator
from brainq.gateway.edge.client_address import address_key
from brainq.gateway.edge.problems import RequestRejected

BURST_S = 10.0
MAX_NAMES = 10_000


class RateLimiter:
    """A token bucket a name: `a_second` requests in the long run, and ten seconds' worth of them after a pause.

    The newest MAX_NAMES names are stored; one that was dropped begins with a full bucket.
    """

    def __init__(self, a_second: float, now: Callable[[], float] = time.monotonic) -> None:
        self._a_second = a_second
        self._capacity = max(1.0, a_second * BURST_S)
        self._now = now
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> float:
        """0 when the request is granted; else the seconds until the next would be."""
        now = self._now()
        left, at = self._left.pop(name, (self._capacity, now))
        left = min(self._capacity, left + (now - at) * self._a_second)
        granted = left >= 1.0
        self._left[name] = (left - 1.0 if granted else left, now)
        if len(self._left) > MAX_NAMES:
            self._left.popitem(last=False)
        return 0.0 if granted else (1.0 - left) / self._a_second

    def give_back(self, name: str) -> None:
        """Do not count the last request of this name."""
        if name in self._left:
            left, at = self._left[name]
            self._left[name] = (min(self._capacity, left + 1.0), at)


class CallerRates:
    """Authenticates callers, each of whom has `a_second` requests, as has each address without a known caller."""

    def __init__(self, authenticator: Authenticator, a_second: float) -> None:
        self._authenticator = authenticator
        self._a_second = a_second
        self._by_caller = RateLimiter(a_second)
        self._by_address = RateLimiter(a_second)

    async def authenticate(self, address: str, headers: Mapping[str, str]) -> Caller:
        """The caller of a request from this address. Raises RequestRejected for an unknown one.

        Requests of unknown callers are counted by address first, for an invented token costs a query to SQL. A known
        caller is not rejected because of unknown ones at its address.
        """
        key = address_key(address)
        is_known = self._authenticator.is_known(headers)
        if not is_known:
            self._take(self._by_address, key)
        caller = await self._authenticator.authenticate(headers)
        if caller is None:
            if is_known:
                self._take(self._by_address, key)
            raise RequestRejected("unauthorized", "send `Authorization: Bearer TOKEN` with a token that is still valid")
        if not is_known:
            self._by_address.give_back(key)
        return caller

    def count(self, caller: Caller) -> None:
        """Count a request of a known caller. Raises RequestRejected for one too many."""
        self._take(self._by_caller, caller.counted_as)

    def _take(self, rate: RateLimiter, name: str) -> None:
        if wait_s := rate.take(name):
            raise RequestRejected(
                "too-many-requests",
                f"{self._a_second:g} requests a second are granted; try again later",
                retry_after_s=math.ceil(wait_s),
            )
