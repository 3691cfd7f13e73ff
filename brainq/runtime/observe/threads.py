"""Background threads: the one way to start them, and to keep those that the process needs alive.

Python ends a thread at its first unhandled exception, while the process continues and looks healthy. The end of a
thread that is started here is logged at ERROR and counted, whatever the cause, SystemExit and MemoryError included. A
kept thread is then started again. `thread_problems` reports those that do not work at this moment. `make lint` refuses
every other way to start a thread.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable

from brainq.runtime.observe.logs import OutageLog, logger
from brainq.runtime.observe.metrics import catalogue as m
from brainq.runtime.observe.metrics.counters import COUNTERS

log = logger("brainq.threads")
FIRST_BACKOFF_S = 0.05
LONGEST_BACKOFF_S = 1.0
STEADY_S = 5.0  # a run of this length has recovered from the failure before it
REFUSED_PAUSES_S = (0.05, 0.15, 0.5)  # a limit of threads is often reached only briefly
_kept: weakref.WeakSet[Kept] = weakref.WeakSet()
_kept_lock = threading.Lock()
StartedThread = threading.Thread


def start_thread(name: str, work: Callable[[], object]) -> StartedThread:
    """Run `work` once in a daemon thread. Its exceptions are logged and counted.

    Raises RuntimeError if the system refuses the thread even after three pauses.
    """

    def run() -> None:
        try:
            work()
        except BaseException as failure:
            report_end(name, failure)

    thread = threading.Thread(target=run, name=name, daemon=True)
    try:
        _start(thread, REFUSED_PAUSES_S)
    except RuntimeError as refused:
        COUNTERS.add(m.THREAD_FAILURES, name)
        log.error("a thread could not be started", failure=refused, thread=name)
        raise
    return thread


def report_end(name: str, failure: BaseException) -> None:
    """Log and count the end of a thread or task that runs once."""
    COUNTERS.add(m.THREAD_FAILURES, name)
    log.error("a thread failed and has ended", failure=failure, thread=name)


def thread_problems() -> list[str]:
    """Return the problems of this process's kept threads and tasks, one sentence each.

    A thread whose start was refused is first tried again.
    """
    with _kept_lock:
        kept = sorted(_kept, key=lambda one: one.name)
    return [problem for one in kept if (problem := one.problem())]


class Kept:
    """The state of a kept thread or task: how often it has failed without a steady run in between."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._failures = 0
        self._why = ""
        self.began = 0.0
        self._outage = OutageLog(log, f"thread {name}")
        with _kept_lock:
            _kept.add(self)

    def problem(self) -> str:
        """Return why it does not work, or "". A single failure does not count, because the work was started again at
        once."""
        if self._failures < 2 or time.monotonic() - self.began > STEADY_S:
            return ""
        return f"thread {self.name} has ended {self._failures} times in a row, last by {self._why}"

    def failed(self, failure: BaseException) -> float:
        """Log and count a failure. Returns the seconds to wait before the next run."""
        why = type(failure).__name__
        if time.monotonic() - self.began > STEADY_S:
            self._failures = 0
        if self._failures == 0 or why != self._why:
            self._outage = OutageLog(log, f"thread {self.name}")  # Another failure is then logged at once, too.
        self._failures, self._why = self._failures + 1, why
        self._report(failure)
        return min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2 ** min(self._failures - 1, 8))

    def _report(self, failure: BaseException) -> None:
        COUNTERS.add(m.THREAD_FAILURES, self.name)
        self._outage.failed(failure)

    def forget_parent(self) -> None:
        """Forget the parent's failures after a fork. The child has no thread yet, and starts one when it needs it."""
        self._failures, self._why = 0, ""


class KeptThread(Kept):
    """A daemon thread that calls `work(stopping)` until `stop`. If that raises or returns before, it is called again.

    `ensure` starts it, also after a fork. It counts as started only after it has been. Several may share the event that
    stops them.
    """

    def __init__(
        self, name: str, work: Callable[[threading.Event], object], stopping: threading.Event | None = None
    ) -> None:
        self._work = work
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_wanted = False
        self.stopping = stopping or threading.Event()
        super().__init__(name)

    @property
    def is_alive(self) -> bool:
        thread = self._thread
        return thread is not None and thread.is_alive()

    @property
    def is_current(self) -> bool:
        return self._thread is threading.current_thread()

    def ensure(self) -> None:
        """Start the thread unless it is running or was stopped.

        Raises RuntimeError if the system refuses the thread even after three pauses. The next call tries again.
        """
        if not self.is_alive:
            self._start(REFUSED_PAUSES_S)

    def stop(self, join_s: float = 0.0) -> None:
        """Stop the thread, and wait for its end at most `join_s` seconds."""
        self.stopping.set()
        thread = self._thread
        if thread is not None and join_s:
            thread.join(join_s)

    def problem(self) -> str:
        if not self._is_wanted or self.stopping.is_set():
            return ""
        if not self.is_alive:
            try:
                self._start(())
            except RuntimeError as refused:
                return f"thread {self.name} could not be started: {refused}"
        return super().problem()

    def _start(self, pauses_s: tuple[float, ...]) -> None:
        self._is_wanted = True
        with self._lock:
            if self.stopping.is_set() or self.is_alive:
                return
            thread = threading.Thread(target=self._keep, name=self.name, daemon=True)
            try:
                _start(thread, pauses_s)
            except RuntimeError as refused:
                self._report(refused)
                raise
            self._thread = thread

    def _keep(self) -> None:
        while not self.stopping.is_set():
            try:
                self._run()
            except BaseException:  # The report itself may fail, such as by a MemoryError.
                time.sleep(FIRST_BACKOFF_S)

    def _run(self) -> None:
        self.began = time.monotonic()
        failure: BaseException
        try:
            self._work(self.stopping)
            failure = RuntimeError("the thread returned before it was stopped")
        except BaseException as raised:
            failure = raised
        if not self.stopping.is_set():
            self.stopping.wait(self.failed(failure))

    def forget_parent(self) -> None:
        super().forget_parent()
        self._lock, self._thread, self._is_wanted = threading.Lock(), None, False


def _start(thread: threading.Thread, pauses_s: tuple[float, ...]) -> None:
    for pause_s in pauses_s:
        try:
            return thread.start()
        except RuntimeError:
            time.sleep(pause_s)
    return thread.start()


def _forget_parent() -> None:
    global _kept_lock
    _kept_lock = threading.Lock()
    for one in list(_kept):
        one.forget_parent()


os.register_at_fork(after_in_child=_forget_parent)
