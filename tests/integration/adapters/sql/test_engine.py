"""Engines: which urls are taken, how connections are set up, what a lost connection costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from brainq.adapters.sql import engine as engine_module
from brainq.adapters.sql.engine import make_engine, transaction, unsafe_settings
from brainq.adapters.sql.store import Store
from brainq.adapters.sql.text import sql_text
from brainq.errors import SetupError
from tests.integration.adapters.sql.examples import at_once, request, start


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_postgres_urls_are_rewritten_to_psycopg(scheme: str) -> None:
    engine = make_engine(f"{scheme}://me:secret@db.example/app?application_name=mine")

    assert engine.url.drivername == "postgresql+psycopg"
    assert engine.url.query["application_name"] == "mine"


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("sqlite://", "in-memory"),
        ("sqlite:///:memory:", "in-memory"),
        ("mysql://h/db", "mysql"),
        ("postgresql+psycopg2://h/db", "psycopg2"),
        ("no url", "cannot be read"),
    ],
)
def test_other_urls_are_refused(url: str, problem: str) -> None:
    with pytest.raises(SetupError, match=problem):
        make_engine(url)


def test_a_server_that_does_not_answer_is_named_without_its_password() -> None:
    with pytest.raises(SetupError, match=r"me:\*\*\*@127\.0\.0\.1:1/app does not answer") as refused:
        Store.open("postgresql://me:secret@127.0.0.1:1/app")

    assert "secret" not in str(refused.value)


def test_sqlite_connections_are_set_up(tmp_path: Path) -> None:
    engine = make_engine(f"sqlite:///{tmp_path / 'a.db'}")
    with engine.connect() as connection:
        names = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        found = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in names]
    engine.dispose()

    assert found == ["wal", 1, 1, 10_000]


def test_a_lone_write_is_one_statement(store: Store) -> None:
    sent = sent_by(store.engine)

    store.turns.accept(request())
    start(store)

    assert [statement.split()[0] for statement in sent] == ["INSERT", "INSERT"]


def test_a_transaction_is_undone_by_an_exception(store: Store) -> None:
    insert = text("INSERT INTO finalizer_steps VALUES ('t', 's', 'done', 1, 'k', '2026-01-01', '')")

    def write_and_fail() -> None:
        with transaction(store.engine) as connection:
            connection.execute(insert)
            raise KeyError

    with pytest.raises(KeyError):
        write_and_fail()

    assert store.steps.of_turn("t") == []


def test_error_texts_hold_no_parameters(store: Store) -> None:
    with pytest.raises(DBAPIError) as refused, store.engine.connect() as connection:
        connection.execute(text("SELECT * FROM nowhere WHERE a = :secret"), {"secret": "my prompt"})

    assert "my prompt" not in str(refused.value)


def test_a_hundred_threads_share_the_pool(store: Store) -> None:
    answers = at_once([lambda n=n: store.turns.accept(request(f"turn-{n}")) for n in range(100)])

    assert all(answer.created for answer in answers)
    assert len(store.turns.unended(0, 200)) == 100


@pytest.mark.parametrize("backend", ["postgres"])  # a file does not hang up
def test_a_connection_that_died_while_idle_is_replaced(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "PING_AFTER_IDLE_S", 0.0)
    with store.engine.connect() as connection:
        pid = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
    other = make_engine(store.engine.url.render_as_string(hide_password=False))
    with other.connect() as connection:
        connection.execute(text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": pid})
    other.dispose()

    assert store.turns.accept(request()).created is True


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("plain", "plain"),
        ("caf\u00e9 \U0001f600", "caf\u00e9 \U0001f600"),
        ("a\x00b", "a\ufffdb"),
        ("a\ud83d", "a\ufffd"),
        ("\ude00\x00\ud83d", "\ufffd\ufffd\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
    ],
)
def test_text_that_databases_refuse_is_replaced(given: str, kept: str) -> None:
    assert sql_text(given) == kept


class _Noting:
    """Something of the driver's; what is executed is noted in `sent`."""

    def __init__(self, of_driver: Any, sent: list[str]) -> None:
        self._of_driver = of_driver
        self._sent = sent

    def cursor(self) -> _Noting:
        return _Noting(self._of_driver.cursor(), self._sent)

    def execute(self, statement: str, values: Any) -> None:
        self._sent.append(statement)
        self._of_driver.execute(statement, values)

    def executemany(self, statement: str, rows: Any) -> None:
        self._sent.append(statement)
        self._of_driver.executemany(statement, rows)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of_driver, name)


def sent_by(engine: Engine) -> list[str]:
    sent: list[str] = []
    noted: Any = engine
    connected = noted.raw_connection
    noted.raw_connection = lambda: _Noting(connected(), sent)
    return sent


def test_a_postgres_that_may_lose_commits_is_known(sql_url: str, backend: str) -> None:
    engine = make_engine(sql_url)
    found = unsafe_settings(engine)
    engine.dispose()

    assert found == (["synchronous_commit", "fsync"] if backend == "postgres" else [])  # as the test server is set
