"""Async functions where plain ones are called."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from brainq.runtime.observe import threads as kept
from brainq.runtime.processes.threads import LoopThread, UserCodeExit, as_sync, is_async
from tests.support.refused_threads import REFUSED, RefusedThreads

WHO = contextvars.ContextVar("who", default="nobody")


async def double(number: int) -> int:
    await asyncio.sleep(0)
    return number * 2


class Doubling:
    async def __call__(self, number: int) -> int:
        return await double(number)


def test_a_plain_function_does_what_it_does() -> None:
    assert as_sync(len)([1, 2]) == 2
    assert not is_async(len)


@pytest.mark.parametrize("function", [double, functools.partial(double, 4), Doubling()])
def test_an_async_one_gives_what_it_returns(function: object) -> None:
    assert is_async(function)
    found = as_sync(function)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert found(*(() if isinstance(function, functools.partial) else (4,))) == 8


def test_it_raises_what_it_raises() -> None:
    async def fail() -> None:
        raise LookupError("no such thing")

    with pytest.raises(LookupError, match="no such thing"):
        as_sync(fail)()


def test_many_threads_wait_side_by_side_on_one_loop() -> None:
    together = threading.Barrier(2)
    loops: set[int] = set()

    async def meet() -> None:
        loops.add(id(asyncio.get_running_loop()))
        await asyncio.to_thread(together.wait, 60)  # broken, unless both are here at once

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(as_sync(meet)) for _ in range(2)]:
            done.result(60)
    assert len(loops) == 1


def test_it_sees_the_callers_context() -> None:
    async def who() -> str:
        return WHO.get()

    held = WHO.set("ann")
    assert as_sync(who)() == "ann"
    WHO.reset(held)


def test_one_that_reaches_another_says_so_and_does_not_hang() -> None:
    async def outer() -> int:
        return as_sync(double)(1)

    with pytest.raises(RuntimeError, match="await it instead"):
        as_sync(outer)()


class Panic(BaseException):
    """As of a Rust library."""


def exits(end: type[BaseException]) -> None:
    raise end("over")


async def exits_later(end: type[BaseException]) -> None:
    await asyncio.sleep(0)
    raise end("over")


@pytest.mark.parametrize("end", [SystemExit, KeyboardInterrupt, GeneratorExit, Panic])
@pytest.mark.parametrize("function", [exits, exits_later])
def test_what_would_end_a_thread_is_an_exception_for_its_caller(
    function: Callable[..., object], end: type[BaseException]
) -> None:
    with ThreadPoolExecutor(1) as pool:
        raised = pool.submit(as_sync(function), end).exception(60)
    assert isinstance(raised, UserCodeExit)
    assert str(raised).endswith(f"raised {end.__name__}: over")
    assert as_sync(double)(4) == 8, "the loop goes on"


def test_ctrl_c_in_the_main_thread_is_raised_on() -> None:
    with pytest.raises(KeyboardInterrupt):
        as_sync(exits)(KeyboardInterrupt)


@pytest.fixture
def loop_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopThread]:
    monkeypatch.setattr(kept, "FIRST_BACKOFF_S", 0.0)
    made = LoopThread("brainq-test-loop")
    yield made
    made.stop()


@pytest.mark.parametrize("end", [SystemExit, KeyboardInterrupt])
def test_a_task_that_exits_ends_no_loop_and_no_other_task(loop_thread: LoopThread, end: type[BaseException]) -> None:
    begun, may_end = threading.Event(), asyncio.Event()

    async def waits() -> str:
        begun.set()
        await may_end.wait()
        return "done"

    other = asyncio.run_coroutine_threadsafe(waits(), loop_thread.loop)
    assert begun.wait(60)

    async def leaves_a_task() -> None:
        task = asyncio.get_running_loop().create_task(exits_later(end))
        await asyncio.wait([task])
        assert isinstance(task.exception(), end)

    loop = loop_thread.loop
    loop_thread.run(leaves_a_task(), 60)
    assert not other.done()
    loop.call_soon_threadsafe(may_end.set)
    assert other.result(60) == "done"
    assert loop_thread.loop is loop


def test_a_loop_that_a_tool_stops_goes_on(loop_thread: LoopThread) -> None:
    async def stop() -> None:
        asyncio.get_running_loop().stop()

    loop_thread.run(stop(), 60)
    assert loop_thread.run(double(4), 60) == 8


def test_a_refused_loop_is_started_by_the_next_call(loop_thread: LoopThread, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "REFUSED_PAUSES_S", ())
    RefusedThreads(monkeypatch, "brainq-test-loop", 1)
    with pytest.raises(RuntimeError, match=REFUSED):
        _ = loop_thread.loop
    assert loop_thread.run(double(4), 60) == 8
