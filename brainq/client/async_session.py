"""AsyncSession and AsyncFlag: one conversation's turns, on an event loop."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from brainq.client.async_handle import AsyncTurnHandle
from brainq.client.hold import Flag
from brainq.client.session import Session, WaitingTurn
from brainq.contracts.history import HistoryTurn
from brainq.contracts.hold import DEFAULT_HOLD_S, HoldPolicy
from brainq.contracts.mailbox import Receipt


class AsyncFlag:
    """See `Flag`. Releases itself as an asynchronous context manager."""

    def __init__(self, flag: Flag) -> None:
        self._flag = flag
        self.session_id = flag.session_id
        self.id = flag.id

    async def release(self) -> bool:
        """See `Flag.release`."""
        return await asyncio.to_thread(self._flag.release)

    ready = release

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.release()


class AsyncSession:
    """See `Session`. Each call takes a thread while it runs."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.session_id = session.session_id

    async def live(self) -> str | None:
        """See `Session.live`."""
        return await asyncio.to_thread(self._session.live)

    async def history(self, limit: int = 50, before: str | None = None) -> tuple[HistoryTurn, ...]:
        """See `Session.history`."""
        return await asyncio.to_thread(self._session.history, limit, before)

    async def waiting(self) -> tuple[WaitingTurn, ...]:
        """See `Session.waiting`."""
        return await asyncio.to_thread(self._session.waiting)

    async def drop(self, turn_id: str) -> bool:
        """See `Session.drop`."""
        return await asyncio.to_thread(self._session.drop, turn_id)

    async def pause(self) -> bool:
        """See `Session.pause`."""
        return await asyncio.to_thread(self._session.pause)

    async def resume(self) -> str | None:
        """See `Session.resume`."""
        return await asyncio.to_thread(self._session.resume)

    async def is_paused(self) -> bool:
        """See `Session.is_paused`; it asks Redis, so here it is a call."""
        return await asyncio.to_thread(lambda: self._session.is_paused)

    async def readiness(
        self, reason: str = "", timeout_s: float = DEFAULT_HOLD_S, on_timeout: HoldPolicy = "deny"
    ) -> AsyncFlag:
        """See `Session.readiness`."""
        return AsyncFlag(await asyncio.to_thread(self._session.readiness, reason, timeout_s, on_timeout))

    def flag(self, flag_id: str) -> AsyncFlag:
        """See `Session.flag`."""
        return AsyncFlag(self._session.flag(flag_id))

    async def unread_flags(self) -> tuple[str, ...]:
        """See `Session.unread_flags`."""
        return await asyncio.to_thread(self._session.unread_flags)

    async def steer(
        self,
        text: str,
        *,
        client_message_id: str | None = None,
        readiness: bool | None = None,
        expected_turn_id: str | None = None,
    ) -> Receipt:
        """See `Session.steer`."""
        return await asyncio.to_thread(
            self._session.steer,
            text,
            client_message_id=client_message_id,
            readiness=readiness,
            expected_turn_id=expected_turn_id,
        )

    async def interrupt(self, reason: str = "") -> str | None:
        """See `Session.interrupt`."""
        return await asyncio.to_thread(self._session.interrupt, reason)

    async def compact(self) -> AsyncTurnHandle:
        """See `Session.compact`."""
        return AsyncTurnHandle(await asyncio.to_thread(self._session.compact))
