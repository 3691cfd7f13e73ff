"""A worker that cannot work consumes nothing, and says so."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from brainq.adapters.celery import names, worker_health
from brainq.adapters.celery.celery57 import consumer as consumer_module
from brainq.adapters.celery.thread_step import thread_step
from brainq.adapters.celery.worker_health import SETUP_EXIT, WorkerHealth
from brainq.adapters.redis.connection import make_client
from brainq.adapters.sql.store import Store
from brainq.app.wiring import doorbells
from brainq.errors import SetupError, Unreachable
from tests.integration.adapters.celery.worker import Heard, listening_app, quarantined, ring, running, settings_for
from tests.support.pump import sqlite_url
from tests.support.server import RedisServer
from tests.support.wait import wait_until


class Sql:
    """A database that is there or not."""

    def __init__(self) -> None:
        self.is_away = False
        self.looks = 0

    def look(self) -> None:
        self.looks += 1
        if self.is_away:
            raise Unreachable("the SQL database at nowhere does not answer")


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TICK_S", "CHECK_EVERY_S", "RECHECK_EVERY_S", "PAUSE_S"):
        monkeypatch.setattr(worker_health, name, 0.02)


def worker_app(redis_url: str, sql: Sql) -> tuple[Any, Heard, WorkerHealth]:
    app: Any
    app, heard = listening_app(settings_for(redis_url))
    app.fitness = WorkerHealth(sql.look, {"SQL": sql.look})
    for name, loop in (("fitness", app.fitness.watch), ("looks", app.fitness.look)):
        app.steps["worker"].add(thread_step(name, loop))
    return app, heard, app.fitness


def bell(redis_url: str, name: str) -> str:
    text = doorbells(settings_for(redis_url)).queues["turns"].text
    for placeholder, value in {"ARGS": f'[\\"s\\", \\"{name}\\", 0]', "TASK_ID": name, "TAG": name}.items():
        text = text.replace(f"%{placeholder}%", value)
    return text.replace("%ARGSREPR%", "()").replace("%ROOT_ID%", name)


def queued(server: RedisServer) -> int:
    return int(server.command("LLEN", f"bq:{names.TURNS_QUEUE}")[0])


def test_while_sql_is_away_doorbells_stay_where_they_are(
    redis_server: RedisServer, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "brainq.tasks")
    sql = Sql()
    app, heard, _ = worker_app(redis_url, sql)
    settings = settings_for(redis_url)
    with running(app) as worker:
        ring(redis_server, settings, bell(redis_url, "t1"))
        wait_until(lambda: len(heard.bells) == 1, "the worker consumes")
        sql.is_away = True
        wait_until(lambda: "consumes no messages" in caplog.text, "it says that it stops")
        wait_until(lambda: not worker.consumer.task_consumer._active_tags, "it stopped")
        # A pop that was under way may bring one more, which goes back.
        ring(redis_server, settings, *(bell(redis_url, f"t{n}") for n in range(2, 6)))
        looks = sql.looks
        wait_until(lambda: sql.looks > looks + 20, "time passed")
        before = len(heard.bells)
        assert before + queued(redis_server) == 5
        assert before <= 2
        sql.is_away = False
        wait_until(lambda: len(heard.bells) == 5, "it works them all off")
    said = [record.message for record in caplog.records if record.name == "brainq.tasks"]
    assert len(said) == 2
    assert said[0].startswith("this worker cannot work, so it consumes no messages for now why=the SQL database")
    assert said[1].startswith("this worker can work again")


@pytest.mark.parametrize("fails", [AttributeError("it has no `grow`"), RuntimeError("can't start new thread")])
def test_what_fails_when_a_task_is_started_is_not_the_messages_fault(
    redis_server: RedisServer, redis_url: str, caplog: pytest.LogCaptureFixture, fails: Exception
) -> None:
    caplog.set_level(logging.INFO, "brainq.broker")
    app, heard, _ = worker_app(redis_url, Sql())
    settings, failures = settings_for(redis_url), [fails, fails]

    def watch(_: object) -> None:
        raise fails

    with running(app) as worker:
        start = worker.consumer.on_task_request

        def refuse(request: object) -> None:
            if failures:
                raise failures.pop()
            start(request)

        worker.consumer.on_task_request = refuse
        worker.consumer.on_task_message.add(watch)
        ring(redis_server, settings, bell(redis_url, "t1"), bell(redis_url, "t2"))
        wait_until(lambda: len(heard.bells) == 2, "both run in the end")
    assert (failures, quarantined(redis_server, settings), queued(redis_server)) == ([], [], 0)
    assert caplog.text.count("a task could not be started, so its message returns to its queue") == 2
    assert caplog.text.count("a handler of received tasks failed") == 4


def test_a_connection_that_is_lost_is_not_consuming_until_there_is_another(redis_url: str) -> None:
    app, _, _ = worker_app(redis_url, Sql())
    with closing(make_client(redis_url)) as client:
        of_others = {one["id"] for one in client.client_list()}  # this process' other tests keep connections
        with running(app) as worker:
            consumer = worker.consumer
            wait_until(lambda: consumer.consumes, "it consumes")
            seen: list[bool] = []
            reconnect = consumer.ensure_connected

            def connect(connection: Any) -> Any:
                seen.append(consumer.consumes)
                return reconnect(connection)

            consumer.ensure_connected = connect

            def cut() -> list[bool]:
                """Cut its connections. One that is idle in its pool is only replaced, and tells the worker nothing."""
                for one in {one["id"] for one in client.client_list()} - of_others:
                    client.client_kill_filter(_id=one)
                return seen

            wait_until(cut, "it connects again")
            wait_until(lambda: consumer.consumes, "it consumes again")
            assert not any(seen)


def test_a_loop_that_does_not_turn_is_not_consuming(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app, _, _ = worker_app(redis_url, Sql())
    with running(app) as worker:
        wait_until(lambda: worker.consumer.consumes, "it consumes")
        with monkeypatch.context() as stalled:
            stalled.setattr(consumer_module, "LOOP_STALL_S", 0.0)
            assert not worker.consumer.consumes
        assert worker.consumer.consumes


def test_a_worker_that_starts_without_sql_waits_for_it(redis_server: RedisServer, redis_url: str) -> None:
    sql = Sql()
    sql.is_away = True
    app, heard, _ = worker_app(redis_url, sql)
    ring(redis_server, settings_for(redis_url), bell(redis_url, "t1"))

    def mend() -> None:
        wait_until(lambda: sql.looks > 5, "it looked again and again")
        assert (queued(redis_server), heard.bells) == (1, [])
        sql.is_away = False

    mender = threading.Thread(target=mend)
    mender.start()
    with running(app):
        wait_until(lambda: len(heard.bells) == 1, "it consumes")
    mender.join()


def test_what_waiting_does_not_mend_ends_the_worker() -> None:
    def wrong() -> None:
        raise SetupError("the SQL schema is at revision 9999, which this brainq does not know")

    with pytest.raises(SystemExit) as ended:
        WorkerHealth(wrong, {}).wait_fit(lambda: None)
    assert ended.value.code == SETUP_EXIT


def test_a_release_that_meets_a_newer_schema_says_so_and_exits(redis_url: str, tmp_path: Path) -> None:
    sql_url = sqlite_url(tmp_path)
    with closing(Store.open(sql_url)) as store, store.engine.connect() as connection:
        connection.exec_driver_sql("UPDATE brainq_schema SET version_num = '9999'")
    worker = subprocess.run(
        [*(sys.executable, "-m", "celery", "-A", "brainq.workers.parallel", "worker"), *("-c", "1")],
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": ".",
            "BRAINQ_APP": "tests.support.brains.echoing:brain",
            "BRAINQ_REDIS_URL": redis_url,
            "BRAINQ_SQL_URL": sql_url,
        },
        cwd=Path(__file__).parents[4],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert worker.returncode == SETUP_EXIT, worker.stderr
    assert "revision 9999, newer than this brainq" in worker.stderr
    assert "ready." not in worker.stderr
