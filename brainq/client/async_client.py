"""AsyncClient, AsyncSession, AsyncMemories and AsyncTurnRuntimeState: the client on an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Self, Unpack

from brainq.client.async_handle import AsyncTurnHandle, VerbThreads, as_twin, async_action, async_lookup
from brainq.client.client import Client
from brainq.client.connection import connection_of
from brainq.client.memories import Memories
from brainq.client.options import BulkOptions, SubmitOptions, TurnFilters, takes_submit_options
from brainq.client.paging import PAGE_SIZE, iterate_pages_async
from brainq.client.runtime_state import TurnBudget, TurnRuntimeState
from brainq.client.session import Flag, Session
from brainq.client.spending import BudgetVerbs
from brainq.client.waiting import NEEDS_CALLER, turn_parked_error
from brainq.contracts.history import ListedSession, ListedTurn
from brainq.contracts.people import Approval
from brainq.contracts.turn import TurnResult
from brainq.engine.brain.brains import BrainsArgument
from brainq.runtime.settings.deployment import Settings

if TYPE_CHECKING:
    from brainq.contracts.bulk import BulkReport, BulkVerb

BULK_LOOK_S = 0.5


class AsyncMemories:
    """`Memories` with awaited verbs. Each verb occupies a thread while it runs."""

    def __init__(self, threads: VerbThreads, memories: Memories) -> None:
        self._threads = threads
        self._sync = memories

    list = async_lookup(Memories.list)
    forget = async_action(Memories.forget)
    forget_all = async_action(Memories.forget_all)


class AsyncBudgetVerbs:
    """`BudgetVerbs` with awaited verbs. Each verb occupies a thread while it runs."""

    def __init__(self, threads: VerbThreads, budgets: BudgetVerbs) -> None:
        self._threads = threads
        self._sync = budgets

    list = async_lookup(BudgetVerbs.list)
    set = async_action(BudgetVerbs.set)
    raise_by = async_action(BudgetVerbs.raise_by)


class AsyncTurnBudget:
    """A TurnBudget with async methods. `await budget.snapshot()` returns the values of its properties."""

    def __init__(self, threads: VerbThreads, budget: TurnBudget) -> None:
        self._threads = threads
        self._sync = budget
        self.session_id = budget.session_id
        self.turn_id = budget.turn_id

    tool_deadline = async_lookup(TurnBudget.tool_deadline)
    per_tool_remaining_s = async_lookup(TurnBudget.per_tool_remaining_s)
    claim_step = async_action(TurnBudget.claim_step)
    claim_tool_call = async_action(TurnBudget.claim_tool_call)
    claim_reflection = async_action(TurnBudget.claim_reflection)
    add_tokens = async_action(TurnBudget.add_tokens)
    snapshot = async_lookup(TurnBudget.snapshot)


class AsyncTurnRuntimeState:
    """A TurnRuntimeState with awaited verbs. `await state.snapshot()` has the values of its properties."""

    def __init__(self, threads: VerbThreads, state: TurnRuntimeState) -> None:
        self._threads = threads
        self._sync = state
        self.session_id = state.session_id
        self.turn_id = state.turn_id
        self.budget = AsyncTurnBudget(threads, state.budget)

    snapshot = async_lookup(TurnRuntimeState.snapshot)
    add_tokens = async_action(TurnRuntimeState.add_tokens)
    close_writes = async_action(TurnRuntimeState.close_writes)
    set_trace_running = async_action(TurnRuntimeState.set_trace_running)
    mark_trace_timed_out = async_action(TurnRuntimeState.mark_trace_timed_out)
    complete_trace = async_action(TurnRuntimeState.complete_trace)


class AsyncFlag:
    """A `Flag` with awaited verbs. As an asynchronous context manager it is released at the end."""

    def __init__(self, threads: VerbThreads, flag: Flag) -> None:
        self._threads = threads
        self._sync = flag
        self.session_id = flag.session_id
        self.id = flag.id

    release = async_action(Flag.release)
    ready = release

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.release()


class AsyncSession:
    """A Session with awaited verbs. Each verb occupies a thread while it runs. `flag` needs no service and is not
    awaited."""

    def __init__(self, threads: VerbThreads, session: Session) -> None:
        self._threads = threads
        self._sync = session
        self.session_id = session.session_id

    @takes_submit_options
    async def submit(self, user_message: str, **options: Unpack[SubmitOptions]) -> AsyncTurnHandle:
        """See `Client.submit`."""
        return AsyncTurnHandle(
            self._threads, await self._threads.run_action(self._sync.submit, user_message, **options)
        )

    live = async_lookup(Session.live)
    history = async_lookup(Session.history)
    waiting = async_lookup(Session.waiting)
    drop = async_action(Session.drop)
    pause = async_action(Session.pause)
    resume = async_action(Session.resume)
    is_paused = async_lookup(Session.is_paused)
    why_paused = async_lookup(Session.why_paused)

    readiness = as_twin(async_action(Session.readiness), AsyncFlag)

    def flag(self, flag_id: str) -> AsyncFlag:
        """See `Session.flag`."""
        return AsyncFlag(self._threads, self._sync.flag(flag_id))

    unread_flags = async_lookup(Session.unread_flags)
    steer = async_action(Session.steer)
    interrupt = async_action(Session.interrupt)
    compact = as_twin(async_action(Session.compact), AsyncTurnHandle)


class AsyncClient:
    """A client that submits turns from an event loop, and follows any number of them. One per process is enough.

    async with AsyncClient() as client:    # settings and brain from BRAINQ_..., and .env
        handle = await client.submit("session-1", "What is on my list?")
        async for event in handle.events():
            print(event.seq, event.kind)

    It takes the arguments of Client and has its verbs, awaited. `session`, `state`, `memories` and `brains` need no
    service and are not awaited; `iterate_turns` and the like are used with `async for`.

    Following turns (`handle.events`, `handle.result`) takes no threads: one task with one blocking read follows them
    all. Every other verb is a quick round trip to SQL and Redis. SQL drivers block, so a verb takes a thread while it
    runs. Verbs that write and verbs that read have 16 threads each, so that neither kind delays the other.
    """

    def __init__(
        self, settings: Settings | None = None, brain: BrainsArgument | None = None, *, redis_url: str = ""
    ) -> None:
        self._sync = Client(settings, brain, redis_url=redis_url)
        self._connection = connection_of(self._sync)
        self._threads = VerbThreads()

    @property
    def brains(self) -> tuple[str, ...]:
        """The names of the brains. The first is the default."""
        return self._sync.brains

    @property
    def memories(self) -> AsyncMemories:
        """See `Client.memories`."""
        return AsyncMemories(self._threads, self._sync.memories)

    @property
    def budgets(self) -> AsyncBudgetVerbs:
        """See `Client.budgets`."""
        return AsyncBudgetVerbs(self._threads, self._sync.budgets)

    @takes_submit_options
    async def submit(self, session_id: str, user_message: str, **options: Unpack[SubmitOptions]) -> AsyncTurnHandle:
        """See `Client.submit` for the options."""
        sync = await self._threads.run_action(self._sync.submit, session_id, user_message, **options)
        return AsyncTurnHandle(self._threads, sync)

    @takes_submit_options
    async def run(
        self, session_id: str, user_message: str, *, timeout_s: float | None = None, **options: Unpack[SubmitOptions]
    ) -> TurnResult:
        """See `Client.run`."""
        handle = await self.submit(session_id, user_message, **options)
        if await handle.wait(NEEDS_CALLER, timeout_s) == "parked":
            snapshot, approvals = await handle.snapshot(), await handle.approvals()
            raise turn_parked_error(handle.turn_id, handle.session_id, snapshot, approvals)
        return await handle.result()

    handle = as_twin(async_lookup(Client.handle), AsyncTurnHandle)
    find = as_twin(async_lookup(Client.find), AsyncTurnHandle)

    async def bulk(
        self,
        verb: BulkVerb,
        where: str,
        *,
        on_progress: Callable[[BulkReport], None] | None = None,
        **options: Unpack[BulkOptions],
    ) -> BulkReport:
        """See `Client.bulk`. Cancelling it stops the bulk; `on_progress` is called twice a second."""
        report = await self.start_bulk(verb, where, **options)
        try:
            while report.state == "running":
                await asyncio.sleep(BULK_LOOK_S)
                report = await self.bulk_report(report.id)
                if on_progress is not None:
                    on_progress(report)
        except asyncio.CancelledError:
            await asyncio.shield(self.stop_bulk(report.id))
            raise
        return report

    def session(self, session_id: str) -> AsyncSession:
        """See `Client.session`."""
        return AsyncSession(self._threads, self._sync.session(session_id))

    def state(self, session_id: str, turn_id: str) -> AsyncTurnRuntimeState:
        """See `Client.state`."""
        return AsyncTurnRuntimeState(self._threads, self._sync.state(session_id, turn_id))

    def iterate_turns(self, **filters: Unpack[TurnFilters]) -> AsyncIterator[ListedTurn]:
        """See `Client.iterate_turns`."""
        return iterate_pages_async(
            lambda after: self.turns(limit=PAGE_SIZE, after=after, **filters), lambda turn: turn.turn_id
        )

    def iterate_sessions(
        self, prefix: str = "", session_prefixes: Sequence[str] | None = None
    ) -> AsyncIterator[ListedSession]:
        """See `Client.iterate_sessions`."""
        return iterate_pages_async(
            lambda after: self.sessions(prefix, PAGE_SIZE, session_prefixes, after=after),
            lambda session: session.last_turn.turn_id,
        )

    def iterate_approvals(
        self, session: str | None = None, state: str | None = "pending", session_prefixes: Sequence[str] | None = None
    ) -> AsyncIterator[Approval]:
        """See `Client.iterate_approvals`."""
        return iterate_pages_async(
            lambda after: self.approvals(session, state, PAGE_SIZE, session_prefixes, after=after),
            lambda approval: approval.id,
        )

    turns = async_lookup(Client.turns)
    sessions = async_lookup(Client.sessions)
    fleet = async_lookup(Client.fleet)
    cells = async_lookup(Client.cells)
    activity = async_lookup(Client.activity)
    scale = async_lookup(Client.scale)
    spend = async_lookup(Client.spend)
    metrics = async_lookup(Client.metrics)
    approvals = async_lookup(Client.approvals)
    approval = async_lookup(Client.approval)
    approve = async_action(Client.approve)
    deny = async_action(Client.deny)
    edit = async_action(Client.edit)
    complete_call = async_action(Client.complete_call)
    fail_call = async_action(Client.fail_call)
    cancel = async_action(Client.cancel)
    deliveries = async_lookup(Client.deliveries)
    send_again = async_action(Client.send_again)
    begin_try = async_action(Client.begin_try)
    end_try = async_action(Client.end_try)
    schedule = async_action(Client.schedule)
    schedules = async_lookup(Client.schedules)
    find_schedule = async_lookup(Client.find_schedule)
    pause_schedule = async_action(Client.pause_schedule)
    resume_schedule = async_action(Client.resume_schedule)
    remove_schedule = async_action(Client.remove_schedule)
    start_bulk = async_action(Client.start_bulk)
    bulk_report = async_lookup(Client.bulk_report)
    stop_bulk = async_action(Client.stop_bulk)
    stop = async_action(Client.stop)
    lift = async_action(Client.lift)
    stops = async_lookup(Client.stops)
    versions = async_lookup(Client.versions)
    ramp_build = async_action(Client.ramp_build)
    release_build = async_action(Client.release_build)
    audit = async_lookup(Client.audit)
    ping = async_lookup(Client.ping)

    async def close(self) -> None:
        """Stop following turns on this loop, wait for running verbs, and close the connections.

        A task that still follows a turn gets SetupError.
        """
        for wiring in self._connection.cells.opened():
            await wiring.close_streams()
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._threads.close()
        self._sync.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
