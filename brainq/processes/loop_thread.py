"""Event loops in threads of their own, and async functions where brainq calls plain ones.

Callbacks, prompts and approval rules of users may be async. The caller waits for them: it is a worker's thread, which a
plain function would keep as long.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class _Running(NamedTuple):
    pid: int
    loop: asyncio.AbstractEventLoop
    thread: threading.Thread


class LoopThread:
    """One event loop a process, in a daemon thread of this name. It starts at the first use, and again after a fork."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._running: _Running | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The running loop."""
        return self._started().loop

    @property
    def is_current(self) -> bool:
        """Whether the caller runs in the loop's thread."""
        return threading.current_thread() is self._started().thread

    def run(self, work: Coroutine[Any, Any, T], limit_s: float | None = None) -> T:
        """What `work` returns or raises; TimeoutError after `limit_s` seconds."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(limit_s)

    def stop(self) -> None:
        """Stop the loop, wait for its thread and cancel what still runs; the next use starts another."""
        with self._lock:
            running, self._running = self._running, None
        if running is None or running.pid != os.getpid():
            return
        loop = running.loop
        loop.call_soon_threadsafe(loop.stop)
        running.thread.join()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    def _started(self) -> _Running:
        running = self._running
        if running is not None and running.pid == os.getpid():
            return running
        with self._lock:
            if self._running is None or self._running.pid != os.getpid():
                loop = asyncio.new_event_loop()
                thread = threading.Thread(target=loop.run_forever, name=self._name, daemon=True)
                thread.start()
                self._running = _Running(os.getpid(), loop, thread)
            return self._running


_CALLBACKS = LoopThread("brainq-callbacks")


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
        if _CALLBACKS.is_current:
            raise RuntimeError("an async callback reached another one, which would wait for itself; await it instead")
        return _CALLBACKS.run(function(*args, **named))

    return waited
