"""Calls a function and comes back in time, whatever the function does.

A part of the user's own may hang. Its thread is then abandoned: it is a daemon, keeps no process from exiting, and
what it returns later is dropped. Unlike a tool's late write nothing waits for it, so there is no late report; a
part with effects of its own needs the step key for the run that follows.

Threads that came back in time wait for the next call: starting one costs more than most of what is called.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, LifoQueue, SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar("T")
MAX_IDLE_THREADS = 32
_idle: LifoQueue[_WorkerThread]


class _WorkerThread:
    """One thread that does what it is handed, one thing after another."""

    def __init__(self) -> None:
        self.inbox: SimpleQueue[Callable[[], None]] = SimpleQueue()
        threading.Thread(target=self._work, name="brainq-within", daemon=True).start()

    def _work(self) -> None:
        while True:
            self.inbox.get()()
            if _idle.qsize() >= MAX_IDLE_THREADS:
                return
            _idle.put(self)


_idle = LifoQueue()


def run_in_thread(work: Callable[[], None]) -> None:
    """Let a waiting thread, or a new one, do `work`, which must not raise."""
    try:
        worker = _idle.get_nowait()
    except Empty:
        worker = _WorkerThread()
    worker.inbox.put(work)


class ThreadCall(Generic[T]):
    """A function that runs in a thread of its own."""

    def __init__(self, what: str, function: Callable[[], T]) -> None:
        self._what = what
        self._began = time.monotonic()
        self._answered: SimpleQueue[tuple[bool, Any]] = SimpleQueue()
        self._answer: tuple[bool, Any] | None = None
        variables = contextvars.copy_context()  # spans opened here stay the parents of those opened there

        def work() -> None:
            try:
                self._answered.put((True, variables.run(function)))
            except BaseException as error:  # SystemExit, too: it reaches the caller instead of ending this thread
                self._answered.put((False, error))

        run_in_thread(work)

    def wait(self, wait_s: float) -> bool:
        """Whether it has ended, or does in the next `wait_s` seconds."""
        if self._answer is None:
            with suppress(Empty):
                self._answer = self._answered.get(timeout=max(0.0, wait_s))
        return self._answer is not None

    def result(self, limit_s: float) -> T:
        """What it returned or raised; raises TimeoutError when it has run for longer than `limit_s` seconds."""
        self.wait(self._began + limit_s - time.monotonic())
        if self._answer is None:
            raise TimeoutError(f"{self._what} did not return within {limit_s:g} s and was abandoned")
        returned, found = self._answer
        if returned:
            return found
        if isinstance(found, Exception):
            raise found
        raise RuntimeError(f"{self._what} raised {type(found).__name__}: {found}") from found


def call_within(limit_s: float, what: str, function: Callable[[], T]) -> T:
    """What `function` returns or raises; raises TimeoutError naming `what` after `limit_s` seconds."""
    return ThreadCall(what, function).result(limit_s)
