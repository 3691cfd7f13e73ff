"""What SQL undid for another client's sake is run again; what else it refuses is not."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import bindparam, update
from sqlalchemy.exc import OperationalError

from brainq.adapters.sql import database
from brainq.adapters.sql.engine import make_engine
from brainq.adapters.sql.store import Store
from brainq.adapters.sql.tables import calls
from brainq.app.wiring.preflight import check_sql
from brainq.contracts.call import ToolSuccess
from brainq.errors import SetupError
from tests.integration.adapters.sql.examples import start
from tests.support.module_time import replace_time
from tests.support.postgres import postgres_server, postgres_url
from tests.support.wait import wait_until

REPEATABLE_READ = "&options=-c%20default_transaction_isolation%3Drepeatable%5C%20read"


def test_the_outcome_of_a_write_is_recorded_after_a_serialization_failure() -> None:
    with postgres_url() as url, Store.open(url + REPEATABLE_READ) as store, psycopg.connect(url) as other:
        start(store)
        other.execute("UPDATE calls SET tool = tool")  # holds the row, and changes it
        outcome = ToolSuccess(value=1)
        recording = threading.Thread(target=store.calls.record_outcome, args=("turn-1", "c1-0", 1, outcome, False))
        recording.start()

        def is_blocked() -> bool:
            waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            with psycopg.connect(url, autocommit=True) as watching:
                return watching.execute(waits).fetchone() == (1,)

        wait_until(is_blocked, "the outcome waits for the row")
        other.commit()
        recording.join(30)
        assert [row.state for row in store.calls.of_turn("turn-1")] == ["done"]


def locked_file(tmp_path: Path) -> tuple[Store, sqlite3.Connection]:
    url = f"sqlite:///{tmp_path / 'a.db'}?timeout=0"
    store = Store.open(url)
    other = sqlite3.connect(tmp_path / "a.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    return store, other


def test_a_lone_statement_and_a_begin_that_met_a_busy_file_are_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = locked_file(tmp_path)
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if other.in_transaction:
            other.execute("ROLLBACK")

    replace_time(monkeypatch, database, sleep=pause)
    with closing(other), store:
        start(store)
        other.execute("BEGIN IMMEDIATE")
        with store.database.transaction():
            pass
    assert len(pauses) == 2


def test_a_statement_is_not_repeated_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, other = locked_file(tmp_path)
    clock = [0.0]

    def pause(seconds: float) -> None:
        clock[0] += seconds
        assert clock[0] < 100

    replace_time(monkeypatch, database, sleep=pause, monotonic=lambda: clock[0])
    with closing(other), store, pytest.raises(OperationalError, match="locked"):
        start(store)
    assert 8.0 <= clock[0] < 10.0


def test_a_statement_inside_a_transaction_is_not_repeated_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    paused: list[float] = []
    change = update(calls).values(tool=bindparam("name", type_=calls.c.tool.type))
    with postgres_url() as url, Store.open(url) as store, psycopg.connect(url) as other:
        start(store)
        other.execute("UPDATE calls SET tool = tool")

        def change_within() -> None:
            with store.database.transaction() as connection:
                connection.write_text("SET LOCAL lock_timeout = 1", [()])
                connection.write(change, {"name": "x"})

        replace_time(monkeypatch, database, sleep=paused.append)
        with pytest.raises(OperationalError, match="lock timeout"):
            change_within()
    assert paused == []


def test_a_database_without_an_encoding_is_refused_with_the_remedy() -> None:
    server = postgres_server()
    with psycopg.connect(server.url(), autocommit=True) as connection:
        make = "CREATE DATABASE ascii ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        connection.execute(sql.SQL(make))
        try:
            with pytest.raises(SetupError, match=r"SQL_ASCII.*ENCODING 'UTF8'"):
                Store.open(server.url("ascii"))
            check = check_sql(server.url("ascii"))
        finally:
            connection.execute("DROP DATABASE ascii WITH (FORCE)")
    assert (check.level, "SQL_ASCII" in check.said, "ENCODING 'UTF8'" in check.remedy) == ("FAIL", True, True)


def test_what_was_removed_is_not_left_in_the_files_free_pages(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    engine = make_engine(f"sqlite:///{path}")
    secret = "a secret that nobody is to find " * 500
    with engine.connect() as connection:
        connection.exec_driver_sql("CREATE TABLE texts (text)")
        connection.exec_driver_sql("INSERT INTO texts VALUES (?)", (secret,))
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        assert b"nobody is to find" in path.read_bytes()
        connection.exec_driver_sql("UPDATE texts SET text = NULL")
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    engine.dispose()

    assert b"nobody is to find" not in path.read_bytes()
