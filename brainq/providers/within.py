"""Calls a function and comes back in time, whatever the function does.

A part of the user's own may hang. Its thread is then abandoned: it is a daemon, keeps no process from exiting, and
what it returns later is dropped. Unlike a tool's late write nothing waits for it, so there is no late report; a
part with effects of its own needs the step key for the run that follows.

Threads that came back in time wait for the next call: starting one costs more than most of what is called.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from queue import Empty, LifoQueue, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

MOST_IDLE = 32
_idle: LifoQueue[_Worker]


class _Worker:
    """One thread that does what it is handed, one thing after another."""

    def __init__(self) -> None:
        self.inbox: SimpleQueue[Callable[[], None]] = SimpleQueue()
        threading.Thread(target=self._work, name="brainq-within", daemon=True).start()

    def _work(self) -> None:
        while True:
            self.inbox.get()()
            if _idle.qsize() >= MOST_IDLE:
                return
            _idle.put(self)


_idle = LifoQueue()


def in_thread(work: Callable[[], None]) -> None:
    """Let a waiting thread, or a new one, do `work`, which must not raise."""
    try:
        worker = _idle.get_nowait()
    except Empty:
        worker = _Worker()
    worker.inbox.put(work)


def within(limit_s: float, what: str, function: Callable[[], T]) -> T:
    """What `function` returns or raises; raises TimeoutError naming `what` after `limit_s` seconds."""
    variables = contextvars.copy_context()  # spans opened here stay the parents of those opened there
    answered: SimpleQueue[tuple[bool, Any]] = SimpleQueue()

    def work() -> None:
        try:
            answered.put((True, variables.run(function)))
        except BaseException as error:  # SystemExit, too: it reaches the caller instead of ending this thread
            answered.put((False, error))

    in_thread(work)
    try:
        returned, found = answered.get(timeout=limit_s)
    except Empty:
        raise TimeoutError(f"{what} did not return within {limit_s:g} s and was abandoned") from None
    if returned:
        return found
    if isinstance(found, Exception):
        raise found
    raise RuntimeError(f"{what} raised {type(found).__name__}: {found}") from found
