"""A pool's threads: few stay warm, never more than the limit, one may be given up, and a stop waits for the rest."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from brainq.adapters.celery.celery57.thread_pool import (
    TaskOutcome,
    TaskPool,
    TaskRun,
    TaskThreads,
    current_run,
)
from tests.support.wait import wait_until


def stop(threads: TaskThreads) -> None:
    threads.close()
    threads.join()


def run(threads: TaskThreads, job: Callable[[], object]) -> threading.Thread:
    """The thread that ran this job, once it waits for another."""
    ran: list[threading.Thread] = []

    def noted() -> None:
        job()
        ran.append(threading.current_thread())

    threads.start(noted)
    wait_until(lambda: ran, "the job has run")
    (thread,) = ran
    wait_until(lambda: thread in threads._idle, "its thread is idle again")  # pyright: ignore[reportPrivateUsage]
    return thread


def test_one_job_after_another_uses_one_thread() -> None:
    threads = TaskThreads(8)
    assert len({run(threads, bool) for _ in range(20)}) == 1
    assert len(threads) == 1
    stop(threads)
    assert len(threads) == 0


@pytest.mark.parametrize("limit", [1, 2])
def test_no_more_jobs_run_at_once_than_the_limit_and_the_others_follow_in_order(limit: int) -> None:
    threads = TaskThreads(limit)
    gate = threading.Event()
    began: list[int] = []

    def job(number: int) -> None:
        began.append(number)
        gate.wait(60)

    for number in range(6):
        threads.start(lambda number=number: job(number))
    wait_until(lambda: len(began) == limit, "so many run")
    assert len(threads) == limit
    gate.set()
    wait_until(lambda: len(began) == 6, "all have run")
    # Two threads may say in another order that they began than they did.
    assert (began if limit == 1 else sorted(began)) == [0, 1, 2, 3, 4, 5]
    assert len(threads) == limit
    stop(threads)


def test_what_a_job_raises_costs_no_thread(caplog: pytest.LogCaptureFixture) -> None:
    threads = TaskThreads(1)

    def raising() -> None:
        raise SystemExit(3)

    threads.start(raising)
    run(threads, bool)
    assert "could not be ended properly" in caplog.text
    stop(threads)


def test_closing_waits_for_what_runs_and_forgets_what_waits() -> None:
    threads = TaskThreads(1)
    gate, begun = threading.Event(), threading.Event()
    ran: list[str] = []

    def running() -> None:
        begun.set()
        gate.wait(60)
        ran.append("running")

    threads.start(running)
    threads.start(lambda: ran.append("waiting"))
    assert begun.wait(60)
    closing = threading.Thread(target=lambda: stop(threads))
    closing.start()
    wait_until(lambda: not threads._waiting, "it closes")  # pyright: ignore[reportPrivateUsage]
    assert closing.is_alive()
    gate.set()
    closing.join(60)
    assert ran == ["running"]
    with pytest.raises(RuntimeError):
        threads.start(bool)


class Task:
    """A task that is stuck until let go, and the outcomes that Celery hears of."""

    def __init__(self, threads: TaskThreads) -> None:
        self.threads = threads
        self.heard: list[TaskOutcome] = []
        self.gate = threading.Event()
        self.run: TaskRun | None = None

    def begin(self) -> TaskRun:
        begun = TaskRun(self.threads, self.work, self.heard.append, lambda failure: (1, repr(failure), None))
        self.threads.start(begun)
        return begun

    def work(self) -> TaskOutcome:
        self.run = current_run()
        self.gate.wait(60)
        return 0, "by itself", 1.0


def test_a_task_that_is_given_up_ends_at_once_and_another_thread_takes_its_place() -> None:
    threads = TaskThreads(1)
    stuck, next_one = Task(threads), Task(threads)
    begun = stuck.begin()
    next_one.begin()
    wait_until(lambda: stuck.run, "it runs")
    assert stuck.run is begun
    assert next_one.run is None
    assert begun.abandon(TimeoutError("too long"))
    wait_until(lambda: next_one.run, "the next one runs beside it")
    assert stuck.heard == [(1, "TimeoutError('too long')", None)]
    assert len(threads) == 1
    old = begun._thread  # pyright: ignore[reportPrivateUsage]
    assert old is not None
    stuck.gate.set()
    old.join(60)
    assert not old.is_alive()
    assert len(stuck.heard) == 1
    next_one.gate.set()
    stop(threads)
    assert next_one.heard == [(0, "by itself", 1.0)]


def test_closing_does_not_wait_for_what_was_given_up() -> None:
    threads = TaskThreads(1)
    stuck = Task(threads)
    begun = stuck.begin()
    wait_until(lambda: stuck.run, "it runs")
    assert begun.abandon()
    assert stuck.heard == [(0, "None", None)]
    stop(threads)
    stuck.gate.set()


def test_a_task_that_ended_by_itself_cannot_be_given_up() -> None:
    threads = TaskThreads(1)
    task = Task(threads)
    task.gate.set()
    begun = task.begin()
    wait_until(lambda: task.heard, "it ended")
    assert not begun.abandon(TimeoutError("too long"))
    assert task.heard == [(0, "by itself", 1.0)]
    run(threads, bool)
    assert len(threads) == 1
    stop(threads)


def test_a_task_and_its_watchdog_end_it_once_together() -> None:
    threads = TaskThreads(4)
    heard: list[list[TaskOutcome]] = []
    for _ in range(200):
        task = Task(threads)
        begun = task.begin()
        task.gate.set()
        gave_up = begun.abandon(TimeoutError("too long"))
        wait_until(lambda task=task: task.heard, "it ended", every_s=0.0001)
        assert (task.heard[0][0] == 1) is gave_up
        heard.append(task.heard)
    stop(threads)
    assert {len(outcomes) for outcomes in heard} == {1}


def test_outside_the_pool_no_task_runs() -> None:
    assert current_run() is None


class Broken:
    """A task whose end fails, so many times."""

    def __init__(self, failure: BaseException, times: int) -> None:
        self.failure = failure
        self.times = times
        self.places = 1  # that the worker lost
        self.heard: list[TaskOutcome] = []

    def end(self, outcome: TaskOutcome) -> None:
        self.heard.append(outcome)
        if self.times > 0:
            self.times -= 1
            raise self.failure
        self.places = 0


def broken_run(threads: TaskThreads, broken: Broken) -> TaskRun:
    return TaskRun(threads, lambda: (0, "done", 0.1), broken.end, lambda failure: (1, repr(failure), None))


@pytest.mark.parametrize("failure", [MemoryError(), OSError(), SystemExit(3), GeneratorExit()])
def test_an_end_that_fails_gives_its_place_back(failure: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    threads, broken = TaskThreads(1), Broken(failure, 1)
    run(threads, broken_run(threads, broken))
    assert broken.heard == [
        (0, "done", 0.1),
        (1, f"RuntimeError('the task could not be ended: {type(failure).__name__}')", None),
    ]
    assert broken.places == 0
    assert "a task could not be ended" in caplog.text
    stop(threads)


def test_an_end_that_fails_for_good_costs_no_thread() -> None:
    threads, broken = TaskThreads(1), Broken(OSError(), 9)
    run(threads, broken_run(threads, broken))
    assert len(broken.heard) == 2
    run(threads, bool)
    assert len(threads) == 1
    stop(threads)


def test_one_given_up_whose_end_fails_has_another_thread_in_its_place() -> None:
    threads, gate, begun = TaskThreads(1), threading.Event(), threading.Event()
    broken = Broken(OSError(), 1)

    def work() -> TaskOutcome:
        begun.set()
        gate.wait(60)
        return 0, "late", 1.0

    stuck = TaskRun(threads, work, broken.end, lambda failure: (1, repr(failure), None))
    threads.start(stuck)
    assert begun.wait(60)
    assert stuck.abandon()
    run(threads, bool)
    gate.set()
    assert broken.places == 0
    stop(threads)


def test_a_task_that_gets_no_thread_gives_its_place_back(monkeypatch: pytest.MonkeyPatch) -> None:
    pool: Any = TaskPool(1)
    pool.on_start()
    monkeypatch.setattr(threading.Thread, "start", refuse)
    heard: list[TaskOutcome] = []
    pool.on_apply(lambda: (0, "ran", 0.1), callback=heard.append)
    assert [outcome[0] for outcome in heard] == [1]
    monkeypatch.undo()
    pool.on_apply(lambda: (0, "ran", 0.1), callback=heard.append)
    wait_until(lambda: len(heard) == 2, "the next one runs")
    assert heard[1] == (0, "ran", 0.1)
    pool.on_stop()


def test_a_waiting_task_that_gets_no_thread_gives_its_place_back(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = TaskThreads(1)
    stuck, waiting = Task(threads), Task(threads)
    begun = stuck.begin()
    wait_until(lambda: stuck.run, "it runs")
    waiting.begin()
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert begun.abandon()
    monkeypatch.undo()
    assert [outcome[0] for outcome in waiting.heard] == [1]
    stuck.gate.set()
    run(threads, bool)
    stop(threads)


def refuse(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")
