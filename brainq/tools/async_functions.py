"""Async functions of users where brainq calls plain ones: callbacks, prompts, approval rules.

They run on one event loop a process, in a thread of its own, and the caller waits: it is a worker's thread, which a
plain function would keep as long.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import threading
from collections.abc import Callable
from typing import Any

_lock = threading.Lock()
_loops: list[tuple[int, asyncio.AbstractEventLoop, threading.Thread]] = []


def is_async(function: object) -> bool:
    """True for `async def`, a partial of one, and an object whose `__call__` is one."""
    return any(
        inspect.iscoroutinefunction(thing)
        for thing in (function, getattr(function, "__call__", None))  # noqa: B004
    )


def as_sync(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself; an async one as a plain one, which returns what it returns and raises what it raises."""
    if not is_async(function):
        return function

    @functools.wraps(function, updated=())
    def waited(*args: Any, **named: Any) -> Any:
        loop, thread = _running_loop()
        if threading.current_thread() is thread:
            raise RuntimeError("an async callback reached another one, which would wait for itself; await it instead")
        return asyncio.run_coroutine_threadsafe(function(*args, **named), loop).result()

    return waited


def _running_loop() -> tuple[asyncio.AbstractEventLoop, threading.Thread]:
    """A child of a fork gets one of its own: threads do not come along."""
    with _lock:
        if not _loops or _loops[0][0] != os.getpid():
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, name="brainq-callbacks", daemon=True)
            thread.start()
            _loops[:] = [(os.getpid(), loop, thread)]
        return _loops[0][1:]
