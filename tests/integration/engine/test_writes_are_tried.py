"""Redis and SQL that answer and take no writes: readiness, doctor and errors say so, and why."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import errors
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from brainq.adapters.redis.connection import make_client, try_write
from brainq.adapters.sql import refusals
from brainq.adapters.sql.refusals import sql_refusal
from brainq.adapters.sql.store import Store
from brainq.app.wiring.preflight import check_redis, check_sql
from brainq.client.connection import public_error
from brainq.errors import Unreachable
from tests.support.postgres import postgres_url
from tests.support.server import RedisServer

REDIS_FULL = ("is full, so it accepts no writes", "CONFIG SET maxmemory")


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with postgres_url() as url:
        Store.open(url).close()
        yield url


def rows(engine: Engine) -> list[object]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.exec_driver_sql("SELECT xmax::text, version_num FROM brainq_schema")]


def test_a_try_leaves_nothing_in_postgres_and_does_not_wait_for_another_try(postgres: str) -> None:
    with Store.open(postgres) as store, psycopg.connect(postgres) as other:
        other.execute("UPDATE brainq_schema SET version_num = version_num")  # has the row
        refusals.try_write(store.engine)
        refusals.try_write(store.engine)
        store.require_writes()
        with store.engine.connect() as connection:
            size = connection.exec_driver_sql("SELECT pg_relation_size('brainq_schema'), count(*) FROM brainq_schema")
            assert tuple(size.one()) == (8192, 1)


def test_a_postgres_that_is_read_only_is_not_ready_and_says_so(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')  # pyright: ignore
        try:
            with (
                Store.open(postgres) as store,
                pytest.raises(Unreachable, match="is read-only, so it accepts no writes"),
            ):
                store.require_writes()
            check = check_sql(postgres)
        finally:
            connection.execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')  # pyright: ignore
    assert (check.level, "read-only" in check.said, "start it" in check.remedy) == ("FAIL", True, False)


def test_writes_are_tried_again_at_once_after_they_were_refused(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path / 'a.db'}") as store:
        tried: list[Engine] = []
        answers: list[Exception | None] = [sqlite3.OperationalError("no"), None, None]

        def stand_in(engine: Engine) -> None:
            tried.append(engine)
            if (failure := answers.pop(0)) is not None:
                raise failure

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("brainq.adapters.sql.store.try_write", stand_in)
            with pytest.raises(Unreachable):
                store.require_writes()
            store.require_writes()
            store.require_writes()
        assert len(tried) == 2, "once refused, once well, and then not for some seconds"


def test_a_try_in_sqlite_needs_room_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Store.open(f"sqlite:///{path}") as store:
        with store.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        refusals.try_write(store.engine)
        assert (tmp_path / "a.db-wal").stat().st_size > 100_000, "it reached the disk"
        with sqlite3.connect(path) as connection:
            assert connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'brainq_room'").fetchone() == (
                0,
            )


def test_a_sqlite_file_that_another_one_writes_to_is_taken_to_be_writable(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Store.open(f"sqlite:///{path}") as store, sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        refusals.try_write(store.engine)
        other.execute("ROLLBACK")


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (errors.DiskFull(), "has no space left on its disk"),
        (errors.ReadOnlySqlTransaction(), "is read-only"),
        (errors.DeadlockDetected(), "conflicted with another"),
        (errors.SerializationFailure(), "conflicted with another"),
        (errors.LockNotAvailable(), "conflicted with another"),
        (errors.QueryCanceled(), "took too long"),
        (errors.InsufficientPrivilege(), "does not permit this"),
        (psycopg.OperationalError('FATAL:  password authentication failed for user "me"'), "refuses the login"),
        (psycopg.OperationalError("FATAL:  sorry, too many clients already"), "has no connection left"),
    ],
)
def test_a_refusal_is_never_said_to_be_no_answer(failure: Exception, said: str) -> None:
    shown = str(public_error(DBAPIError("", None, failure)))

    assert said in shown
    assert "does not answer" not in shown
    assert "start it" not in shown


def test_a_sqlite_that_is_full_says_so() -> None:
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL
    refusal = sql_refusal(DBAPIError("", None, full))

    assert refusal is refusals.DISK_FULL


def test_what_does_not_answer_is_still_said_to_be_away() -> None:
    away = psycopg.OperationalError("connection refused")
    assert "SQL does not answer" in str(public_error(DBAPIError("", None, away)))


def test_a_redis_that_takes_no_writes_is_found_by_a_write_that_changes_nothing(redis_server: RedisServer) -> None:
    with make_client(redis_server.url) as client:
        try_write(client, "bq:nothing")
        assert client.exists("bq:nothing") == 0
    redis_server.command("CONFIG", "SET", "maxmemory", "100")
    try:
        full = check_redis(redis_server.url)
    finally:
        redis_server.command("CONFIG", "SET", "maxmemory", "0")
    assert (full.level, REDIS_FULL[0] in full.said, REDIS_FULL[1] in full.remedy) == ("FAIL", True, True)
