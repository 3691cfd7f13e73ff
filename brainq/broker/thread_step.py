"""A thread that lives as long as its worker, for the sweeper."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, cast

from celery import bootsteps

from brainq.observe.logs import OutageLog, logger

log = logger("brainq.broker")
RESTART_AFTER_S = 1.0
STEADY_S = 60.0
JOIN_TIMEOUT_S = 5.0


def thread_step(name: str, loop: Callable[[threading.Event, Any], None]) -> type[bootsteps.StartStopStep]:
    """A worker bootstep that runs `loop(stopping, worker)` in a daemon thread; add it to `app.steps["worker"]`.

    `loop` returns soon after `stopping` is set, within 5 s; a worker does not wait longer for it. If it
    raises or returns before, it is started again after a second: a worker without its sweeper would look
    healthy. What it raises again and again is logged once.
    """

    class ThreadStep(bootsteps.StartStopStep):
        requires = ("celery.worker.components:Pool",)

        def __init__(self, parent: Any, **options: Any) -> None:
            super().__init__(parent, **options)
            self.stopping = threading.Event()
            self.thread: threading.Thread | None = None

        def start(self, parent: Any) -> None:
            self.stopping.clear()
            self.thread = threading.Thread(target=self.run, args=(parent,), name=name, daemon=True)
            self.thread.start()

        def stop(self, parent: Any) -> None:
            self.stopping.set()
            thread, self.thread = self.thread, None
            if thread is not None:
                thread.join(JOIN_TIMEOUT_S)

        terminate = stop

        def run(self, worker: Any) -> None:
            outage = OutageLog(log, name)
            while not self.stopping.is_set():
                began = time.monotonic()
                try:
                    loop(self.stopping, worker)
                except Exception as failure:
                    if time.monotonic() - began > STEADY_S:
                        outage = OutageLog(log, name)  # what failed before that is long over
                    outage.failed(failure)
                self.stopping.wait(RESTART_AFTER_S)

    # Bootsteps are distinguished by this name.
    ThreadStep.name = cast("Any", f"brainq.{name}")
    return ThreadStep
