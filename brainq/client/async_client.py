"""AsyncClient: the same for code that runs on an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Self, Unpack

from brainq.brains import GivenBrains
from brainq.client import moves
from brainq.client.async_handle import AsyncTurnHandle
from brainq.client.async_memories import AsyncMemories
from brainq.client.async_session import AsyncSession
from brainq.client.async_state import AsyncTurnRuntimeState
from brainq.client.awaited import awaited, looked_up
from brainq.client.client import Client
from brainq.client.inner import wiring_of
from brainq.client.options import SubmitOptions, TurnFilters
from brainq.client.paging import A_PAGE, pages_awaited
from brainq.client.threads import Threads
from brainq.contracts.approval import Approval
from brainq.contracts.listing import ListedSession, ListedTurn
from brainq.contracts.turn import TurnResult
from brainq.settings import Settings


class AsyncClient:
    """Submits turns from an event loop, and follows any number of them. One a process is enough.

    async with AsyncClient() as client:    # settings and brain from BRAINQ_..., and .env
        handle = await client.submit("session-1", "What is on my list?")
        async for event in handle.events():
            print(event.seq, event.kind)

    It takes what Client takes, and has its verbs, awaited: `submit`, `run`, `handle`, `find`, `turns`, `sessions`,
    `fleet`, `activity`, `metrics`, `approvals`, `approval`, `approve`, `deny`, `edit`, `complete_call`, `fail_call`,
    `cancel`,
    `schedule`, `schedules`, `find_schedule`, `pause_schedule`, `resume_schedule`, `remove_schedule`, `ping`,
    `close`. `session`, `state`, `memories` and `brains` ask nothing, and are not awaited.

    Turns are followed (`handle.events`, `handle.result`) without threads: one task with one blocking read reads them
    all. The other verbs are one quick round trip to SQL and Redis each, and SQL's drivers block: a verb takes a thread
    while it runs. Those that act and those that only look have 16 each, so that neither keeps the other waiting.
    """

    def __init__(
        self, settings: Settings | None = None, brain: GivenBrains | None = None, *, redis_url: str = ""
    ) -> None:
        self._sync = Client(settings, brain, redis_url=redis_url)
        self._wiring = wiring_of(self._sync)
        self._threads = Threads()

    @property
    def brains(self) -> tuple[str, ...]:
        """Their names; the first is the default's."""
        return self._sync.brains

    @property
    def memories(self) -> AsyncMemories:
        """See `Client.memories`."""
        return AsyncMemories(self._threads, self._sync.memories)

    async def submit(
        self, session_id: str, user_message: str, **options: Unpack[SubmitOptions]
    ) -> AsyncTurnHandle:
        """See `Client.submit` for the options."""
        sync = await self._threads.act(self._sync.submit, session_id, user_message, **options)
        return AsyncTurnHandle(self._sync, self._threads, sync)

    async def run(
        self,
        session_id: str,
        user_message: str,
        *,
        timeout_s: float | None = None,
        **options: Unpack[SubmitOptions],
    ) -> TurnResult:
        """See `Client.run`."""
        handle = await self.submit(session_id, user_message, **options)
        if await handle.wait(moves.SOMEBODYS_TURN, timeout_s) == "parked":
            seen, asked = await handle.snapshot(), await handle.approvals()
            raise moves.parked(handle.turn_id, handle.session_id, seen, asked)
        return await handle.result()

    async def handle(self, turn_id: str) -> AsyncTurnHandle:
        """See `Client.handle`."""
        sync = await self._threads.look(self._sync.handle, turn_id)
        return AsyncTurnHandle(self._sync, self._threads, sync)

    async def find(self, sought: str) -> AsyncTurnHandle:
        """See `Client.find`."""
        sync = await self._threads.look(self._sync.find, sought)
        return AsyncTurnHandle(self._sync, self._threads, sync)

    def session(self, session_id: str) -> AsyncSession:
        """See `Client.session`."""
        return AsyncSession(self._sync, self._threads, self._sync.session(session_id))

    def state(self, session_id: str, turn_id: str) -> AsyncTurnRuntimeState:
        """See `Client.state`."""
        return AsyncTurnRuntimeState(self._threads, self._sync.state(session_id, turn_id))

    def iterate_turns(self, **asked: Unpack[TurnFilters]) -> AsyncIterator[ListedTurn]:
        """See `Client.iterate_turns`; not awaited, but followed with `async for`."""
        return pages_awaited(
            lambda after: self.turns(limit=A_PAGE, after=after, **asked), lambda turn: turn.turn_id
        )

    def iterate_sessions(
        self, prefix: str = "", session_prefixes: Sequence[str] | None = None
    ) -> AsyncIterator[ListedSession]:
        """See `Client.iterate_sessions`; not awaited, but followed with `async for`."""
        return pages_awaited(
            lambda after: self.sessions(prefix, A_PAGE, session_prefixes, after=after),
            lambda session: session.last_turn.turn_id,
        )

    def iterate_approvals(
        self,
        session: str | None = None,
        state: str | None = "pending",
        session_prefixes: Sequence[str] | None = None,
    ) -> AsyncIterator[Approval]:
        """See `Client.iterate_approvals`; not awaited, but followed with `async for`."""
        return pages_awaited(
            lambda after: self.approvals(session, state, A_PAGE, session_prefixes, after=after),
            lambda approval: approval.id,
        )

    turns = looked_up(Client.turns)
    sessions = looked_up(Client.sessions)
    fleet = looked_up(Client.fleet)
    activity = looked_up(Client.activity)
    metrics = looked_up(Client.metrics)
    approvals = looked_up(Client.approvals)
    approval = looked_up(Client.approval)
    approve = awaited(Client.approve)
    deny = awaited(Client.deny)
    edit = awaited(Client.edit)
    complete_call = awaited(Client.complete_call)
    fail_call = awaited(Client.fail_call)
    cancel = awaited(Client.cancel)
    deliveries = looked_up(Client.deliveries)
    send_again = awaited(Client.send_again)
    begin_try = awaited(Client.begin_try)
    end_try = awaited(Client.end_try)
    schedule = awaited(Client.schedule)
    schedules = looked_up(Client.schedules)
    find_schedule = looked_up(Client.find_schedule)
    pause_schedule = awaited(Client.pause_schedule)
    resume_schedule = awaited(Client.resume_schedule)
    remove_schedule = awaited(Client.remove_schedule)
    ping = looked_up(Client.ping)

    async def close(self) -> None:
        """End what is followed on this loop, let verbs that run end, and close the connections.

        Who still follows a turn gets SetupError. Nothing is left behind.
        """
        await self._wiring.close_streams()
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._threads.close()
        self._sync.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
