"""Whether a worker can work: it looks before it consumes, and stops consuming for as long as it cannot.

A worker that cannot reach Redis or SQL would take doorbells from others and fail them; each costs its turn a re-ring.
Its looks are a ping and a SELECT.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from brainq.devserver.local_fleet import mark_ready, mark_unready
from brainq.errors import SetupError, Unreachable
from brainq.observe.logs import logger

log = logger("brainq.tasks")
TICK_S = 0.2
CHECK_EVERY_S = 3.0
RECHECK_EVERY_S = 1.0  # while it cannot work
SETUP_EXIT = 6  # as the command line's Exit.SETUP: another attempt would find the same


class WorkerHealth:
    """One a worker; its consumer follows it.

    prepare   opens what the worker needs. Raises Unreachable while that is away, SetupError when it is wrong
    look      raises when something of it is away
    """

    def __init__(self, prepare: Callable[[], object], look: Callable[[], object]) -> None:
        self._prepare = prepare
        self._check = look
        self._doubted = threading.Event()
        self._on_change: Callable[[bool], None] | None = None
        self._fit = True
        self._draining = False

    def wait_fit(self, give_up: Callable[[], object]) -> None:
        """Come back once the worker can work. `give_up` is called now and then, and raises when it is to stop.

        Raises SystemExit(6) when waiting would not help, such as for a schema newer than this release.
        """
        while (reason := self._cannot_begin()) is not None:
            self._note(False, reason)
            for _ in range(round(RECHECK_EVERY_S / TICK_S)):
                time.sleep(TICK_S)
                give_up()
        self._note(True, "")

    def follow(self, tell: Callable[[bool], None]) -> None:
        """From now on, `tell` is called with what changes: True when the worker can work again."""
        self._on_change = tell

    def drain(self) -> None:
        """The worker was asked to stop: it is not ready again, whatever it finds."""
        self._draining = True
        mark_unready()

    @property
    def is_draining(self) -> bool:
        return self._draining

    def mark_ready(self) -> None:
        """It consumes, unless it drains."""
        mark_ready()
        if self._draining:
            mark_unready()

    def check_soon(self) -> None:
        """A task failed in a way that it should not: look at once."""
        self._doubted.set()

    def watch(self, stopping: threading.Event, _worker: Any = None) -> None:
        """Check again and again until it is stopped."""
        looked_at = 0.0
        while not stopping.wait(TICK_S):  # however many tasks fail
            age_s = time.monotonic() - looked_at
            due = self._doubted.is_set() or age_s > (CHECK_EVERY_S if self._fit else RECHECK_EVERY_S)
            if self._on_change is None or not due:
                continue
            self._doubted.clear()
            try:
                self._check()
            except Exception as failure:
                self._note(False, str(failure) if isinstance(failure, Unreachable) else type(failure).__name__)
            else:
                self._note(True, "")
            looked_at = time.monotonic()

    def _cannot_begin(self) -> str | None:
        try:
            self._prepare()
        except Unreachable as away:
            return str(away)
        except SetupError as wrong:
            log.error("this worker cannot work, and ends", why=str(wrong))
            raise SystemExit(SETUP_EXIT) from wrong
        return None

    def _note(self, fit: bool, reason: str) -> None:
        if fit == self._fit:
            return
        self._fit = fit
        if fit:
            log.warning("this worker can work again: it consumes")
            self.mark_ready()
        else:
            log.error("this worker cannot work: it consumes nothing until it can", why=reason)
            mark_unready()
        if self._on_change is not None:
            self._on_change(fit)
