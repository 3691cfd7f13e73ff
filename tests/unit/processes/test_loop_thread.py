"""Async functions where plain ones are called."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from brainq.processes.threads import as_sync, is_async

WHO = contextvars.ContextVar("who", default="nobody")


async def double(number: int) -> int:
    await asyncio.sleep(0)
    return number * 2


class Doubling:
    async def __call__(self, number: int) -> int:
        return await double(number)


def test_a_plain_function_stays_itself() -> None:
    assert as_sync(len) is len
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
