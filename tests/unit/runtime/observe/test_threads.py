"""A kept thread or task is started again whatever ends it, and a start that was refused is never taken for one."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from brainq.runtime.observe import threads
from brainq.runtime.observe.metrics.counters import COUNTERS
from brainq.runtime.observe.tasks import KeptTask, start_task
from brainq.runtime.observe.threads import KeptThread, start_thread, thread_problems
from tests.support.refused_threads import FOR_EVER, REFUSED, RefusedThreads
from tests.support.wait import wait_until


class Panic(BaseException):
    """Like PyO3's PanicException, by which a Rust library reports a panic."""


ENDS = (ValueError, MemoryError, SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, Panic)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "FIRST_BACKOFF_S", 0.0)
    monkeypatch.setattr(threads, "REFUSED_PAUSES_S", ())


class Work:
    """Raises each of `ends`, one a run; then lasts until it is stopped."""

    def __init__(self, *ends: type[BaseException]) -> None:
        self.ends = [*ends]
        self.runs = 0
        self.lasts = threading.Event()

    def __call__(self, stopping: threading.Event) -> None:
        self.runs += 1
        if self.ends:
            raise self.ends.pop(0)
        self.lasts.set()
        stopping.wait()

    async def awaited(self) -> None:
        self.runs += 1
        if self.ends:
            raise self.ends.pop(0)
        self.lasts.set()
        await asyncio.Event().wait()


Keep = Callable[[Callable[[threading.Event], object]], KeptThread]


@pytest.fixture
def keep() -> Iterator[Keep]:
    kept: list[KeptThread] = []

    def make(work: Callable[[threading.Event], object]) -> KeptThread:
        kept.append(KeptThread("brainq-test", work))
        return kept[-1]

    yield make
    for thread in kept:
        thread.stop(60)
        assert not thread.is_alive


def counted(name: str = "brainq-test") -> float:
    return COUNTERS.totals().get(("brainq_thread_failures", name), 0)


@pytest.mark.parametrize("end", ENDS)
def test_whatever_ends_it_is_logged_and_counted_and_it_runs_again(
    keep: Keep, end: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    before, work = counted(), Work(end)
    keep(work).ensure()
    assert work.lasts.wait(60)
    (line,) = [record for record in caplog.records if "brainq-test" in record.getMessage()]
    assert (line.levelno, f"why={end.__name__}" in line.getMessage()) == (logging.ERROR, True)
    assert (work.runs, counted() - before) == (2, 1)
    assert thread_problems() == [], "it runs again"


def test_each_kind_of_failure_is_logged_once(keep: Keep, caplog: pytest.LogCaptureFixture) -> None:
    work = Work(OSError, OSError, OSError, SystemExit, SystemExit)
    keep(work).ensure()
    assert work.lasts.wait(60)
    assert [line.getMessage().split("why=")[1].split()[0] for line in caplog.records] == ["OSError", "SystemExit"]


def test_one_that_returns_before_it_is_stopped_runs_again(keep: Keep, caplog: pytest.LogCaptureFixture) -> None:
    runs: list[int] = []
    lasts = threading.Event()

    def work(stopping: threading.Event) -> None:
        runs.append(1)
        if len(runs) == 2:
            lasts.set()
            stopping.wait()

    keep(work).ensure()
    assert lasts.wait(60)
    assert "thread brainq-test failed and will be tried again why=RuntimeError" in caplog.text


def test_it_says_what_is_wrong_while_it_fails_again_and_again(keep: Keep) -> None:
    fails = True

    def work(stopping: threading.Event) -> None:
        if fails:
            raise MemoryError
        stopping.wait()

    keep(work).ensure()
    wait_until(lambda: "in a row, last by MemoryError" in "".join(thread_problems()), "it is named")
    assert thread_problems()[0].startswith("thread brainq-test has ended ")
    fails = False
    with pytest.MonkeyPatch.context() as steady:
        steady.setattr(threads, "STEADY_S", 0.0)
        wait_until(lambda: thread_problems() == [], "a steady run has recovered")


def test_a_refused_start_is_not_recorded_and_the_next_who_needs_it_starts_it(
    keep: Keep, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before, work, refused = counted(), Work(), RefusedThreads(monkeypatch, "brainq-test", 1)
    thread = keep(work)
    with pytest.raises(RuntimeError, match=REFUSED):
        thread.ensure()
    assert (thread.is_alive, counted() - before) == (False, 1)
    assert "thread brainq-test failed" in caplog.text
    thread.ensure()
    assert work.lasts.wait(60)
    thread.ensure()
    assert (thread.is_alive, refused.asked, work.runs) == (True, 2, 1)


def test_a_thread_that_is_missed_by_nobody_is_started_by_the_look_for_problems(
    keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, refused = Work(), RefusedThreads(monkeypatch, "brainq-test", FOR_EVER)
    with pytest.raises(RuntimeError):
        keep(work).ensure()
    assert thread_problems() == [f"thread brainq-test could not be started: {REFUSED}"]
    refused.times = 0
    assert thread_problems() == []
    assert work.lasts.wait(60)


def test_a_moment_without_threads_is_waited_for(keep: Keep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "REFUSED_PAUSES_S", (0.0, 0.0))
    work, refused = Work(), RefusedThreads(monkeypatch, "brainq-test", 2)
    keep(work).ensure()
    assert work.lasts.wait(60)
    assert refused.asked == 3


def test_a_stopped_one_ends_without_a_word_and_is_no_problem(keep: Keep, caplog: pytest.LogCaptureFixture) -> None:
    work = Work()
    thread = keep(work)
    thread.ensure()
    assert work.lasts.wait(60)
    thread.stop(60)
    thread.ensure()
    assert (thread.is_alive, work.runs, caplog.records, thread_problems()) == (False, 1, [], [])


@pytest.mark.parametrize("end", ENDS)
def test_what_ends_a_thread_that_is_not_kept_is_logged_and_counted(
    end: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    def work() -> None:
        raise end

    before = counted("brainq-once")
    start_thread("brainq-once", work).join()
    (line,) = caplog.records
    assert (line.levelno, counted("brainq-once") - before) == (logging.ERROR, 1)
    assert f"thread=brainq-once why={end.__name__}" in line.getMessage()


def test_a_refused_thread_that_is_not_kept_is_raised(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    RefusedThreads(monkeypatch, "brainq-once", 1)
    with pytest.raises(RuntimeError, match=REFUSED):
        start_thread("brainq-once", threading.Event().set)
    assert "a thread could not be started" in caplog.text


@pytest.mark.parametrize("end", ENDS)
def test_nothing_that_ends_a_kept_task_reaches_its_loop(
    end: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    before, work = counted("brainq-task"), Work(end)

    async def main() -> None:
        task = KeptTask("brainq-task", work.awaited)
        task.ensure()
        task.ensure()
        async with asyncio.timeout(60):
            while not work.lasts.is_set():
                await asyncio.sleep(0)
        await task.stop()

    asyncio.run(main())
    assert (work.runs, counted("brainq-task") - before) == (2, 1)
    assert f"why={end.__name__}" in caplog.text


FORKED = """
import os, threading
from brainq.runtime.observe.threads import KeptThread, thread_problems

ran = threading.Semaphore(0)
def work(stopping):
    ran.release()
    stopping.wait()

kept = KeptThread("brainq-forked", work)
kept._lock.acquire()  # another thread of the parent is about to start it
if os.fork() == 0:
    assert not kept.is_alive and thread_problems() == []
    kept.ensure()
    os._exit(0 if ran.acquire(timeout=30) else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_a_fork_starts_its_own() -> None:
    assert subprocess.run([sys.executable, "-c", FORKED], timeout=60).returncode == 0


@pytest.mark.parametrize("end", [ValueError, SystemExit, KeyboardInterrupt, Panic])
def test_nothing_that_ends_a_task_reaches_its_loop(end: type[BaseException], caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        raise end

    async def main() -> str:
        await start_task("brainq-once", work())
        return "the loop goes on"

    before = counted("brainq-once")
    assert asyncio.run(main()) == "the loop goes on"
    assert (counted("brainq-once") - before, f"thread=brainq-once why={end.__name__}" in caplog.text) == (1, True)
