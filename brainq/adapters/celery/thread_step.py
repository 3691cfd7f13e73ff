"""A thread that lives as long as its worker, for the sweeper."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from celery import bootsteps

from brainq.runtime.observe.threads import KeptThread

JOIN_TIMEOUT_S = 5.0


def thread_step(name: str, loop: Callable[[threading.Event, Any], object]) -> type[bootsteps.StartStopStep]:
    """Return a worker bootstep that runs `loop(stopping, worker)` in a kept thread. Add it to `app.steps["worker"]`.

    `loop` must return soon after `stopping` is set; the worker waits 5 s for it. A worker that cannot start the thread
    ends with an error.
    """

    class ThreadStep(bootsteps.StartStopStep):
        requires = ("celery.worker.components:Pool",)

        def __init__(self, parent: Any, **options: Any) -> None:
            super().__init__(parent, **options)
            self.thread: KeptThread | None = None

        def start(self, parent: Any) -> None:
            self.thread = KeptThread(f"brainq-{name}", partial(_run, loop, parent))
            self.thread.ensure()

        def stop(self, parent: Any) -> None:
            thread, self.thread = self.thread, None
            if thread is not None:
                thread.stop(JOIN_TIMEOUT_S)

        terminate = stop

    # Bootsteps are distinguished by this name.
    ThreadStep.name = cast("Any", f"brainq.{name}")
    return ThreadStep


def _run(loop: Callable[[threading.Event, Any], object], worker: Any, stopping: threading.Event) -> None:
    loop(stopping, worker)
