"""The worker's pool: Celery's `threads` with brainq's own threads.

The thread that became idle last runs next, and a thread can be abandoned. `worker_pool` names this pool, so a worker
without `-P` uses it.
"""

from __future__ import annotations

import atexit
import itertools
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from billiard.einfo import ExceptionInfo
from celery.concurrency.base import BasePool
from celery.exceptions import WorkerLostError

logger = logging.getLogger(__name__)
_numbers = itertools.count(1)
Job = Callable[[], object]
TaskOutcome = tuple[Any, Any, float | None]
"""(failed, value, runtime_s), as Celery's tracer passes it to a request."""


class TaskThread(threading.Thread):
    """A daemon thread, so that an abandoned one does not keep the process from exiting."""

    def __init__(self, threads: TaskThreads, job: Job) -> None:
        super().__init__(name=f"brainq-task-{next(_numbers)}", daemon=True)
        self.job: Job | None = job
        self._threads = threads
        self._called = threading.Lock()
        self._called.acquire()

    def call(self, job: Job | None) -> None:
        """Wake an idle thread for this job, or with None to end it."""
        self.job = job
        self._called.release()

    def wait_called(self) -> None:
        self._called.acquire()

    def run(self) -> None:
        try:
            while (job := self.job) is not None:
                try:
                    job()
                except BaseException:  # An error in a job must not cost the pool a thread.
                    logger.exception("a task could not be ended properly")
                del job
                self.job = None  # an idle thread keeps nothing of its last job alive
                self._threads.await_next(self)
        finally:
            self._threads.drop(self, None)


class TaskThreads:
    """Runs each job in one of at most `limit` threads, the last idle one first. Further jobs wait in order.

    `ThreadPoolExecutor` wakes its threads in turn, so a hundred stay warm when three would do. It also makes an unused
    Future with a lock and a condition for each task.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._fewer = threading.Condition(self._lock)
        self._all: set[TaskThread] = set()
        self._idle: list[TaskThread] = []
        self._waiting: deque[Job] = deque()
        self._closed = False

    def __len__(self) -> int:
        return len(self._all)

    @property
    def busy(self) -> int:
        """The number of threads that run a job."""
        return len(self._all) - len(self._idle)

    def start(self, job: Job) -> None:
        """Run a job now if a thread is idle or can be started, or else when one is free. Raises RuntimeError if closed,
        and if the system refuses even the first thread."""
        with self._lock:
            if self._closed:
                raise RuntimeError("the pool is closed")
            if self._idle:
                self._idle.pop().call(job)
                return
            if len(self._all) >= self.limit:
                self._waiting.append(job)
                return
            thread = TaskThread(self, job)
            self._all.add(thread)
        try:
            thread.start()
        except RuntimeError:  # the system refuses more threads, so the existing ones must do
            with self._lock:
                self._all.discard(thread)
                if not self._all:
                    raise
                self._waiting.append(job)

    def await_next(self, thread: TaskThread) -> None:
        """Wait in a free thread until `thread.job` is set, to a job or to None, which ends the thread."""
        with self._lock:
            if thread not in self._all or (self._closed and not self._waiting):
                return
            if self._waiting:
                thread.job = self._waiting.popleft()
                return
            self._idle.append(thread)
        thread.wait_called()

    def drop(self, thread: TaskThread, job: Job | None) -> None:
        """Stop counting a thread if it runs `job`: it was abandoned, and ends with its job. None stands for an idle
        thread that ends. The next waiting job gets a new thread."""
        with self._lock:
            if thread not in self._all or thread.job is not job:
                return
            self._all.discard(thread)
            self._fewer.notify_all()
            following = self._waiting.popleft() if self._waiting else None
        if following is not None:
            try:
                self.start(following)
            except RuntimeError as refused:
                give_up(following, refused)

    @property
    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Accept no more jobs, drop the waiting ones, and end the idle threads."""
        with self._lock:
            self._closed = True
            self._waiting.clear()
            while self._idle:
                self._idle.pop().call(None)

    def join(self) -> None:
        """Wait, after `close`, until the running jobs have ended or were abandoned."""
        with self._lock:
            while self._all:
                self._fewer.wait()


class TaskRun:
    """One task in a thread of the pool; see `current_run`.

    work: runs the task.
    end: reports the outcome to Celery: its events, its statistics, its ack.
    as_failed: the outcome of a task that raised this exception.
    """

    __slots__ = ("__weakref__", "_as_failed", "_end", "_thread", "_threads", "_work")

    def __init__(
        self,
        threads: TaskThreads,
        work: Callable[[], TaskOutcome],
        end: Callable[[TaskOutcome], object],
        as_failed: Callable[[BaseException], TaskOutcome],
    ) -> None:
        self._threads = threads
        self._work = work
        self._end = [end]  # removed by whoever ends it: the task, or the caller of `abandon`
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
        """End the task now, from another thread, while its function continues. Returns False if it had ended by itself.

        For Celery the task has succeeded, or failed with `failure`. A new thread replaces the old one, which ends with
        its function. The function can no longer change the outcome.
        """
        outcome = (0, "None", None) if failure is None else self._as_failed(failure)
        if not self._finish(outcome):
            return False
        if self._thread is not None:
            self._threads.drop(self._thread, self)
        return True

    def _finish(self, outcome: TaskOutcome) -> bool:
        try:
            end = self._end.pop()  # one atomic step: only one caller gets it
        except IndexError:
            return False
        try:
            end(outcome)
        except BaseException as failure:  # such as a MemoryError, which Celery raises before it acks
            logger.exception("a task could not be ended, and is ended as failed")
            self._end_as_failed(end, failure)
        return True

    def _end_as_failed(self, end: Callable[[TaskOutcome], object], failure: BaseException) -> None:
        """Ack a task whose end failed. It would otherwise keep its place, and a worker without places takes nothing."""
        try:
            end(self._as_failed(RuntimeError(f"the task could not be ended: {type(failure).__name__}")))
        except BaseException:
            logger.exception("a task could not be ended properly")


def give_up(job: Job, refused: RuntimeError) -> None:
    """End a job that no thread can run. Its message is acked, and a sweeper finds its work."""
    logger.error("no thread is left for a task, so another worker has to run it: %s", refused)
    if isinstance(job, TaskRun):
        job.abandon(refused)


def current_run() -> TaskRun | None:
    """Return the task that this thread runs, or None outside brainq's own pool, such as with `-P threads`."""
    thread = current_thread()
    job = thread.job if thread is not None else None
    return job if isinstance(job, TaskRun) else None


def current_thread() -> TaskThread | None:
    thread = threading.current_thread()
    return thread if isinstance(thread, TaskThread) else None


class TaskPool(BasePool):
    """A pool of at most `limit` concurrent tasks. A warm stop waits for the running tasks; after a cold stop, the exit
    of the process waits for them."""

    body_can_be_buffer = True
    signal_safe = False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._threads = TaskThreads(int(self.limit or 1))

    def on_apply(  # pyright: ignore[reportIncompatibleMethodOverride]  # the stub says None
        self,
        target: Callable[..., TaskOutcome],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        callback: Callable[[TaskOutcome], object] = bool,
        accept_callback: Callable[[int, float], object] | None = None,
        **_: Any,
    ) -> TaskRun:
        """Give a task to a thread. The task fails if the system refuses even the first thread. Raises RuntimeError once
        the pool has stopped."""
        work = partial(_run_task, accept_callback, target, args, kwargs or {})
        run = TaskRun(self._threads, work, callback, _failed_outcome)
        try:
            self._threads.start(run)
        except RuntimeError as refused:
            if self._threads.is_closed:
                raise
            give_up(run, refused)
        return run

    @property
    def busy(self) -> int:
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


def _run_task(
    accept: Callable[[int, float], object] | None,
    target: Callable[..., TaskOutcome],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> TaskOutcome:
    if accept is not None:
        accept(os.getpid(), time.monotonic())
    return target(*args, **kwargs)


def _failed_outcome(failure: BaseException) -> TaskOutcome:
    """Return the outcome of Celery's tracer for this exception. SystemExit and similar ones end only their thread."""
    try:
        if isinstance(failure, Exception):
            raise failure
        raise WorkerLostError(repr(failure)) from failure
    except Exception as raised:
        info: Any = ExceptionInfo()
        info.exception = raised  # not billiard's wrapping, because events show its repr
        return 1, info, None
