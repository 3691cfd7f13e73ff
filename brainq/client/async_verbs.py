"""Verbs on an event loop: the threads of an AsyncClient, and the asynchronous twin of each synchronous method."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from brainq.errors import SetupError

# The threads of an AsyncClient's verbs.

P = ParamSpec("P")

R = TypeVar("R")

THREADS_PER_KIND = 16  # of either kind


class VerbThreads:
    """Verbs are one quick round trip each to SQL and Redis, mostly to SQL, whose drivers block: they run in threads.

    Those that act (submit, steer, cancel ...) and those that only look (history, approvals ...) have threads of their
    own, so that a page that reads much, or 500 streams that ask SQL at once, keep no cancel waiting. Neither takes from
    the loop's default threads, which are few and belong to the program.
    """

    def __init__(self) -> None:
        self._acting = ThreadPoolExecutor(THREADS_PER_KIND, "brainq-acts")
        self._looking = ThreadPoolExecutor(THREADS_PER_KIND, "brainq-looks")
        self._is_closed = False

    async def run_action(self, verb: Callable[P, R], *args: P.args, **named: P.kwargs) -> R:
        """Run what changes something. Raises SetupError once closed."""
        return await self._run(self._acting, partial(verb, *args, **named))

    async def run_lookup(self, verb: Callable[P, R], *args: P.args, **named: P.kwargs) -> R:
        """Run what only looks. Raises SetupError once closed."""
        return await self._run(self._looking, partial(verb, *args, **named))

    def close(self) -> None:
        """Wait for what runs, which has time limits of its own. Blocks."""
        self._is_closed = True
        for pool in (self._acting, self._looking):
            pool.shutdown(wait=True)

    async def _run(self, pool: ThreadPoolExecutor, verb: Callable[[], R]) -> R:
        if self._is_closed:
            raise SetupError("this AsyncClient was closed; open another one")
        return await asyncio.get_running_loop().run_in_executor(pool, contextvars.copy_context().run, verb)


# The asynchronous twin of a verb: the same arguments and answer, in a thread while it runs.


def async_action(verb: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """`verb`, which changes something, of what the twin has as `_sync`, to be awaited in one of its `_threads`."""

    @wraps(verb)
    async def in_thread(twin: Any, *args: P.args, **named: P.kwargs) -> R:
        return await twin._threads.run_action(verb, twin._sync, *args, **named)

    return in_thread


def async_lookup(verb: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """The same of a verb that only looks."""

    @wraps(verb)
    async def in_thread(twin: Any, *args: P.args, **named: P.kwargs) -> R:
        return await twin._threads.run_lookup(verb, twin._sync, *args, **named)

    return in_thread
