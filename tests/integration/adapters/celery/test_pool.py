"""A real worker on brainq's pool: what monitors see, what a stop returns, and a task that is given up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from celery import Celery
from celery.bootsteps import TERMINATE
from celery.worker import state

from brainq.adapters.celery.app import make_app
from brainq.adapters.celery.celery57.thread_pool import TaskRun, current_run
from brainq.adapters.celery.names import COORDINATOR_QUEUES, TURN_ADVANCE, TURNS_QUEUE, queue_key
from brainq.contracts.status import WorkFailure, WorkOutcome
from brainq.engine.calls.function_run import Abandon
from brainq.runtime.processes.pool_threads import POOL_THREADS
from brainq.runtime.settings.deployment import Settings
from brainq.workers.tasks.register import current_abandon
from tests.integration.adapters.celery.worker import running, settings_for, watching
from tests.support.server import RedisServer
from tests.support.wait import wait_until


class Stuck:
    """Tasks that go on until let go, by their first argument."""

    def __init__(self) -> None:
        self.runs: dict[str, TaskRun] = {}
        self.gates: dict[str, threading.Event] = {name: threading.Event() for name in "abcd"}
        self.ended: list[str] = []

    def work(self, name: str) -> str:
        run = current_run()
        assert run is not None
        self.runs[name] = run
        self.gates[name].wait(60)
        self.ended.append(name)
        return "by itself"

    def let_all_go(self) -> None:
        for gate in self.gates.values():
            gate.set()


def stuck_app(settings: Settings, work: Callable[..., object]) -> Celery:
    app: Any = make_app(settings, COORDINATOR_QUEUES)
    app.task(work, name=TURN_ADVANCE)
    return app


def send(app: Celery, *names: str) -> None:
    for name in names:
        app.send_task(TURN_ADVANCE, (name,), task_id=name)


def test_inspect_tells_what_runs_and_how_many_threads_there_are(redis_url: str) -> None:
    stuck = Stuck()
    app: Any = stuck_app(settings_for(redis_url), stuck.work)
    before = state.total_count[TURN_ADVANCE]
    with running(app, concurrency=2):
        send(app, "a", "b")
        wait_until(lambda: len(stuck.runs) == 2, "two run")
        asked = app.control.inspect(timeout=5.0, limit=1)
        (active,) = asked.active().values()
        assert sorted(task["id"] for task in active) == ["a", "b"]
        assert all(task["time_start"] and task["worker_pid"] for task in active)
        (stats,) = asked.stats().values()
        assert stats["pool"]["implementation"] == "brainq.adapters.celery.celery57.thread_pool:TaskPool"
        assert (stats["pool"]["max-concurrency"], stats["pool"]["threads"]) == (2, 2)
        stuck.let_all_go()
        wait_until(lambda: not next(iter(asked.active().values())), "none runs")
        (stats,) = asked.stats().values()
        assert stats["total"][TURN_ADVANCE] == before + 2


def test_a_stop_waits_for_what_runs_and_returns_what_does_not(
    redis_url: str, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = Stuck()
    settings = settings_for(redis_url)
    app = stuck_app(settings, stuck.work)
    with running(app, concurrency=1) as worker:
        # The second is taken, too: a pool may have room before the thread that made it is done.
        POOL_THREADS.serve({"coordinator": 2})
        send(app, "a", "b", "c")
        wait_until(lambda: len(state.reserved_requests) == 2, "one runs, one waits for a thread")
        monkeypatch.setattr(state, "should_stop", 0)
        wait_until(lambda: worker.pool._threads._closed, "it stops")
        assert not stuck.ended
        stuck.let_all_go()
        wait_until(lambda: worker.blueprint.state == TERMINATE, "it has stopped")
    monkeypatch.setattr(state, "should_stop", None)
    assert stuck.ended == ["a"]
    assert len(redis_server.command("LRANGE", queue_key(settings, TURNS_QUEUE), "0", "-1")) == 2
    with running(app, concurrency=1):
        wait_until(lambda: sorted(stuck.ended) == ["a", "b", "c"], "the next worker does the others")


def test_a_task_revoked_before_it_runs_does_not_run(redis_url: str) -> None:
    stuck = Stuck()
    app = stuck_app(settings_for(redis_url, task_events=True), stuck.work)
    state.revoked.add("a")
    try:
        with running(app, concurrency=1), watching(app) as events:
            send(app, "a", "b")
            wait_until(lambda: "b" in stuck.runs, "the other one runs")
            wait_until(lambda: "task-revoked" in events, "it is seen")
            assert events["task-revoked"]["uuid"] == "a"
            assert "a" not in stuck.runs
            stuck.let_all_go()
    finally:
        state.revoked.discard("a")


def test_a_task_that_is_given_up_is_seen_as_failed_and_its_place_is_free(redis_url: str) -> None:
    stuck = Stuck()
    app: Any = stuck_app(settings_for(redis_url, task_events=True), stuck.work)
    with running(app, concurrency=1), watching(app) as events:
        send(app, "a", "b")
        wait_until(lambda: "a" in stuck.runs, "it runs")
        assert stuck.runs["a"].abandon(TimeoutError("too long"))
        wait_until(lambda: "b" in stuck.runs, "the next one runs")
        wait_until(lambda: "task-failed" in events, "it is seen")
        assert events["task-failed"]["uuid"] == "a"
        assert events["task-failed"]["exception"] == "TimeoutError('too long')"
        (active,) = app.control.inspect(timeout=5.0, limit=1).active().values()
        assert [task["id"] for task in active] == ["b"]
        stuck.let_all_go()
        wait_until(lambda: sorted(stuck.ended) == ["a", "b"], "both functions ended")
        wait_until(lambda: "task-succeeded" in events, "the other one is seen")
    assert [event["uuid"] for event in events.all if event["type"] == "task-succeeded"] == ["b"]


class Lost(Exception):
    """Redis is away."""


@pytest.mark.parametrize("settled", ["done", "timed out", "away"])
def test_an_abandoned_call_is_answered_with_what_settled_it(redis_url: str, settled: str) -> None:
    means: dict[str, Abandon | None] = {}
    release = threading.Event()

    def work(name: str) -> None:
        means[name] = current_abandon()
        if name == "a":
            release.wait(60)

    def settle() -> str:
        if settled == "away":
            raise Lost
        return WorkOutcome("settled", WorkFailure.CALL_TIMED_OUT if settled == "timed out" else None)

    app = stuck_app(settings_for(redis_url, task_events=True), work)
    with running(app, concurrency=1), watching(app) as events:
        send(app, "a", "b")
        wait_until(lambda: "a" in means, "it runs")
        abandon = means["a"]
        assert abandon is not None
        abandon(settle)
        wait_until(lambda: "b" in means, "the next one has its place")
        word = "task-succeeded" if settled == "done" else "task-failed"
        wait_until(lambda: [e for e in events.all if e["type"] == word and e["uuid"] == "a"], "it is seen")
        release.set()
    seen = [event for event in events.all if event["type"] == word and event["uuid"] == "a"]
    failures = {"done": [None], "timed out": ["CallTimedOut()"], "away": ["Lost()"]}
    assert [event.get("exception") for event in seen] == failures[settled]


def test_a_thread_that_is_none_of_the_pool_s_cannot_be_abandoned() -> None:
    assert current_abandon() is None


def test_a_task_that_ends_its_thread_ends_as_failed(redis_url: str) -> None:
    def exiting(name: str) -> None:
        if name == "a":
            raise SystemExit(3)

    app = stuck_app(settings_for(redis_url, task_events=True), exiting)
    with running(app, concurrency=1), watching(app) as events:
        send(app, "a", "b")
        wait_until(lambda: "task-failed" in events and "task-succeeded" in events, "both are seen")
        assert events["task-failed"]["uuid"] == "a"
        assert events["task-succeeded"]["uuid"] == "b"


def test_the_end_of_a_task_during_a_stop_is_seen(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = Stuck()
    app = stuck_app(settings_for(redis_url, task_events=True), stuck.work)
    with watching(app) as events:
        with running(app, concurrency=1) as worker:
            send(app, "a")
            wait_until(lambda: "a" in stuck.runs, "it runs")
            monkeypatch.setattr(state, "should_stop", 0)
            wait_until(lambda: worker.pool._threads._closed, "it stops")
            stuck.let_all_go()
            wait_until(lambda: worker.blueprint.state == TERMINATE, "it has stopped")
        wait_until(lambda: "task-succeeded" in events, "its end is seen")
    assert events["task-succeeded"]["uuid"] == "a"


def test_what_a_producer_sends_as_a_date_arrives_as_one(redis_url: str) -> None:
    when = datetime(2026, 11, 22, 15, 0, tzinfo=UTC)
    heard: list[object] = []

    def hear(name: object) -> None:
        heard.append(name)

    app = stuck_app(settings_for(redis_url), hear)
    with running(app):
        app.send_task(TURN_ADVANCE, (when,))
        app.send_task(TURN_ADVANCE, ('"__type__"',))
        wait_until(lambda: len(heard) == 2, "both ran")
    assert set(heard) == {when, '"__type__"'}
