"""A worker says that it is alive, for `client.fleet()`: which pool it is of, and how many of its threads are busy."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from brainq.contracts.fleet import FleetWorker
from brainq.observe.logs import logger
from brainq.state.workers import RedisWorkers

log = logger("brainq.tasks")

EVERY_S = 3.0
BELIEVED_S = 10.0  # as long as a lease: of a worker that was killed it is known as soon as of what it held


class Presence:
    """One a worker. `workers` gives where it is said, once the worker is ready.

    flush   adds what the process counted to what all have, as often
    """

    def __init__(
        self,
        pool: str,
        owner: Callable[[], str],
        workers: Callable[[], RedisWorkers],
        flush: Callable[[], object] = lambda: None,
    ) -> None:
        self._flush = flush
        self._pool = pool
        self._owner = owner
        self._workers = workers
        self._ready = threading.Event()

    def begin(self) -> None:
        """The worker consumes."""
        self._ready.set()

    def tell(self, stopping: threading.Event, worker: Any) -> None:
        """Say so again and again until told to stop; then it is alive no more."""
        while not self._ready.wait(EVERY_S / 10):
            if stopping.is_set():
                return
        name = f"{self._pool}@{self._owner()}"  # of the process: two workers may have one name by mistake
        self._say(lambda told: told.forget_dead())
        while not stopping.is_set():
            pool = worker.pool
            seen = FleetWorker(
                name=str(worker.hostname),  # as Celery's own tools call it
                pool=self._pool,
                threads=int(pool.limit or 1),
                busy=int(getattr(pool, "busy", 0)),  # Celery's own `-P threads` does not say
            )
            self._say(lambda told, seen=seen: told.announce(name, seen, BELIEVED_S))
            self.flush()
            stopping.wait(EVERY_S)
        self._say(lambda told: told.withdraw(name))

    def flush(self) -> None:
        """What could not be added is added the next time."""
        try:
            self._flush()
        except Exception as away:
            log.debug("metrics were not flushed", why=type(away).__name__)

    def _say(self, what: Callable[[RedisWorkers], None]) -> None:
        try:
            what(self._workers())
        except Exception as away:
            # The sweeper and the beats say it where Redis is away.
            log.debug("a worker's presence was not told", why=type(away).__name__)
