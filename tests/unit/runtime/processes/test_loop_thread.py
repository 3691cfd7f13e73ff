"""Threads and loops of a process."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kombu.transport import virtual

from brainq.adapters.celery.celery57.event_loop import ThreadSafeQoS
from brainq.runtime.observe import threads as kept
from brainq.runtime.processes import later_threads
from brainq.runtime.processes.guard import ProcessGuard
from brainq.runtime.processes.later_threads import LaterThreads
from brainq.runtime.processes.threads import LoopThread, UserCodeExit, as_sync, is_async
from tests.support.refused_threads import REFUSED, RefusedThreads
from tests.support.wait import wait_until
from tests.unit.engine.calls.support import is_running

# Async functions where plain ones are called.


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


# Some of a finalizer's threads are left to what leads to results.


def following(threads: int = 4, **messages: tuple[str, float]) -> LaterThreads:
    found = LaterThreads()
    found.follow(threads, messages)
    return found


@pytest.mark.parametrize(("threads", "most"), [(8, 6), (4, 2), (3, 1), (2, 1), (1, 1)])
def test_two_threads_are_left_and_one_does_what_is_later_at_least(threads: int, most: int) -> None:
    assert following(threads).free == most


def test_where_no_queue_is_read_nothing_is_bounded() -> None:
    found = LaterThreads()
    assert [found.try_enter(f"t{number}") for number in range(99)] == [True] * 99


def test_a_visit_goes_on_while_a_thread_is_left_for_it() -> None:
    found = following(4)
    assert [found.try_enter(turn) for turn in ("t1", "t2", "t3")] == [True, True, False]
    found.leave("t3")
    assert not found.free
    found.leave("t1")
    assert found.try_enter("t3")


def test_one_that_is_there_already_counts_though_no_thread_is_left() -> None:
    found = following(4)
    for turn in ("t1", "t2", "t3"):
        found.enter(turn)
    found.leave("t1")
    assert not found.free
    found.leave("t2")
    assert found.free == 1


def test_a_turn_whose_message_was_taken_and_whose_visit_has_begun_counts_once() -> None:
    found = following(4, tag=("t1", 0.0))
    found.enter("t1")
    assert found.free == 1
    found.leave("t1")
    assert found.free == 1, "the message is not acknowledged yet"


def test_it_looks_again_after_as_long_as_the_newest_has_run(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    monkeypatch.setattr(later_threads, "time", SimpleNamespace(monotonic=lambda: now))
    looks = [following(4, old=("t1", now - 60), new=("t2", now - ago)).looks_again_s() for ago in (0, 0.25, 9)]
    assert looks == pytest.approx([0.005, 0.25, 1.0])


@pytest.mark.parametrize("end", ["ack", "reject"])
def test_a_message_counts_until_it_is_acknowledged_or_refused(end: str) -> None:
    channel: Any = SimpleNamespace(do_restore=False)
    credit: virtual.QoS | Any = ThreadSafeQoS(channel, 4)
    credit.append("message", "tag")
    credit.note_later("tag", "t1")
    found = LaterThreads()
    found.follow(4, credit.later)
    assert found.free == 1
    getattr(credit, end)("tag")
    assert found.free == 2


# Processes that must not outlive the one that started them.


STARTER = """
import os, subprocess, sys
from brainq.runtime.processes.guard import ProcessGuard
guard = ProcessGuard(grace_s=1.0)
for script in ("trap '' TERM; exec sleep 600", "read line; echo ended > $0"):
    child = subprocess.Popen(["sh", "-c", script, sys.argv[1]], stdin=subprocess.PIPE, start_new_session=True)
    guard.add(child.pid)
    print(child.pid, flush=True)
os._exit(9)
"""


def test_what_heeds_the_end_of_its_stdin_ends_by_itself_and_the_rest_is_killed(tmp_path: Path) -> None:
    last_words = tmp_path / "ended"
    run = subprocess.run(
        [sys.executable, "-c", STARTER, str(last_words)], stdout=subprocess.PIPE, text=True, check=False
    )
    assert run.returncode == 9
    stubborn, heeding = map(int, run.stdout.split())
    wait_until(lambda: not is_running(stubborn) and not is_running(heeding), "both are gone")
    assert last_words.read_text() == "ended\n"


def test_of_a_guard_that_was_killed_no_pipe_stays_open_when_another_takes_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: Any, **named: Any) -> subprocess.Popen[str]:
        started.append(popen(*arguments, **named))
        return started[-1]

    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", start)
    guard = ProcessGuard()
    child = popen(["sleep", "600"], start_new_session=True)
    guard.add(child.pid)
    started[0].kill()
    started[0].wait()
    guard.add(child.pid)
    guard.forget(child.pid)
    guard.close_if_idle()
    assert [(one.stdin is not None and one.stdin.closed, one.returncode is not None) for one in started] == [
        (True, True),
        (True, True),
    ]
    child.kill()
    child.wait()
