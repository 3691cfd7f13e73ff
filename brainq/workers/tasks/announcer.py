"""The announcements of a worker to the fleet, one for each of its pools."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from brainq.adapters.redis.fleet import RedisWorkers
from brainq.contracts.fleet import FleetWorker
from brainq.runtime.observe.logs import logger
from brainq.runtime.observe.threads import KeptThread
from brainq.runtime.processes.pool_threads import POOL_THREADS

log = logger("brainq.tasks")
ANNOUNCE_EVERY_S = 3.0
ANNOUNCE_AGAIN_S = 0.5  # while Redis is unavailable
PRESENT_FOR_S = 10.0  # as long as a lease, so a killed worker leaves the list when its leases expire


class WorkerAnnouncer:
    """A thread that reports for `client.fleet()` that a worker is alive, with the pools that it serves and their
    threads.

    workers: returns the registry to write to. It is called only after the worker is ready.
    flush: is called after each announcement. It adds the process's counters to the fleet's metrics, and renews the
        process's presence in Redis.
    """

    def __init__(
        self,
        pools: Sequence[str],
        owner: Callable[[], str],
        workers: Callable[[], RedisWorkers],
        flush: Callable[[], object] = lambda: None,
    ) -> None:
        self._flush = flush
        self._pools = tuple(pools)
        self._owner = owner
        self._workers = workers
        self._draining, self._soon = threading.Event(), threading.Event()
        self._heard_at = float("-inf")
        self._thread: KeptThread | None = None

    def begin(self, worker: Any) -> None:
        """Start announcing a worker, until `end` is called after its last task. `worker` is Celery's, with `hostname`
        and `pool`."""
        self._thread = self._thread or KeptThread("brainq-announcer", partial(self._announce, worker))
        self._thread.ensure()

    @property
    def is_heard(self) -> bool:
        """Return whether the worker was announced a short time ago, so that the fleet lists it."""
        return time.monotonic() - self._heard_at < PRESENT_FOR_S

    def drain(self) -> None:
        """Announce from now on that the worker accepts no more work."""
        self._draining.set()
        self._soon.set()

    def end(self) -> None:
        """Stop announcing, and remove the worker from the fleet's list."""
        if self._thread is not None:
            self._thread.stopping.set()
            self._soon.set()
            self._thread.stop(ANNOUNCE_EVERY_S)

    def _announce(self, worker: Any, stopping: threading.Event) -> None:
        # The key has the process, because two workers may have the same name by mistake.
        processes = {pool: f"{pool}@{self._owner()}" for pool in self._pools}
        self._write(lambda workers: workers.forget_dead())
        while not stopping.is_set():
            written = [self._write(self._report(processes[pool], worker, pool)) for pool in self._pools]
            if all(written):
                self._heard_at = time.monotonic()
            self.flush()
            self._soon.wait(ANNOUNCE_EVERY_S if self.is_heard else ANNOUNCE_AGAIN_S)
            self._soon.clear()
        for process in processes.values():
            self._write(partial(RedisWorkers.withdraw, process=process))

    def _report(self, process: str, worker: Any, pool: str) -> Callable[[RedisWorkers], None]:
        """Return the announcement of one pool of a worker."""
        threads = worker.pool
        is_alone = len(self._pools) == 1
        seen = FleetWorker(
            name=str(worker.hostname),  # as in Celery's own tools
            pool=pool,
            threads=int(threads.limit or 1) if is_alone else POOL_THREADS.limits.get(pool, 1),
            # Celery's own `-P threads` does not know how many are busy, and with another broker than Redis no message
            # takes a thread of POOL_THREADS.
            busy=int(getattr(threads, "busy", 0)) if is_alone else POOL_THREADS.busy(pool),
        )
        return partial(
            RedisWorkers.announce, process=process, worker=seen, for_s=PRESENT_FOR_S, draining=self._draining.is_set()
        )

    def flush(self) -> None:
        """Call the given `flush`, and log a failure. Metrics that could not be added are added at the next call."""
        try:
            self._flush()
        except Exception as failure:
            log.debug("metrics were not flushed", why=type(failure).__name__)

    def _write(self, what: Callable[[RedisWorkers], None]) -> bool:
        """Return whether Redis took the announcement."""
        try:
            what(self._workers())
        except Exception as failure:
            # The sweeper and the lease renewals report that Redis is unavailable.
            log.debug("a worker's presence was not announced", why=type(failure).__name__)
            return False
        return True
