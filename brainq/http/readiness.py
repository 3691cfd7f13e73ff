"""Whether the gateway could do anything: asked of Redis and SQL once for all who ask at the same time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from brainq.client.async_client import AsyncClient
from brainq.errors import SetupError, TurnNotFound
from brainq.http.who import NOBODY_YET, Who

KEPT_S = 1.0
"""How long an answer is believed: anybody may ask, without a token, as often as he likes."""


class Readiness:
    """`look` raises where something is missing; its answer, good or bad, is given for KEPT_S."""

    def __init__(
        self, look: Callable[[], Awaitable[None]], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._look = look
        self._now = now
        self._looked: asyncio.Future[None] | None = None
        self._at = 0.0

    async def require(self) -> None:
        """Raises what `look` raised."""
        looked = self._looked
        if looked is None or (looked.done() and self._now() - self._at >= KEPT_S):
            looked = self._looked = asyncio.ensure_future(self._look())
            looked.add_done_callback(self._note)
        await asyncio.shield(looked)

    def _note(self, looked: asyncio.Future[None]) -> None:
        self._at = self._now()


def readiness_of(client: AsyncClient, who: Who) -> Readiness:
    """Redis and SQL answer, and somebody could be let in."""

    async def look() -> None:
        await client.ping()
        try:
            await client.handle("readyz")
        except TurnNotFound:  # which SQL had to be asked for
            pass
        if not await who.is_anybody():
            raise SetupError(NOBODY_YET)

    return Readiness(look)
