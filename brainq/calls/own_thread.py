"""A thread for one call, where the caller's own cannot be abandoned."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future

Abandon = Callable[[Callable[[], str]], None]
"""Answers for a call whose function keeps its thread: with what the given function, which settles the call, returns or
raises. Called from another thread."""


def in_own_thread(work: Callable[[Abandon], str]) -> str:
    """What `work` returns or raises; or what it was abandoned with, which it is given the means for."""
    answer: Future[str] = Future()
    run = contextvars.copy_context().run  # spans opened here stay the parents of those opened there

    def abandon(settle: Callable[[], str]) -> None:
        _answer(answer, settle)

    def serve() -> None:
        _answer(answer, lambda: work(abandon))

    threading.Thread(target=run, args=(serve,), name="brainq-call", daemon=True).start()
    return answer.result()


def _answer(answer: Future[str], work: Callable[[], str]) -> None:
    try:
        did = work()
    except BaseException as error:
        if not answer.done():
            answer.set_exception(error)
    else:
        if not answer.done():  # else it was abandoned, and has ended now
            answer.set_result(did)
