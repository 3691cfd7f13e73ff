"""The task that runs in this thread, for whoever watches its time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from brainq.broker.threads import TaskThread, TaskThreads

Outcome = tuple[Any, Any, float | None]
"""(failed, value, runtime_s), as Celery's tracer gives it to a request."""


class TaskRun:
    """One task in a thread of the pool; see `current_run`.

    work       runs the task
    end        tells Celery the outcome: its events, its statistics, its ack
    as_failed  the outcome of a task that raised this
    """

    __slots__ = ("__weakref__", "_as_failed", "_end", "_thread", "_threads", "_work")

    def __init__(
        self,
        threads: TaskThreads,
        work: Callable[[], Outcome],
        end: Callable[[Outcome], object],
        as_failed: Callable[[BaseException], Outcome],
    ) -> None:
        self._threads = threads
        self._work = work
        self._end = [end]  # taken by the one who ends it: the task, or who gives up on it
        self._as_failed = as_failed
        self._thread: TaskThread | None = None

    def __call__(self) -> None:
        self._thread = current_thread()
        try:
            outcome = self._work()
        except BaseException as failure:
            outcome = self._as_failed(failure)
        self._finish(outcome)

    def abandon(self, failure: Exception | None = None) -> bool:
        """End the task now, from another thread, though its function goes on; False if it had ended by itself.

        For Celery the task has succeeded, or failed by `failure`. A new thread takes the old one's place, which
        ends when its function does; nothing that the function does or raises then changes the task.
        """
        outcome = (0, "None", None) if failure is None else self._as_failed(failure)
        if not self._finish(outcome):
            return False
        if self._thread is not None:
            self._threads.drop(self._thread, self)
        return True

    def _finish(self, outcome: Outcome) -> bool:
        try:
            end = self._end.pop()  # one atomic step: only one gets it
        except IndexError:
            return False
        end(outcome)
        return True


def current_run() -> TaskRun | None:
    """The task that this thread runs; None outside brainq's own pool, such as with `-P threads`."""
    thread = current_thread()
    job = thread.job if thread is not None else None
    return job if isinstance(job, TaskRun) else None


def current_thread() -> TaskThread | None:
    thread = threading.current_thread()
    return thread if isinstance(thread, TaskThread) else None
