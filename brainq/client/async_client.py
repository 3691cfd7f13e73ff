"""AsyncClient: the same for code that runs on an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self, Unpack

from brainq.brain import Brain
from brainq.client.async_handle import AsyncTurnHandle
from brainq.client.async_session import AsyncSession
from brainq.client.client import Client
from brainq.client.options import Cancelled, SubmitOptions
from brainq.contracts.approval import Approval
from brainq.people.outside import Taken
from brainq.settings import Settings
from brainq.tools.errors import OutcomeUnknown, ToolError


class AsyncClient:
    """Submits turns from an event loop. Takes what Client takes."""

    def __init__(
        self, settings: Settings | None = None, brain: Brain | None = None, *, redis_url: str = ""
    ) -> None:
        self._client = Client(settings, brain, redis_url=redis_url)

    async def submit(
        self, session_id: str, user_message: str, **options: Unpack[SubmitOptions]
    ) -> AsyncTurnHandle:
        """See `Client.submit` for the options."""
        return AsyncTurnHandle(
            await asyncio.to_thread(self._client.submit, session_id, user_message, **options)
        )

    async def handle(self, turn_id: str) -> AsyncTurnHandle:
        """See `Client.handle`."""
        return AsyncTurnHandle(await asyncio.to_thread(self._client.handle, turn_id))

    async def find(self, sought: str) -> AsyncTurnHandle:
        """See `Client.find`."""
        return AsyncTurnHandle(await asyncio.to_thread(self._client.find, sought))

    def session(self, session_id: str) -> AsyncSession:
        """See `Client.session`."""
        return AsyncSession(self._client.session(session_id))

    async def approvals(
        self, session: str | None = None, state: str | None = "pending", limit: int = 50
    ) -> tuple[Approval, ...]:
        """See `Client.approvals`."""
        return await asyncio.to_thread(self._client.approvals, session, state, limit)

    async def approval(self, approval_id: str) -> Approval:
        """See `Client.approval`."""
        return await asyncio.to_thread(self._client.approval, approval_id)

    async def approve(self, approval_id: str, by: str = "", args_hash: str | None = None) -> Approval:
        """See `Client.approve`."""
        return await asyncio.to_thread(self._client.approve, approval_id, by, args_hash)

    async def deny(self, approval_id: str, reason: str = "", by: str = "") -> Approval:
        """See `Client.deny`."""
        return await asyncio.to_thread(self._client.deny, approval_id, reason, by)

    async def edit(self, approval_id: str, arguments: Mapping[str, Any], by: str = "") -> Approval:
        """See `Client.edit`."""
        return await asyncio.to_thread(self._client.edit, approval_id, arguments, by)

    async def complete_call(self, token: str, result: Any, *, partial: bool = False) -> Taken:
        """See `Client.complete_call`."""
        return await asyncio.to_thread(self._client.complete_call, token, result, partial=partial)

    async def fail_call(self, token: str, error: str | ToolError | OutcomeUnknown) -> Taken:
        """See `Client.fail_call`."""
        return await asyncio.to_thread(self._client.fail_call, token, error)

    async def cancel(self, session_id: str, turn_id: str, reason: str = "") -> Cancelled:
        """See `Client.cancel`."""
        return await asyncio.to_thread(self._client.cancel, session_id, turn_id, reason)

    async def ping(self) -> None:
        """See `Client.ping`."""
        await asyncio.to_thread(self._client.ping)

    async def close(self) -> None:
        """See `Client.close`."""
        await asyncio.to_thread(self._client.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
