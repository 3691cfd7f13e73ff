"""AsyncTurnHandle and AsyncHold: one submitted turn, on an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

from brainq.client.handle import POLL_S, TurnHandle
from brainq.client.hold import Hold
from brainq.client.options import Cancelled
from brainq.contracts.approval import Approval
from brainq.contracts.event import TurnEvent
from brainq.contracts.hold import DEFAULT_HOLD_S, HoldPolicy, StandingHold
from brainq.contracts.mailbox import Receipt
from brainq.contracts.message import Message
from brainq.contracts.snapshot import TurnSnapshot
from brainq.contracts.turn import TurnResult
from brainq.errors import ResultTimeout


class AsyncHold:
    """See `Hold`. Releases itself as an asynchronous context manager.

    async with await handle.hold("looking at the plan"):
        ...
    """

    def __init__(self, hold: Hold) -> None:
        self._hold = hold
        self.session_id = hold.session_id
        self.turn_id = hold.turn_id
        self.id = hold.id

    async def release(self) -> bool:
        """See `Hold.release`."""
        return await asyncio.to_thread(self._hold.release)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.release()


class AsyncTurnHandle:
    """A TurnHandle whose waiting does not hold the event loop. Each wait takes a thread for up to 2 s at a time."""

    def __init__(self, handle: TurnHandle) -> None:
        self._handle = handle
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

    async def transcript(self) -> tuple[Message, ...]:
        """See `TurnHandle.transcript`."""
        return await asyncio.to_thread(self._handle.transcript)

    async def cancel(self, reason: str = "") -> Cancelled:
        """See `TurnHandle.cancel`."""
        return await asyncio.to_thread(self._handle.cancel, reason)

    async def steer(
        self,
        text: str,
        *,
        client_message_id: str | None = None,
        readiness: bool | None = None,
        expected_turn_id: str | None = None,
    ) -> Receipt:
        """See `TurnHandle.steer`."""
        return await asyncio.to_thread(
            self._handle.steer,
            text,
            client_message_id=client_message_id,
            readiness=readiness,
            expected_turn_id=expected_turn_id,
        )

    async def receipt(self, client_message_id: str) -> Receipt:
        """See `TurnHandle.receipt`."""
        return await asyncio.to_thread(self._handle.receipt, client_message_id)

    async def hold(
        self, reason: str = "", timeout_s: float = DEFAULT_HOLD_S, on_timeout: HoldPolicy = "deny"
    ) -> AsyncHold:
        """See `TurnHandle.hold`."""
        return AsyncHold(await asyncio.to_thread(self._handle.hold, reason, timeout_s, on_timeout))

    async def holds(self) -> tuple[StandingHold, ...]:
        """See `TurnHandle.holds`."""
        return await asyncio.to_thread(self._handle.holds)

    async def release(self, hold_id: str) -> bool:
        """See `TurnHandle.release`."""
        return await asyncio.to_thread(self._handle.release, hold_id)

    async def approvals(self) -> tuple[Approval, ...]:
        """See `TurnHandle.approvals`."""
        return await asyncio.to_thread(self._handle.approvals)
