"""The threads of a process, counted by the pool whose work they do.

A process may serve several pools. Each pool keeps a budget of threads, so that slow reads never keep turns from
starting.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType

NO_POOLS: Mapping[str, int] = MappingProxyType({})


class PoolThreads:
    """The threads that each pool of this process may use, and how many are in use.

    draining: the process starts no more work, because it is about to stop.
    paused: the pools that take no work now, because the process lacks what they need.
    """

    def __init__(self, threads: Mapping[str, int] = NO_POOLS) -> None:
        self.draining = False
        self.paused: Collection[str] = ()
        self._lock = threading.Lock()
        self._freed = threading.Condition(self._lock)
        self._alarms: dict[str, Callable[[], object]] = {}
        self.serve(threads)

    def serve(self, threads: Mapping[str, int]) -> None:
        """Serve these pools, each with so many threads, of which none is in use."""
        with self._lock:
            self.limits = MappingProxyType(dict(threads))
            self._free = dict(threads)
            self.pools = frozenset(threads)
            self.draining = False
            self._alarms.clear()

    def try_take(self, pool: str) -> bool:
        """Take a thread of the pool if one is free, and return whether that is so."""
        with self._lock:
            if self._free.get(pool, 0) < 1:
                return False
            self._free[pool] -= 1
            return True

    def take_each(self, pools: Iterable[str], held: str) -> dict[str, int]:
        """Take a thread of each of these pools that has a free one, except of `held`, of which the caller has a thread.

        Returns the number of threads that remain free, for each pool of which the caller now has a thread.
        """
        left = dict[str, int]()
        with self._lock:
            for pool in pools:
                if pool == held:
                    left[pool] = max(0, self._free.get(pool, 0))
                elif (free := self._free.get(pool, 0)) > 0:
                    self._free[pool] = left[pool] = free - 1
        return left

    def give_back(self, pool: str) -> None:
        """Give a thread of the pool back, and call the alarm that waits for it. Ignores a pool that is not served, and
        a thread that was taken before the last `serve`, when all are free."""
        with self._lock:
            if pool in self._free:
                self._free[pool] = min(self._free[pool] + 1, self.limits[pool])
            self._freed.notify_all()
            alarm = self._alarms.pop(pool, None)
        if alarm is None:
            return
        try:
            alarm()
        except BaseException:
            self._alarms.setdefault(pool, alarm)  # nobody was woken, so the next thread that is free tries again
            raise

    def wait_free(self, pool: str, wait_s: float) -> bool:
        """Wait up to `wait_s` seconds until a thread of the pool is free. Does not take it."""
        with self._freed:
            return self._freed.wait_for(lambda: self._free.get(pool, 0) > 0, wait_s)

    def free(self, pool: str) -> int:
        """Return how many threads of the pool are free."""
        return max(0, self._free.get(pool, 0))

    def busy(self, pool: str) -> int:
        """Return how many threads of the pool are in use."""
        return self.limits.get(pool, 0) - self._free.get(pool, 0)

    def has_free(self, pool: str, alarm: Callable[[], object]) -> bool:
        """Return whether a thread of the pool is free.

        If not, `alarm` is called once, in the thread that gives one back.
        """
        with self._lock:
            if self._free.get(pool, 0) > 0:
                return True
            self._alarms[pool] = alarm
            return False

    def move(self, pool: str, to: str) -> None:
        """Count a thread of `pool` to another pool, even if none of its threads is free: one is about to be."""
        with self._lock:
            if to in self._free:
                self._free[to] -= 1
        self.give_back(pool)


POOL_THREADS = PoolThreads()
"""Those of this process. It serves no pool until its worker says which."""
