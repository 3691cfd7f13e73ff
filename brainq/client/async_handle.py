"""AsyncTurnHandle and AsyncHold: one submitted turn, on an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

from brainq.client.awaited import awaited
from brainq.client.handle import POLL_S, TurnHandle
from brainq.client.hold import Hold
from brainq.contracts.event import TurnEvent
from brainq.contracts.hold import DEFAULT_HOLD_S, HoldPolicy
from brainq.contracts.turn import TurnResult
from brainq.errors import ResultTimeout


class AsyncHold:
    """See `Hold`. Releases itself as an asynchronous context manager.

    async with await handle.hold("looking at the plan"):
        ...
    """

    def __init__(self, hold: Hold) -> None:
        self._sync = hold
        self.session_id = hold.session_id
        self.turn_id = hold.turn_id
        self.id = hold.id

    release = awaited(Hold.release)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.release()


class AsyncTurnHandle:
    """A TurnHandle whose waiting does not hold the event loop. Each wait takes a thread for up to 2 s at a time.

    The verbs are TurnHandle's, awaited: `result`, `events`, `snapshot`, `transcript`, `calls`, `cancel`, `steer`,
    `receipt`, `hold`, `holds`, `release`, `approvals`.
    """

    def __init__(self, handle: TurnHandle) -> None:
        self._sync = handle
        self.session_id = handle.session_id
        self.turn_id = handle.turn_id
        self.created = handle.created
        self.joined = handle.joined

    async def result(self, timeout_s: float | None = None) -> TurnResult:
        """See `TurnHandle.result`."""
        loop = asyncio.get_running_loop()
        until = None if timeout_s is None else loop.time() + timeout_s
        while True:
            left = POLL_S if until is None else min(POLL_S, until - loop.time())
            try:
                return await asyncio.to_thread(self._sync.result, max(0.0, left))
            except ResultTimeout:
                if until is not None and loop.time() >= until:
                    raise

    async def events(self, after: int = 0, timeout_s: float | None = None) -> AsyncIterator[TurnEvent]:
        """See `TurnHandle.events`."""
        loop = asyncio.get_running_loop()
        quiet_since = loop.time()
        while True:
            batch, over = await asyncio.to_thread(self._sync.next_events, after)
            for event in batch:
                yield event
            if over:
                return
            if batch:
                after, quiet_since = batch[-1].seq, loop.time()
            elif timeout_s is not None and loop.time() - quiet_since >= timeout_s:
                raise ResultTimeout(f"turn {self.turn_id!r}: no event for {timeout_s:g} s")

    snapshot = awaited(TurnHandle.snapshot)
    transcript = awaited(TurnHandle.transcript)
    calls = awaited(TurnHandle.calls)
    cancel = awaited(TurnHandle.cancel)
    steer = awaited(TurnHandle.steer)
    receipt = awaited(TurnHandle.receipt)

    async def hold(
        self, reason: str = "", timeout_s: float = DEFAULT_HOLD_S, on_timeout: HoldPolicy = "deny"
    ) -> AsyncHold:
        """See `TurnHandle.hold`."""
        return AsyncHold(await asyncio.to_thread(self._sync.hold, reason, timeout_s, on_timeout))

    holds = awaited(TurnHandle.holds)
    release = awaited(TurnHandle.release)
    approvals = awaited(TurnHandle.approvals)
