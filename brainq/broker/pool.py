"""The worker's pool: Celery's `threads` with threads of our own, of which one may be given up.

Chosen by `worker_pool`, so a worker without `-P` has it. With `-P threads` it has Celery's: the same, at more
cost a task.
"""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from billiard.einfo import ExceptionInfo
from celery.concurrency.base import BasePool
from celery.exceptions import WorkerLostError

from brainq.broker.running import Outcome, TaskRun
from brainq.broker.threads import TaskThreads


class TaskPool(BasePool):
    """At most `limit` tasks at once. A stop waits for the running ones: a cold one as the process exits."""

    body_can_be_buffer = True
    signal_safe = False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._threads = TaskThreads(int(self.limit or 1))

    def on_apply(  # pyright: ignore[reportIncompatibleMethodOverride]  # the stub says None
        self,
        target: Callable[..., Outcome],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        callback: Callable[[Outcome], object] = bool,
        accept_callback: Callable[[int, float], object] | None = None,
        **_: Any,
    ) -> TaskRun:
        """Give a task to a thread. Raises RuntimeError once the pool has stopped."""
        work = partial(_work, accept_callback, target, args, kwargs or {})
        run = TaskRun(self._threads, work, callback, _as_failed)
        self._threads.start(run)
        return run

    @property
    def busy(self) -> int:
        """How many tasks run."""
        return self._threads.busy

    def on_start(self) -> None:
        atexit.register(self._threads.join)

    def on_stop(self) -> None:
        self._threads.close()
        self._threads.join()
        atexit.unregister(self._threads.join)

    def on_terminate(self) -> None:
        self._threads.close()

    def _get_info(self) -> dict[str, Any]:
        return {**super()._get_info(), "threads": len(self._threads)}


def _work(
    accept: Callable[[int, float], object] | None,
    target: Callable[..., Outcome],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Outcome:
    if accept is not None:
        accept(os.getpid(), time.monotonic())
    return target(*args, **kwargs)


def _as_failed(failure: BaseException) -> Outcome:
    """What Celery's tracer says of a task that raised this; SystemExit and its like lose their thread only."""
    try:
        if isinstance(failure, Exception):
            raise failure
        raise WorkerLostError(repr(failure)) from failure
    except Exception as raised:
        info: Any = ExceptionInfo()
        info.exception = raised  # not billiard's wrapping: events show its repr
        return 1, info, None
