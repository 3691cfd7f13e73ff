"""Following several turns at once, and the text of one as it grows. Works with the handles of every client."""

from __future__ import annotations

import inspect
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator, Sequence
from queue import Empty, SimpleQueue
from threading import Event as ThreadEvent
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast, overload

from brainq.errors import ResultTimeout

if TYPE_CHECKING:
    from brainq.client.async_handle import AsyncTurnHandle
    from brainq.client.handle import TurnHandle
    from brainq.client.http.async_handle import AsyncHttpTurnHandle
    from brainq.client.http.client import HttpTurnHandle
    from brainq.contracts.event import TurnEvent
    from brainq.contracts.turn import TurnResult

H = TypeVar("H", bound="TurnHandle | HttpTurnHandle")
A = TypeVar("A", bound="AsyncTurnHandle | AsyncHttpTurnHandle")
T = TypeVar("T")
MAX_THREADS = 16
LOOK_S = 2.0  # the longest wait of a thread for one handle
SHARED_LOOK_S = 1.0  # the same while handles wait for a thread


class TextFold:
    """The text of a turn's newest step, made of its events. An attempt replaces the text of the attempt before."""

    def __init__(self) -> None:
        self.text = ""
        self._newest = (0, 0)

    def add(self, event: TurnEvent) -> bool:
        """Take an event in. Returns whether the text is different now."""
        if event.kind.value not in ("step.started", "text.delta"):
            return False
        before = self.text
        place = (cast("int", event.data.get("step", 0)), cast("int", event.data.get("attempt", 1)))
        if place > self._newest:
            self._newest, self.text = place, ""
        if place == self._newest:
            self.text += str(event.data.get("text", ""))
        return self.text != before


def iterate_text(events: Iterable[TurnEvent], result: Callable[[], TurnResult]) -> Iterator[str]:
    """Iterate over the text of the newest step as it grows, and the result's text at the end. See `TurnHandle.text`."""
    fold = TextFold()
    for event in events:
        if fold.add(event):
            yield fold.text
    if (answer := result().text) != fold.text:
        yield answer


async def iterate_text_async(
    events: AsyncIterable[TurnEvent], result: Callable[[], Awaitable[TurnResult]]
) -> AsyncIterator[str]:
    """Iterate as `iterate_text` does, on an event loop."""
    fold = TextFold()
    async for event in events:
        if fold.add(event):
            yield fold.text
    if (answer := (await result()).text) != fold.text:
        yield answer


class Deadline:
    """The end of a wait of `timeout_s` seconds, or of one without limit."""

    def __init__(self, timeout_s: float | None) -> None:
        self._at = None if timeout_s is None else time.monotonic() + timeout_s

    def remaining_s(self) -> float | None:
        return None if self._at is None else max(0.0, self._at - time.monotonic())

    def cut(self, wait_s: float) -> float:
        """Return `wait_s`, or what remains if that is less."""
        remaining = self.remaining_s()
        return wait_s if remaining is None else min(wait_s, remaining)


class _Nothing(tuple[Any, ...]):
    """The results of no turns, which can be awaited, too."""

    def __await__(self) -> Generator[Any, None, Self]:
        return self
        yield


@overload
def gather(handles: Iterable[H], timeout_s: float | None = None) -> tuple[TurnResult, ...]: ...
@overload
def gather(handles: Iterable[A], timeout_s: float | None = None) -> Awaitable[tuple[TurnResult, ...]]: ...
def gather(handles: Iterable[Any], timeout_s: float | None = None) -> Any:
    """Wait for the results of several turns, and return them in the order of `handles`.

        results = brainq.gather([client.submit("s1", "One"), client.submit("s2", "Two")])

    With the handles of an AsyncClient it is awaited: `results = await brainq.gather(handles)`.

    timeout_s: seconds in all. None waits without limit.

    Raises as `TurnHandle.result` does, for the first handle that has no result.
    """
    listed, deadline = list(handles), Deadline(timeout_s)
    if not listed:
        return _Nothing()
    if _is_async(listed):
        return _gather_async(listed, deadline)
    return tuple(handle.result(deadline.remaining_s()) for handle in listed)


async def _gather_async(handles: Sequence[AsyncTurnHandle], deadline: Deadline) -> tuple[TurnResult, ...]:
    return tuple([await handle.result(deadline.remaining_s()) for handle in handles])


class Completed(Generic[T]):
    """The handles of several turns in the order in which the turns end, for `for` or `async for`."""

    def __init__(self, handles: Iterable[T], timeout_s: float | None) -> None:
        self._handles = list(handles)
        self._timeout_s = timeout_s

    def __iter__(self) -> Iterator[T]:
        return cast("Iterator[T]", _completed(cast("list[Any]", self._handles), Deadline(self._timeout_s)))

    def __aiter__(self) -> AsyncIterator[T]:
        return cast("AsyncIterator[T]", _completed_async(cast("list[Any]", self._handles), Deadline(self._timeout_s)))


@overload
def as_completed(handles: Iterable[H], timeout_s: float | None = None) -> Iterable[H]: ...
@overload
def as_completed(handles: Iterable[A], timeout_s: float | None = None) -> AsyncIterable[A]: ...
def as_completed(handles: Iterable[Any], timeout_s: float | None = None) -> Any:
    """Iterate over handles in the order in which their turns end. `handle.result()` then returns at once.

        for handle in brainq.as_completed(handles):
            print(handle.turn_id, handle.result().text)

    With the handles of an AsyncClient it is `async for`. A turn that was refused is yielded, too; its `result` raises.

    timeout_s: seconds in all. None waits without limit.

    Raises ResultTimeout if turns have not ended by then. They continue.
    """
    return Completed(handles, timeout_s)


def _is_async(handles: Sequence[Any]) -> bool:
    return inspect.iscoroutinefunction(type(handles[0]).result)


def _timed_out(left: int) -> ResultTimeout:
    return ResultTimeout(f"{left} turns have not ended in time. They continue; wait for them again later")


def _completed(handles: Sequence[TurnHandle], deadline: Deadline) -> Iterator[TurnHandle]:
    """Iterate over handles as their turns end. Each of a few threads waits for one turn at a time."""
    waiting: SimpleQueue[TurnHandle] = SimpleQueue()
    ended: SimpleQueue[TurnHandle] = SimpleQueue()
    stopping = ThreadEvent()
    for handle in handles:
        waiting.put(handle)
    look_s = LOOK_S if len(handles) <= MAX_THREADS else SHARED_LOOK_S

    def look() -> None:
        while not stopping.is_set():
            try:
                handle = waiting.get_nowait()
            except Empty:
                return
            (ended if _has_ended(handle, look_s) else waiting).put(handle)

    from concurrent.futures import ThreadPoolExecutor

    threads = ThreadPoolExecutor(MAX_THREADS, "brainq-as-completed")
    try:
        for _ in handles[:MAX_THREADS]:
            threads.submit(look)
        for number in range(len(handles)):
            try:
                yield ended.get(timeout=deadline.remaining_s())
            except Empty:
                raise _timed_out(len(handles) - number) from None
    finally:
        stopping.set()
        threads.shutdown(wait=False, cancel_futures=True)


def _has_ended(handle: TurnHandle, wait_s: float) -> bool:
    """Return whether waiting for the turn is over: it has a result, or `result` raises."""
    try:
        handle.result(wait_s)
    except ResultTimeout:
        return False
    except Exception:
        pass  # the caller gets it from `result`, too
    return True


async def _completed_async(handles: Sequence[AsyncTurnHandle], deadline: Deadline) -> AsyncIterator[AsyncTurnHandle]:
    import asyncio

    waits = {asyncio.ensure_future(handle.result()): handle for handle in handles}
    try:
        while waits:
            done, _ = await asyncio.wait(waits, timeout=deadline.remaining_s(), return_when=asyncio.FIRST_COMPLETED)
            if not done:
                raise _timed_out(len(waits))
            for wait in done:
                wait.exception()  # the caller gets it from `result`, too
                yield waits.pop(wait)
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
