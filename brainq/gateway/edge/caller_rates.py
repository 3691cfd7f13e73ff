"""Limits on requests per second, by caller or, for a request without a known token, by address.

A request over the limit is answered with 429 and `Retry-After`.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping

from brainq.app.access import Caller
from brainq.gateway.edge.authentication import Authenticator
from brainq.gateway.edge.client_address import address_key
from brainq.gateway.edge.problems import RequestRejected

BURST_S = 10.0
MAX_NAMES = 10_000


class RateLimiter:
    """A token bucket for each name. It grants `a_second` requests on average, and ten seconds' worth after a pause.

    The MAX_NAMES most recent names are stored; a name that was dropped begins with a full bucket.
    """

    def __init__(self, a_second: float, now: Callable[[], float] = time.monotonic) -> None:
        self._a_second = a_second
        self._capacity = max(1.0, a_second * BURST_S)
        self._now = now
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> float:
        """Count one more request of this name. Returns 0 if it is within the limit, or else the seconds until the next
        one would be."""
        now = self._now()
        left, at = self._left.pop(name, (self._capacity, now))
        left = min(self._capacity, left + (now - at) * self._a_second)
        granted = left >= 1.0
        self._left[name] = (left - 1.0 if granted else left, now)
        if len(self._left) > MAX_NAMES:
            self._left.popitem(last=False)
        return 0.0 if granted else (1.0 - left) / self._a_second

    def give_back(self, name: str) -> None:
        """Uncount the last request of this name."""
        if name in self._left:
            left, at = self._left[name]
            self._left[name] = (min(self._capacity, left + 1.0), at)


class CallerRates:
    """Authentication within limits: each caller, and each address without a known caller, has `a_second` requests."""

    def __init__(self, authenticator: Authenticator, a_second: float) -> None:
        self._authenticator = authenticator
        self._a_second = a_second
        self._by_caller = RateLimiter(a_second)
        self._by_address = RateLimiter(a_second)

    async def authenticate(self, address: str, headers: Mapping[str, str]) -> Caller:
        """Return the caller of a request from this address. Raises RequestRejected if it is unknown.

        Requests of unknown callers are counted by address first, because an invented token costs an SQL query. A
        known caller is not rejected because of unknown callers at its address.
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
        """Count a request of a known caller. Raises RequestRejected if it is over the limit."""
        self._take(self._by_caller, caller.counted_as)

    def _take(self, rate: RateLimiter, name: str) -> None:
        if wait_s := rate.take(name):
            raise RequestRejected(
                "too-many-requests",
                f"the limit is {self._a_second:g} requests a second; try again after the seconds in Retry-After",
                retry_after_s=math.ceil(wait_s),
            )
