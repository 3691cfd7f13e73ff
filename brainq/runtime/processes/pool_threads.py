"""The threads of a process, counted by the pool whose work they do.

A process may serve several pools. Each pool keeps a budget of threads, so that slow reads never keep turns from
starting.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import MappingProxyType

NO_POOLS: Mapping[str, int] = MappingProxyType({})


class PoolThreads:
    """The threads that each pool of this process may use, and how many are in use.

    draining: the process starts no more work, because it is about to stop.
    """

    def __init__(self, threads: Mapping[str, int] = NO_POOLS) -> None:
        self.draining = False
        self._lock = threading.Lock()
        self._freed = threading.Condition(self._lock)
        self.serve(threads)

    def serve(self, threads: Mapping[str, int]) -> None:
        """Serve these pools, each with so many threads, of which none is in use."""
        with self._lock:
            self._free = dict(threads)
            self.pools = frozenset(threads)

    def try_take(self, pool: str) -> bool:
        """Take a thread of the pool if one is free, and return whether that is so."""
        with self._lock:
            if self._free.get(pool, 0) < 1:
                return False
            self._free[pool] -= 1
            return True

    def give_back(self, pool: str) -> None:
        """Give a thread of the pool back. A pool that is no longer served is left out."""
        with self._lock:
            if pool in self._free:
                self._free[pool] += 1
            self._freed.notify_all()

    def wait_free(self, pool: str, wait_s: float) -> bool:
        """Wait up to `wait_s` seconds until a thread of the pool is free. Does not take it."""
        with self._freed:
            return self._freed.wait_for(lambda: self._free.get(pool, 0) > 0, wait_s)


POOL_THREADS = PoolThreads()
"""Those of this process. It serves no pool until its worker says which."""
