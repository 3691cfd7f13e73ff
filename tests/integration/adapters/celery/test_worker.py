"""Parts of a real worker: the sweeper's thread, and what it serves."""

from __future__ import annotations

import logging
import threading
from typing import Any, cast

import pytest
from celery.contrib.testing.worker import start_worker

from brainq.adapters.celery import thread_step
from brainq.adapters.celery.app import make_app
from brainq.adapters.celery.names import COORDINATOR_QUEUES
from tests.integration.adapters.celery.worker import running, settings_for
from tests.support.server import RedisServer
from tests.support.wait import wait_until


def test_a_thread_step_runs_while_its_worker_does_and_is_started_again_if_it_fails(
    redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "brainq")
    runs: list[int] = []
    alive = threading.Event()
    stopped = threading.Event()

    def sweep(stopping: threading.Event, worker: Any) -> None:
        runs.append(1)
        if len(runs) < 4:
            raise SystemExit(3)
        alive.set()
        stopping.wait()
        stopped.set()

    app = make_app(settings_for(redis_url), COORDINATOR_QUEUES)
    cast("Any", app.steps)["worker"].add(thread_step.thread_step("sweeper", sweep))
    with running(app):
        assert alive.wait(60)
        assert not stopped.is_set()
    assert stopped.wait(60)
    assert len(runs) == 4
    assert caplog.text.count("sweeper failed and will be tried again") == 1
    wait_until(lambda: "brainq-sweeper" not in [thread.name for thread in threading.enumerate()], "the thread is gone")


def test_a_worker_has_heartbeats_but_no_gossip_and_serves_only_our_tasks(redis_url: str) -> None:
    app = make_app(settings_for(redis_url), COORDINATOR_QUEUES)

    def work() -> None: ...

    app.task(work, name="brainq.work")
    app.task(work, name="foreign.work")
    worker: Any
    with cast("Any", start_worker)(
        app, pool=app.conf.worker_pool, perform_ping_check=False, without_heartbeat=False
    ) as worker:
        steps_on = {step.alias for step in worker.consumer.steps}
        served: Any = worker.consumer.strategies
        assert set(served) == {"brainq.work"}
        assert {"Heart", "Events", "Control", "Tasks"} <= steps_on
        assert not {"Gossip", "Mingle"} & steps_on
        assert [queue.name for queue in worker.consumer.task_consumer.queues] == list(COORDINATOR_QUEUES)


def test_a_stopped_worker_leaves_only_celerys_own_few_keys(redis_server: RedisServer, redis_url: str) -> None:
    with running(make_app(settings_for(redis_url), COORDINATOR_QUEUES)):
        pass
    allowed = {"bq:_kombu.binding." + name for name in ("celery.pidbox", "celeryev", "reply.celery.pidbox")}
    assert set(redis_server.keys()) <= allowed | {"bq:_kombu.binding_deadlines"}
