"""AsyncTurnHandle and AsyncHold for event loops, and the threads in which awaited verbs run."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial, wraps
from math import isinf
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Self, TypeVar

from brainq.adapters.redis.events import Follower, NoEvents
from brainq.adapters.redis.stream_reader import StreamReader
from brainq.app.wiring import Wiring
from brainq.client import waiting
from brainq.client.connection import cells_of, translate_unreachable, wiring_of
from brainq.client.following import iterate_text_async
from brainq.client.handle import ENDED_OR_PARKED, Hold, TurnHandle
from brainq.client.options import WaitFor
from brainq.contracts.turn import TurnResult
from brainq.errors import SetupError, TenantMoving, TurnNotFound

if TYPE_CHECKING:
    from brainq.contracts.typed_events import Event

R = TypeVar("R")
T = TypeVar("T")
P = ParamSpec("P")
THREADS_PER_KIND = 16  # THREADS_PER_KIND applies to each kind.


class VerbThreads:
    """The threads in which verbs run, because SQL drivers block.

    Verbs that write (submit, steer, cancel ...) and verbs that read (history, approvals ...) have separate threads, so
    that a page with many reads, or 500 streams that query SQL at once, do not delay a cancel. The loop's default
    threads are few and belong to the program, so they are not used.
    """

    def __init__(self) -> None:
        self._acting = ThreadPoolExecutor(THREADS_PER_KIND, "brainq-acts")
        self._looking = ThreadPoolExecutor(THREADS_PER_KIND, "brainq-looks")
        self._is_closed = False

    async def run_action(self, verb: Callable[P, R], *args: P.args, **named: P.kwargs) -> R:
        """Run a verb that writes. Raises SetupError once closed."""
        return await self._run(self._acting, partial(verb, *args, **named))

    async def run_lookup(self, verb: Callable[P, R], *args: P.args, **named: P.kwargs) -> R:
        """Run a verb that reads. Raises SetupError once closed."""
        return await self._run(self._looking, partial(verb, *args, **named))

    def close(self) -> None:
        """Wait for running verbs, which have their own time limits. Blocks."""
        self._is_closed = True
        for pool in (self._acting, self._looking):
            pool.shutdown(wait=True)

    async def _run(self, pool: ThreadPoolExecutor, verb: Callable[[], R]) -> R:
        if self._is_closed:
            raise SetupError("this AsyncClient was closed; open another one")
        return await asyncio.get_running_loop().run_in_executor(pool, contextvars.copy_context().run, verb)


def async_action(verb: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """Return an awaited form of a verb that writes. It runs the verb of the object's `_sync` in one
    of its `_threads`."""

    @wraps(verb)
    async def in_thread(twin: Any, *args: P.args, **named: P.kwargs) -> R:
        return await twin._threads.run_action(verb, twin._sync, *args, **named)

    return in_thread


def async_lookup(verb: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """Return an awaited form of a read-only verb. See `async_action`."""

    @wraps(verb)
    async def in_thread(twin: Any, *args: P.args, **named: P.kwargs) -> R:
        return await twin._threads.run_lookup(verb, twin._sync, *args, **named)

    return in_thread


def as_twin(
    verb: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]], twin_of: Callable[[VerbThreads, R], T]
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Wrap an awaited verb so that it returns the asynchronous twin of its answer."""

    @wraps(verb)
    async def answered(twin: Any, *args: P.args, **named: P.kwargs) -> T:
        return twin_of(twin._threads, await verb(twin, *args, **named))

    return answered


class AsyncHold:
    """A `Hold` with awaited verbs. As an asynchronous context manager it is released at the end.

    async with await handle.hold("looking at the plan"):
        ...
    """

    def __init__(self, threads: VerbThreads, hold: Hold) -> None:
        self._threads = threads
        self._sync = hold
        self.session_id = hold.session_id
        self.turn_id = hold.turn_id
        self.id = hold.id

    release = async_action(Hold.release)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.release()


class Following:
    """A reader of a turn's events. If the tenant moves, it continues in the new cell from the same number."""

    def __init__(self, reader_now: Callable[[], StreamReader], session_id: str, turn_id: str, after: int) -> None:
        self._reader_now = reader_now
        self._turn = (session_id, turn_id)
        self._after = after
        self._reader = reader_now()
        self._follower: Follower = self._reader.follow(*self._turn, after)

    async def next(self, wait_s: float) -> list[Event] | NoEvents:
        """Return the next events. See `Follower.next`."""
        reader = self._reader_now()
        if reader is not self._reader:
            self.close()
            self._reader = reader
            self._follower = reader.follow(*self._turn, self._after)
        with translate_unreachable():
            batch = await self._follower.next(None if isinf(wait_s) else wait_s)
        if not isinstance(batch, NoEvents):
            self._after = batch[-1].seq
        return batch

    def close(self) -> None:
        self._follower.close()


class AsyncTurnHandle:
    """A TurnHandle with awaited verbs. `await client.submit(...)` and `await client.handle(turn_id)` return one.

    `result` and `events` take no thread, however many turns are followed.
    """

    def __init__(self, threads: VerbThreads, handle: TurnHandle) -> None:
        self._wiring = cells_of(handle).settle(handle.session_id)
        self._threads = threads
        self._sync = handle
        self.session_id = handle.session_id
        self.turn_id = handle.turn_id
        self.created = handle.created
        self.joined = handle.joined

    def __repr__(self) -> str:
        return f"AsyncTurnHandle(session_id={self.session_id!r}, turn_id={self.turn_id!r})"

    async def result(self, timeout_s: float | None = None) -> TurnResult:
        """See `TurnHandle.result`. If a connection breaks, it is reopened; after 10 s without success it raises
        Unreachable."""
        clock = asyncio.get_running_loop().time
        limits = waiting.WaitLimits(self.turn_id, timeout_s, None, clock())
        result, after = await self._known_result()
        if result is not None:
            return result
        with self._following(after) as follower:
            while True:
                batch = await follower.next(limits.remaining_s(clock()))
                if batch is NoEvents.SILENT:
                    limits.check(clock())
                    continue
                if isinstance(batch, NoEvents) or batch[-1].is_final:
                    result, _ = await self._known_result(self._reader().patience_s)
                    if result is not None:
                        return result
                    limits.check(clock())

    async def wait(
        self, until: WaitFor | Collection[WaitFor] = ENDED_OR_PARKED, timeout_s: float | None = None
    ) -> Literal["ended", "parked"]:
        """See `TurnHandle.wait`."""
        waits = waiting.check_until(until)
        clock = asyncio.get_running_loop().time
        limits = waiting.WaitLimits(self.turn_id, timeout_s, None, clock())
        quiet = False
        with self._following(0) as follower:
            while True:
                if not quiet and (await self._known_result())[0] is not None:
                    return "ended"
                if not quiet and waits and waiting.is_parked(await self.snapshot(), waits):
                    return "parked"
                batch = await follower.next(min(waiting.POLL_S, limits.remaining_s(clock())))
                quiet = not isinstance(batch, NoEvents) and waiting.is_only_progress(batch)
                if isinstance(batch, NoEvents):
                    limits.check(clock())

    async def events(
        self, after: int = 0, timeout_s: float | None = None, *, idle_s: float | None = None
    ) -> AsyncIterator[Event]:
        """See `TurnHandle.events`. A slow reader does not delay others; at most 1,000 of its events are in memory.

        If a connection breaks, it is reopened, and no event is lost or repeated. After 10 s without success it raises
        Unreachable; `events(after=...)` with the last number continues.
        """
        with self._following(after) as follower:
            clock = asyncio.get_running_loop().time
            limits = waiting.WaitLimits(self.turn_id, timeout_s, idle_s, clock())
            while True:
                batch = await follower.next(limits.remaining_s(clock()))
                if batch is NoEvents.SILENT:
                    limits.check(clock())
                    continue
                if batch is NoEvents.OVER:
                    return
                if isinstance(batch, NoEvents):
                    if await self._ask_sql(waiting.has_ended):
                        return
                    limits.check(clock())
                    continue
                for event in batch:
                    yield event
                if batch[-1].is_final:
                    return
                limits.event_arrived(clock())

    def text(self, timeout_s: float | None = None, *, idle_s: float | None = None) -> AsyncIterator[str]:
        """See `TurnHandle.text`."""
        return iterate_text_async(self.events(0, timeout_s, idle_s=idle_s), self.result)

    events_so_far = async_lookup(TurnHandle.events_so_far)
    request = async_lookup(TurnHandle.request)
    snapshot = async_lookup(TurnHandle.snapshot)
    explain = async_lookup(TurnHandle.explain)
    timeline = async_lookup(TurnHandle.timeline)
    children = async_lookup(TurnHandle.children)
    transcript = async_lookup(TurnHandle.transcript)
    decision = async_lookup(TurnHandle.decision)
    calls = async_lookup(TurnHandle.calls)
    give_result = async_action(TurnHandle.give_result)
    give_error = async_action(TurnHandle.give_error)
    cancel = async_action(TurnHandle.cancel)
    delete_response = async_action(TurnHandle.delete_response)
    is_response_deleted = async_lookup(TurnHandle.is_response_deleted)
    file = async_lookup(TurnHandle.file)
    steer = async_action(TurnHandle.steer)
    receipt = async_lookup(TurnHandle.receipt)

    hold = as_twin(async_action(TurnHandle.hold), AsyncHold)
    holds = async_lookup(TurnHandle.holds)
    release = async_action(TurnHandle.release)
    approvals = async_lookup(TurnHandle.approvals)

    def _reader(self) -> StreamReader:
        """Return the reader of events in the turn's cell."""
        return self._wiring.streams.reader

    @contextmanager
    def _following(self, after: int) -> Generator[Following]:
        following = Following(self._reader, self.session_id, self.turn_id, after)
        try:
            yield following
        finally:
            following.close()

    async def _known_result(self, patience_s: float = 0.0) -> tuple[TurnResult | None, int]:
        """Return the result if it was published, and the number of the newest event."""
        with translate_unreachable():
            newest = await self._reader().newest(self.session_id, self.turn_id, patience_s)
        if newest.result is not None:
            return TurnResult.from_stored(newest.result), newest.seq
        return None if newest.is_known else await self._ask_sql(waiting.stored_result), newest.seq

    async def _ask_sql(self, lookup: Callable[[Wiring, str], R]) -> R | None:
        """Return the answer of a lookup in SQL. If the turn's tenant is moving, waits a moment and returns None."""
        with translate_unreachable():
            try:
                return await self._threads.run_lookup(lookup, self._wiring, self.turn_id)
            except TurnNotFound:
                try:
                    has_moved = await self._threads.run_lookup(self._has_moved)
                except TenantMoving:
                    await asyncio.sleep(waiting.MOVING_S)
                    return None
                if not has_moved:
                    raise
                return await self._threads.run_lookup(lookup, self._wiring, self.turn_id)

    def _has_moved(self) -> bool:
        """Follow the turn's tenant to its current cell. Returns False if the cell has not changed."""
        before, cells = self._wiring, cells_of(self._sync)
        cells.look_again(self.session_id)
        self._wiring = wiring_of(self._sync)
        return self._wiring is not before
