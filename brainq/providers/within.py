"""Calls a function and comes back in time, whatever the function does.

A part of the user's own may hang. Its thread is then abandoned: it is a daemon, keeps no process from exiting, and
what it returns later is dropped. Unlike a tool's late write nothing waits for it, so there is no late report; a
part with effects of its own needs the step key for the run that follows.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def within(limit_s: float, what: str, function: Callable[[], T]) -> T:
    """What `function` returns or raises; raises TimeoutError naming `what` after `limit_s` seconds."""
    variables = contextvars.copy_context()  # spans opened here stay the parents of those opened there
    returned: list[T] = []
    raised: list[BaseException] = []

    def work() -> None:
        try:
            returned.append(variables.run(function))
        except BaseException as error:  # SystemExit, too: it reaches the caller instead of ending this thread
            raised.append(error)

    thread = threading.Thread(target=work, name=f"brainq-{what}", daemon=True)
    thread.start()
    thread.join(limit_s)
    if raised:
        error = raised[0]
        if isinstance(error, Exception):
            raise error
        raise RuntimeError(f"{what} raised {type(error).__name__}: {error}") from error
    if not returned:
        raise TimeoutError(f"{what} did not return within {limit_s:g} s and was abandoned")
    return returned[0]
