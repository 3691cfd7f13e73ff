"""Killing workers while they work."""

from __future__ import annotations

import threading
import time
from collections import Counter
from types import TracebackType
from typing import Self

from brainq.app.devserver.local_fleet import POOLS, LocalFleet

LOOK_S = 0.05


class Killer:
    """Kills a worker of each pool every `every_s` seconds (SIGKILL) and starts another in its place.

    The time counts from when all workers of the pool were ready: on a slow machine, too, each of them gets to
    its work. The pools' turns are staggered. `kills` says how many of each pool really were killed.
    """

    def __init__(self, fleet: LocalFleet, every_s: float) -> None:
        self.kills: Counter[str] = Counter()
        self._fleet = fleet
        self._every_s = every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="killer", daemon=True)
        self._failure: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        if self._failure is not None and error is None:
            raise self._failure

    def _run(self) -> None:
        started = time.monotonic()
        due: dict[str, float | None] = {
            pool: started + self._every_s * (number + 1) / len(POOLS) for number, pool in enumerate(POOLS)
        }
        try:
            while not self._stop.wait(LOOK_S):
                for pool in POOLS:
                    at = due[pool]
                    if at is None:
                        due[pool] = time.monotonic() + self._every_s if self._is_whole(pool) else None
                    elif time.monotonic() >= at and self._is_whole(pool):
                        self._kill_one_of(pool)
                        due[pool] = None
        except BaseException as failure:
            self._failure = failure

    def _is_whole(self, pool: str) -> bool:
        return all(worker.is_ready for worker in self._fleet.of_pool(pool))

    def _kill_one_of(self, pool: str) -> None:
        workers = self._fleet.of_pool(pool)
        worker = workers[self.kills[pool] % len(workers)]
        self._fleet.kill(worker)
        self.kills[pool] += 1
        worker.launch()
