"""The threads of an AsyncClient's verbs."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from brainq.errors import SetupError

P = ParamSpec("P")
R = TypeVar("R")

AT_ONCE = 16  # of either kind


class Threads:
    """Verbs are one quick round trip each to SQL and Redis, mostly to SQL, whose drivers block: they run in threads.

    Those that act (submit, steer, cancel ...) and those that only look (history, approvals ...) have threads of their
    own, so that a page that reads much, or 500 streams that ask SQL at once, keep no cancel waiting. Neither takes from
    the loop's default threads, which are few and belong to the program.
    """

    def __init__(self) -> None:
        self._acting = ThreadPoolExecutor(AT_ONCE, "brainq-acts")
        self._looking = ThreadPoolExecutor(AT_ONCE, "brainq-looks")
        self._is_closed = False

    async def act(self, verb: Callable[P, R], *args: P.args, **named: P.kwargs) -> R:
        """Run what changes something. Raises SetupError once closed."""
        return await self._run(self._acting, partial(verb, *args, **named))

    async def look(self, verb: Callable[P, R], *args: P.args, **named: P.kwargs) -> R:
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
