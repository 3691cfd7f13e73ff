"""Threads: calls that return in time whatever the function does, and event loops that plain code can use.

A user's own code may hang. Its thread is then abandoned: it is a daemon, does not keep a process from exiting, and its
later result is dropped. Nothing waits for it, unlike for a tool's late write, so there is no late report. Code with its
own effects needs the step key for the next run.

Callbacks, prompts and approval rules of users may be async. The caller waits for them in its worker's thread, which a
plain function would keep for the same time.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Generic, NamedTuple, TypeVar

from brainq.runtime.observe.threads import KeptThread, start_thread

T = TypeVar("T")
MAX_IDLE_THREADS = 32
STOP_S = 10.0
# Threads that returned in time wait for the next call, because starting one costs more than most calls. The last idle
# one is used first; `append` and `pop` are one step each.
_idle: deque[_WorkerThread] = deque()


class _WorkerThread:
    """One thread that runs one piece of work after another."""

    def __init__(self) -> None:
        self.inbox: SimpleQueue[Callable[[], None]] = SimpleQueue()
        start_thread("brainq-within", self._work)

    def _work(self) -> None:
        while True:
            self.inbox.get()()
            if len(_idle) >= MAX_IDLE_THREADS:
                return
            _idle.append(self)


def run_in_thread(work: Callable[[], None]) -> None:
    """Run `work`, which must not raise, in a waiting thread or a new one."""
    try:
        worker = _idle.pop()
    except IndexError:
        worker = _WorkerThread()
    worker.inbox.put(work)


class ThreadCall(Generic[T]):
    """A function that runs in its own thread."""

    def __init__(self, what: str, function: Callable[[], T]) -> None:
        self._what = what
        self._began = time.monotonic()
        self._answered: SimpleQueue[tuple[bool, Any]] = SimpleQueue()
        self._answer: tuple[bool, Any] | None = None
        # Spans opened in the caller stay the parents of those opened in the thread.
        variables = contextvars.copy_context()

        def work() -> None:
            try:
                self._answered.put((True, variables.run(function)))
            except BaseException as error:  # SystemExit, too: it reaches the caller and does not end this thread
                self._answered.put((False, error))

        run_in_thread(work)

    def wait(self, wait_s: float) -> bool:
        """Return whether the call has ended, waiting for its end at most `wait_s` seconds."""
        if self._answer is None:
            with suppress(Empty):
                self._answer = self._answered.get(timeout=max(0.0, wait_s))
        return self._answer is not None

    def result(self, limit_s: float) -> T:
        """Return the call's result, or raise its exception. Raises TimeoutError if the call has run for longer than
        `limit_s` seconds."""
        self.wait(self._began + limit_s - time.monotonic())
        if self._answer is None:
            raise TimeoutError(f"{self._what} did not return within {limit_s:g} s and was abandoned")
        returned, found = self._answer
        if returned:
            return found
        raise as_exception(self._what, found)


class UserCodeExit(RuntimeError):
    """The error for user code that raised something other than an Exception, such as SystemExit, which is `raised`."""

    def __init__(self, what: str, raised: BaseException) -> None:
        super().__init__(f"{what} raised {type(raised).__name__}: {raised}")
        self.raised = raised


def is_shutdown(failure: BaseException) -> bool:
    """Return whether `failure` asks this process to end. Signals are handled in the main thread alone: in any other
    thread SystemExit and KeyboardInterrupt come from the code that runs there."""
    return isinstance(failure, SystemExit | KeyboardInterrupt) and threading.current_thread() is threading.main_thread()


def as_exception(what: str, failure: BaseException) -> Exception:
    """Return the exception of user code as an Exception: SystemExit and similar ones end the call, but no thread."""
    return failure if isinstance(failure, Exception) else UserCodeExit(what, failure)


def call_within(limit_s: float, what: str, function: Callable[[], T]) -> T:
    """Return the result of `function`, or raise its exception. Raises TimeoutError naming `what` after `limit_s`
    seconds."""
    return ThreadCall(what, function).result(limit_s)


class _Running(NamedTuple):
    pid: int
    loop: asyncio.AbstractEventLoop
    thread: KeptThread


class LoopThread:
    """One event loop for the process, in a daemon thread of this name. It starts at the first use, and again after a
    fork.

    asyncio ends `run_forever` when a callback raises SystemExit or KeyboardInterrupt. The loop then continues with its
    tasks.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._running: _Running | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._started().loop

    @property
    def is_current(self) -> bool:
        return self._started().thread.is_current

    def run(self, work: Coroutine[Any, Any, T], limit_s: float | None = None) -> T:
        """Return the result of `work`, or raise its exception, as an Exception. Raises TimeoutError after `limit_s`
        seconds."""
        return asyncio.run_coroutine_threadsafe(contained(self._name, work), self.loop).result(limit_s)

    def stop(self) -> None:
        """Stop the loop, wait for its thread and cancel what still runs. The next use starts another."""
        with self._lock:
            running, self._running = self._running, None
        if running is None or running.pid != os.getpid():
            return
        loop, thread = running.loop, running.thread
        thread.stopping.set()
        loop.call_soon_threadsafe(loop.stop)
        thread.stop(STOP_S)
        if thread.is_alive:
            return  # Something blocks the loop, so it is abandoned, like a function that hangs.
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
                thread = KeptThread(self._name, lambda _: loop.run_forever())
                try:
                    thread.ensure()
                except RuntimeError:
                    loop.close()
                    raise
                self._running = _Running(os.getpid(), loop, thread)
            return self._running


_CALLBACKS = LoopThread("brainq-callbacks")


def is_async(function: object) -> bool:
    """Return True for `async def`, a partial of one, and an object whose `__call__` is one."""
    return any(
        inspect.iscoroutinefunction(thing)
        for thing in (function, getattr(function, "__call__", None))  # noqa: B004
    )


async def contained(what: str, work: Coroutine[Any, Any, T]) -> T:
    """Await `work`. SystemExit would end the loop, and every other task with it, so it is raised as an Exception."""
    try:
        return await work
    except (asyncio.CancelledError, GeneratorExit):
        raise
    except BaseException as failure:
        raise as_exception(what, failure) from None


def as_sync(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a plain function with the effect of `function`, even if that is async. Its exceptions become an Exception,
    unless the process is to end."""
    name = getattr(function, "__qualname__", type(function).__name__)

    def awaited(*args: Any, **named: Any) -> Any:
        if _CALLBACKS.is_current:
            raise RuntimeError(
                "an async callback was called from another one on the same event loop, which would wait for itself; "
                "await it instead"
            )
        return _CALLBACKS.run(function(*args, **named))

    call = awaited if is_async(function) else function

    @functools.wraps(function, updated=())
    def plain(*args: Any, **named: Any) -> Any:
        try:
            return call(*args, **named)
        except BaseException as failure:
            if isinstance(failure, Exception) or is_shutdown(failure):
                raise
            raise as_exception(name, failure) from failure

    return plain
