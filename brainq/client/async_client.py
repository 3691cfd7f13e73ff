"""AsyncClient: the same for code that runs on an event loop."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self, Unpack

from brainq.brain import Brain
from brainq.client.async_handle import AsyncTurnHandle
from brainq.client.async_session import AsyncSession
from brainq.client.awaited import awaited
from brainq.client.client import Client
from brainq.client.options import SubmitOptions
from brainq.settings import Settings


class AsyncClient:
    """Submits turns from an event loop. Takes what Client takes, and is an asynchronous context manager.

    The verbs are Client's, awaited: `submit`, `handle`, `find`, `approvals`, `approval`, `approve`, `deny`, `edit`,
    `complete_call`, `fail_call`, `cancel`, `ping`, `close`. Each takes a thread while it runs. `session` asks nothing,
    and is not awaited.
    """

    def __init__(
        self, settings: Settings | None = None, brain: Brain | None = None, *, redis_url: str = ""
    ) -> None:
        self._sync = Client(settings, brain, redis_url=redis_url)

    async def submit(
        self, session_id: str, user_message: str, **options: Unpack[SubmitOptions]
    ) -> AsyncTurnHandle:
        """See `Client.submit` for the options."""
        return AsyncTurnHandle(
            await asyncio.to_thread(self._sync.submit, session_id, user_message, **options)
        )

    async def handle(self, turn_id: str) -> AsyncTurnHandle:
        """See `Client.handle`."""
        return AsyncTurnHandle(await asyncio.to_thread(self._sync.handle, turn_id))

    async def find(self, sought: str) -> AsyncTurnHandle:
        """See `Client.find`."""
        return AsyncTurnHandle(await asyncio.to_thread(self._sync.find, sought))

    def session(self, session_id: str) -> AsyncSession:
        """See `Client.session`."""
        return AsyncSession(self._sync.session(session_id))

    approvals = awaited(Client.approvals)
    approval = awaited(Client.approval)
    approve = awaited(Client.approve)
    deny = awaited(Client.deny)
    edit = awaited(Client.edit)
    complete_call = awaited(Client.complete_call)
    fail_call = awaited(Client.fail_call)
    cancel = awaited(Client.cancel)
    ping = awaited(Client.ping)
    close = awaited(Client.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
