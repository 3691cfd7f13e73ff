"""An answer that is asked for once for all who ask at the same time, and believed for a moment."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")

KEPT_S = 1.0


class Kept(Generic[T]):
    """`ask` is called when its last answer, good or bad, is older than KEPT_S."""

    def __init__(self, ask: Callable[[], Awaitable[T]], now: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._now = now
        self._asked: asyncio.Future[T] | None = None
        self._at = 0.0

    async def get(self) -> T:
        """What `ask` returned. Raises what it raised."""
        asked = self._asked
        if asked is None or (asked.done() and self._now() - self._at >= KEPT_S):
            asked = self._asked = asyncio.ensure_future(self._ask())
            asked.add_done_callback(self._note)
        return await asyncio.shield(asked)

    def _note(self, asked: asyncio.Future[T]) -> None:
        self._at = self._now()
