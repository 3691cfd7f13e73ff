"""The renewal of workers: a worker asks its keeper for a successor after a number of turns or above a memory limit.

A long-lived Python process grows: memory is fragmented, libraries have caches, and tools leak. Celery's own limits
(`worker_max_tasks_per_child`) only apply to its prefork pool. Here a keeper (`worker_keeper`) first starts the new
worker, and stops the old one warmly once the new one consumes.
"""

from __future__ import annotations

import os
import random
import resource
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from celery.signals import task_received

from brainq.runtime.observe.logs import logger
from brainq.runtime.settings.deployment import Settings

log = logger("brainq.tasks")
RENEW_FILE = "BRAINQ_RENEW_FILE"
"""The variable with the path of the file by which a kept worker requests its renewal. Its keeper sets it."""
LOOK_EVERY_S = 5.0
SPREAD = 0.1
"""The largest share by which a worker lowers its bounds, at random, so that workers started together are not renewed
together."""


@dataclass(frozen=True, slots=True)
class WorkerBounds:
    """The bounds of a worker's life. None means no bound.

    turns: the number of different turns that it took part in.
    rss_mb: its resident memory, in MB of 1,000,000 bytes.
    """

    turns: int | None = None
    rss_mb: float | None = None

    @property
    def are_set(self) -> bool:
        return self.turns is not None or self.rss_mb is not None

    def lowered(self, share: float) -> WorkerBounds:
        """Return the bounds lowered by `share`, from 0 to 1."""
        return WorkerBounds(
            None if self.turns is None else max(1, round(self.turns * (1 - share))),
            None if self.rss_mb is None else self.rss_mb * (1 - share),
        )

    def why_over(self, turns: int, rss_mb: float) -> str:
        """Return why a worker with this many turns and this much memory must be renewed, or "" if it need not."""
        if self.turns is not None and turns >= self.turns:
            return f"it has run {turns} turns"
        if self.rss_mb is not None and rss_mb >= self.rss_mb:
            return f"it uses {rss_mb:.0f} MB"
        return ""


def bounds_of(settings: Settings) -> WorkerBounds:
    return WorkerBounds(settings.max_turns_a_worker, settings.max_rss_mb)


def resident_mb() -> float:
    """Return this process's resident memory in MB, or its highest value so far if the system does not report the
    present one."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most / 1e6 if sys.platform == "darwin" else most * 1024 / 1e6
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class RenewalRequest:
    """The request of a kept worker for its renewal.

    It counts the worker's turns, and is written once a bound is reached.

    path: the file by which the request is made.
    """

    def __init__(
        self,
        bounds: WorkerBounds,
        path: Path,
        memory_mb: Callable[[], float] = resident_mb,
        share: Callable[[], float] = lambda: random.uniform(0, SPREAD),
    ) -> None:
        self._bounds = bounds.lowered(share())
        self._path = path
        self._memory_mb = memory_mb
        self._turns: set[str] = set()

    def watch(self, stopping: threading.Event, _worker: Any = None) -> None:
        """Check every 5 s until a bound is reached or the worker stops."""
        task_received.connect(self._count, weak=False)
        try:
            while not self.ask() and not stopping.wait(LOOK_EVERY_S):
                pass
        finally:
            task_received.disconnect(self._count)
        stopping.wait()

    def ask(self) -> bool:
        """Request a new worker if a bound is reached. Returns whether one is."""
        why = self._bounds.why_over(len(self._turns), self._memory_mb())
        if why:
            log.info("this worker has reached a bound; a new one will take over", why=why)
            self._path.write_text(why, encoding="utf-8")
        return bool(why)

    def _count(self, request: Any = None, **_: object) -> None:
        arguments = request.args
        if len(arguments) > 1:  # every task of brainq except a foreign submit has the session's id, then the turn's
            self._turns.add(str(arguments[1]))


def renewal_request(settings: Settings) -> RenewalRequest | None:
    """Return the request of a worker that has a keeper, or None without a keeper."""
    path = os.environ.get(RENEW_FILE)
    return RenewalRequest(bounds_of(settings), Path(path)) if path else None


def become_keeper(settings: Settings) -> None:
    """Replace this process by the keeper that starts it again, if it is a worker with bounds and without a keeper.

    The keeper has the same process id, so a supervisor takes it for its worker. In any other process this returns.
    """
    if not bounds_of(settings).are_set or RENEW_FILE in os.environ or "worker" not in sys.argv[1:]:
        return
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, "-m", "brainq.workers.tasks.worker_keeper", *sys.orig_argv])
