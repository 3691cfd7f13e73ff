"""The threads of a worker's pool: at most so many, the last idle one is used first, and one may be given up.

`ThreadPoolExecutor` wakes its threads in turn, so that a hundred stay warm where three would do, and makes a
Future with a lock and a condition for each task, which nobody asks for anything.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable

logger = logging.getLogger(__name__)

_numbers = itertools.count(1)

Job = Callable[[], object]


class TaskThread(threading.Thread):
    """A daemon, so that one that was given up does not keep the process from exiting."""

    def __init__(self, threads: TaskThreads, job: Job) -> None:
        super().__init__(name=f"brainq-task-{next(_numbers)}", daemon=True)
        self.job: Job | None = job
        self._threads = threads
        self._called = threading.Lock()
        self._called.acquire()

    def call(self, job: Job | None) -> None:
        """Wake it when idle: for this job, or None to end."""
        self.job = job
        self._called.release()

    def wait_called(self) -> None:
        self._called.acquire()

    def run(self) -> None:
        try:
            while (job := self.job) is not None:
                try:
                    job()
                except BaseException:  # it must not cost the pool a thread
                    logger.exception("a task could not be ended properly")
                del job
                self.job = None  # an idle thread keeps nothing of its last job alive
                self._threads.await_next(self)
        finally:
            self._threads.drop(self, None)


class TaskThreads:
    """Runs each job in one of at most `limit` threads; jobs beyond that wait in order."""

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
        """How many run a job."""
        return len(self._all) - len(self._idle)

    def start(self, job: Job) -> None:
        """Run it now if a thread is idle or can be started, else when one is free.

        Raises RuntimeError once closed, and when the system gives not even a first thread.
        """
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
        except RuntimeError:  # the system gives no more threads: the ones there are have to do
            with self._lock:
                self._all.discard(thread)
                if not self._all:
                    raise
                self._waiting.append(job)

    def await_next(self, thread: TaskThread) -> None:
        """Called by a thread that is free: comes back with `thread.job` set, or None when it is to end."""
        with self._lock:
            if thread not in self._all or (self._closed and not self._waiting):
                return
            if self._waiting:
                thread.job = self._waiting.popleft()
                return
            self._idle.append(thread)
        thread.wait_called()

    def drop(self, thread: TaskThread, job: Job | None) -> None:
        """Count a thread no more, if `job` is what it runs: it was given up, and ends when its job does.

        With None: an idle thread that ends. The next waiting job gets a new thread in its stead.
        """
        with self._lock:
            if thread not in self._all or thread.job is not job:
                return
            self._all.discard(thread)
            self._fewer.notify_all()
            following = self._waiting.popleft() if self._waiting else None
        if following is not None:
            self.start(following)

    def close(self) -> None:
        """Take no more jobs, forget those that wait, and let the idle threads end."""
        with self._lock:
            self._closed = True
            self._waiting.clear()
            while self._idle:
                self._idle.pop().call(None)

    def join(self) -> None:
        """After `close`: come back when the jobs that ran have ended or were given up."""
        with self._lock:
            while self._all:
                self._fewer.wait()
