"""AsyncSession and AsyncFlag: one conversation's turns, on an event loop."""

from __future__ import annotations

from types import TracebackType
from typing import Self, Unpack

from brainq.client.async_handle import AsyncTurnHandle
from brainq.client.awaited import awaited, looked_up
from brainq.client.client import Client
from brainq.client.hold import Flag
from brainq.client.options import SubmitOptions
from brainq.client.session import Session
from brainq.client.threads import Threads
from brainq.contracts.hold import DEFAULT_HOLD_S, HoldPolicy


class AsyncFlag:
    """See `Flag`. Releases itself as an asynchronous context manager."""

    def __init__(self, threads: Threads, flag: Flag) -> None:
        self._threads = threads
        self._sync = flag
        self.session_id = flag.session_id
        self.id = flag.id

    release = awaited(Flag.release)
    ready = release

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.release()


class AsyncSession:
    """A Session whose verbs are awaited; each takes a thread while it runs.

    They are `submit`, `live`, `history`, `waiting`, `drop`, `pause`, `resume`, `is_paused`, `why_paused`, `readiness`,
    `unread_flags`, `steer`, `interrupt`, `compact`; `flag` asks nothing, and is not awaited.
    """

    def __init__(self, client: Client, threads: Threads, session: Session) -> None:
        self._client = client
        self._threads = threads
        self._sync = session
        self.session_id = session.session_id

    async def submit(self, user_message: str, **options: Unpack[SubmitOptions]) -> AsyncTurnHandle:
        """See `Client.submit`."""
        handle = await self._threads.act(self._sync.submit, user_message, **options)
        return AsyncTurnHandle(self._client, self._threads, handle)

    live = looked_up(Session.live)
    history = looked_up(Session.history)
    waiting = looked_up(Session.waiting)
    drop = awaited(Session.drop)
    pause = awaited(Session.pause)
    resume = awaited(Session.resume)
    is_paused = looked_up(Session.is_paused)
    why_paused = looked_up(Session.why_paused)

    async def readiness(
        self, reason: str = "", *, expires_in_s: float = DEFAULT_HOLD_S, on_expiry: HoldPolicy = "deny"
    ) -> AsyncFlag:
        """See `Session.readiness`."""
        return AsyncFlag(
            self._threads,
            await self._threads.act(
                self._sync.readiness, reason, expires_in_s=expires_in_s, on_expiry=on_expiry
            ),
        )

    def flag(self, flag_id: str) -> AsyncFlag:
        """See `Session.flag`."""
        return AsyncFlag(self._threads, self._sync.flag(flag_id))

    unread_flags = looked_up(Session.unread_flags)
    steer = awaited(Session.steer)
    interrupt = awaited(Session.interrupt)

    async def compact(self, request_key: str | None = None) -> AsyncTurnHandle:
        """See `Session.compact`."""
        compacting = await self._threads.act(self._sync.compact, request_key)
        return AsyncTurnHandle(self._client, self._threads, compacting)
