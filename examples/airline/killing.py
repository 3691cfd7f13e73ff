"""Killing workers while they work."""

from __future__ import annotations

import threading
from collections import Counter
from types import TracebackType
from typing import Self

from brainq.devserver.fleet import POOLS, Fleet


class Killer:
    """Kills a worker of each pool every `every_s` seconds (SIGKILL), the pools in turn, and starts another.

    Only a worker that was ready is killed and counted: `kills` says how many of each pool really were.
    """

    def __init__(self, fleet: Fleet, every_s: float) -> None:
        self.kills: Counter[str] = Counter()
        self._fleet = fleet
        self._pause_s = every_s / len(POOLS)
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
        number = 0
        try:
            while not self._stop.wait(self._pause_s):
                if self._kill_one_of(POOLS[number % len(POOLS)]):
                    number += 1
        except BaseException as failure:
            self._failure = failure

    def _kill_one_of(self, pool: str) -> bool:
        workers = self._fleet.of_pool(pool)
        worker = workers[self.kills[pool] % len(workers)]
        if not worker.is_ready:
            return False
        self._fleet.kill(worker)
        self.kills[pool] += 1
        self._fleet.launch(worker)
        return True
