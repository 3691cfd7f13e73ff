"""Where a call is settled whose function keeps the worker's thread, and what becomes of that thread."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from brainq.contracts.call import CallReport
from brainq.contracts.claim import CallClaim, SettleReply
from brainq.contracts.status import Effect, TraceStatus, WorkFailure, WorkOutcome
from brainq.engine.brain.brain import Brain
from tests.support.wait import wait_until
from tests.unit.engine.calls.fakes import Rig


class Worker:
    """A thread of a pool that runs one call, and what its task was answered with."""

    def __init__(self, rig: Rig) -> None:
        self.answers: list[tuple[str, str | Exception]] = []
        self._rig = rig
        self._thread = threading.Thread(target=self._run, name="worker", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._answer("by itself", lambda: self._rig.run(self._abandon))

    def _abandon(self, settle: Callable[[], str]) -> None:
        assert threading.current_thread() is not self._thread
        self._answer("abandoned", settle)

    def _answer(self, how: str, work: Callable[[], str]) -> None:
        try:
            self.answers.append((how, work()))
        except Exception as failure:
            self.answers.append((how, failure))


@pytest.fixture
def threads(brain: Brain, release: threading.Event) -> list[str]:
    """Where the tools `look`, `hang` (until released) ran."""
    ran: list[str] = []

    @brain.tool(effect=Effect.READ_ONLY)
    def look() -> None:  # pyright: ignore[reportUnusedFunction]
        ran.append(threading.current_thread().name)

    @brain.tool(effect=Effect.LOCAL_WRITE)
    def hang() -> None:  # pyright: ignore[reportUnusedFunction]
        ran.append(threading.current_thread().name)
        release.wait(60.0)
        ran.append("ends")

    return ran


def test_a_function_that_ends_in_time_runs_and_is_settled_in_the_worker_s_thread(rig: Rig, threads: list[str]) -> None:
    rig.claim("look")
    worker = Worker(rig)
    wait_until(lambda: worker.answers, "the task is answered")
    assert (threads, worker.answers) == (["worker"], [("by itself", "settled")])


def test_one_that_is_cut_off_is_settled_at_once_and_keeps_the_thread(
    rig: Rig, threads: list[str], release: threading.Event
) -> None:
    rig.claim("hang", Effect.LOCAL_WRITE, cap_ms=1_000)
    worker = Worker(rig)
    wait_until(lambda: worker.answers, "the task is answered")
    [(how, did)] = worker.answers
    assert isinstance(did, WorkOutcome)
    assert (how, did, did.failed) == ("abandoned", "settled", WorkFailure.CALL_TIMED_OUT)
    assert threads == ["worker"]
    assert rig.log == ["settle timed_out still runs"]
    wait_until(lambda: rig.stops.watching == [], "nobody listens for it any more")

    rig.calls.replies["settle"] = SettleReply("LATE", TraceStatus.TIMED_OUT)
    release.set()
    wait_until(lambda: len(worker.answers) == 2, "the function has ended, and the thread is free")
    assert worker.answers[1] == ("by itself", did)
    assert rig.log == ["settle timed_out still runs", "settle completed"]


def test_what_is_late_is_told_after_the_cut_is_settled(rig: Rig, threads: list[str], release: threading.Event) -> None:
    settle = rig.calls.settle

    def slow(claim: CallClaim, report: CallReport, *, still_runs: bool = False, offer: object = None) -> SettleReply:
        if still_runs:
            release.set()
            wait_until(lambda: "ends" in threads, "it ends before its cut is settled")
        return settle(claim, report, still_runs=still_runs)

    rig.calls.settle = slow
    rig.claim("hang", Effect.LOCAL_WRITE, cap_ms=1_000)
    worker = Worker(rig)
    wait_until(lambda: len(worker.answers) == 2, "the function has ended")
    assert rig.log == ["settle timed_out still runs", "settle completed"]


def test_a_cut_that_cannot_be_settled_answers_with_what_was_wrong(
    rig: Rig, threads: list[str], release: threading.Event
) -> None:
    def away(*_: object, **__: object) -> SettleReply:
        raise ConnectionError("Redis is away")

    rig.calls.settle = away
    rig.claim("hang", Effect.LOCAL_WRITE, cap_ms=1_000)
    worker = Worker(rig)
    wait_until(lambda: worker.answers, "the task is answered")
    [(how, failure)] = worker.answers
    assert how == "abandoned"
    assert isinstance(failure, ConnectionError)
    wait_until(lambda: rig.stops.watching == [], "its lease is not beaten for, either: a sweeper finds it")


def test_a_caller_whose_thread_cannot_be_abandoned_comes_back_all_the_same(rig: Rig, threads: list[str]) -> None:
    rig.claim("hang", Effect.LOCAL_WRITE, cap_ms=1_000)
    assert rig.run() == "settled"
    assert threads != [threading.current_thread().name]
