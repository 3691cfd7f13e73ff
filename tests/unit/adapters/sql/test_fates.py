"""What an error of a driver means for its statement and its connection."""

from __future__ import annotations

import sqlite3

import psycopg
import pytest
from psycopg import errors

from brainq.adapters.sql.fates import LEAVING, Fate, fate_of
from brainq.adapters.sql.postgres import NoAnswer, put_first
from brainq.adapters.sql.sql_url import parse_sql_url


def of_sqlite(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("no")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("error", "fate"),
    [
        (errors.ReadOnlySqlTransaction(), "read-only"),
        (errors.AdminShutdown(), "cut"),
        (errors.CrashShutdown(), "cut"),
        (errors.CannotConnectNow(), "cut"),
        (errors.IdleSessionTimeout(), "cut"),
        (errors.IdleInTransactionSessionTimeout(), "cut"),
        (errors.ConnectionException(), "cut"),
        (errors.ConnectionFailure(), "cut"),
        (errors.ProtocolViolation(), "cut"),
        (NoAnswer("late"), "silent"),
        (errors.SerializationFailure(), "in the way"),
        (errors.DeadlockDetected(), "in the way"),
        (errors.LockNotAvailable(), "in the way"),
        (errors.InvalidSqlStatementName(), "unprepared"),
        (errors.DuplicatePreparedStatement(), "unprepared"),
        (errors.QueryCanceled(), "failed"),
        (errors.UniqueViolation(), "failed"),
        (errors.DiskFull(), "failed"),
        (psycopg.OperationalError("connection refused"), "failed"),
        (of_sqlite(sqlite3.SQLITE_BUSY), "in the way"),
        (of_sqlite(sqlite3.SQLITE_BUSY | 2 << 8), "in the way"),
        (of_sqlite(sqlite3.SQLITE_FULL), "failed"),
        (KeyError("k"), "failed"),
    ],
)
def test_each_error_has_one_fate(error: Exception, fate: Fate) -> None:
    assert fate_of(error) == fate


def test_an_error_of_a_closed_connection_leaves_it_unknown_what_happened() -> None:
    closed = psycopg.OperationalError("server closed the connection unexpectedly")
    assert fate_of(closed, is_closed=True) == "cut"
    assert fate_of(errors.ReadOnlySqlTransaction(), is_closed=True) == "read-only", "it surely had no effect"
    assert fate_of(NoAnswer("late"), is_closed=True) == "silent"


def test_a_connection_stays_after_an_error_of_its_statement_alone() -> None:
    assert {"failed", "in the way"}.isdisjoint(LEAVING)
    assert {"read-only", "cut", "silent"} <= LEAVING


@pytest.mark.parametrize(
    ("place", "host", "port"),
    [(0, "a,b,c", "1,2,3"), (1, "b,c,a", "2,3,1"), (2, "c,a,b", "3,1,2")],
)
def test_the_host_of_the_last_connection_is_tried_first(place: int, host: str, port: str) -> None:
    given = {"host": "a,b,c", "port": "1,2,3", "user": "me"}
    assert put_first(given, place) == {"host": host, "port": port, "user": "me"}


def test_hosts_with_addresses_keep_their_order() -> None:
    given = {"host": "a,b", "port": "1,2", "hostaddr": "10.0.0.1,10.0.0.2"}
    assert put_first(given, 1) == given


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("postgresql://me@h:6543/db", [("h", "6543")]),
        ("postgresql://h/db", [("h", "")]),
        ("postgresql:///db", [("", "")]),
        ("postgresql://a,b:6543/db", [("a", "5432"), ("b", "6543")]),
        ("postgresql:///db?host=a:1&host=b", [("a", "1"), ("b", "5432")]),
        ("postgresql:///db?host=a,b&port=1", [("a", "1"), ("b", "1")]),
        ("postgresql:///db?host=[::1]:1&host=/tmp/s", [("::1", "1"), ("/tmp/s", "5432")]),
    ],
)
def test_the_hosts_of_a_url(url: str, hosts: list[tuple[str, str]]) -> None:
    assert parse_sql_url(url).hosts == hosts
