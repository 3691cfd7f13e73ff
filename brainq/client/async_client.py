"""AsyncClient: the same for code that runs on an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Self

from brainq.brain import Brain
from brainq.client.client import Client
from brainq.client.handle import POLL_S, TurnHandle
from brainq.contracts.event import TurnEvent
from brainq.contracts.snapshot import TurnSnapshot
from brainq.contracts.turn import TurnResult
from brainq.errors import ResultTimeout
from brainq.settings import Settings


class AsyncTurnHandle:
    """A TurnHandle whose waiting does not hold the event loop. Each wait takes a thread for up to 2 s at a time."""

    def __init__(self, handle: TurnHandle) -> None:
        self._handle = handle
        self.session_id = handle.session_id
        self.turn_id = handle.turn_id
        self.created = handle.created

    async def result(self, timeout_s: float | None = None) -> TurnResult:
        """See `TurnHandle.result`."""
        loop = asyncio.get_running_loop()
        until = None if timeout_s is None else loop.time() + timeout_s
        while True:
            left = POLL_S if until is None else min(POLL_S, until - loop.time())
            try:
                return await asyncio.to_thread(self._handle.result, max(0.0, left))
            except ResultTimeout:
                if until is not None and loop.time() >= until:
                    raise

    async def events(self, after: int = 0, timeout_s: float | None = None) -> AsyncIterator[TurnEvent]:
        """See `TurnHandle.events`."""
        loop = asyncio.get_running_loop()
        quiet_since = loop.time()
        while True:
            batch, over = await asyncio.to_thread(self._handle.next_events, after)
            for event in batch:
                yield event
            if over:
                return
            if batch:
                after, quiet_since = batch[-1].seq, loop.time()
            elif timeout_s is not None and loop.time() - quiet_since >= timeout_s:
                raise ResultTimeout(f"turn {self.turn_id!r}: no event for {timeout_s:g} s")

    async def snapshot(self) -> TurnSnapshot | None:
        """See `TurnHandle.snapshot`."""
        return await asyncio.to_thread(self._handle.snapshot)

    async def cancel(self, reason: str = "") -> str:
        """See `TurnHandle.cancel`."""
        return await asyncio.to_thread(self._handle.cancel, reason)


class AsyncClient:
    """Submits turns from an event loop. Takes what Client takes."""

    def __init__(
        self, settings: Settings | None = None, brain: Brain | None = None, *, redis_url: str = ""
    ) -> None:
        self._client = Client(settings, brain, redis_url=redis_url)

    async def submit(self, session_id: str, user_message: str, **options: Any) -> AsyncTurnHandle:
        """See `Client.submit` for the options."""
        return AsyncTurnHandle(
            await asyncio.to_thread(self._client.submit, session_id, user_message, **options)
        )

    async def handle(self, turn_id: str) -> AsyncTurnHandle:
        """See `Client.handle`."""
        return AsyncTurnHandle(await asyncio.to_thread(self._client.handle, turn_id))

    async def close(self) -> None:
        await asyncio.to_thread(self._client.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
