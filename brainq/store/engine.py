"""One SQLAlchemy engine a process, for SQLite or Postgres; and whether an exception says that SQL is unavailable.

Its connections are in autocommit: a lone statement is its own transaction, and costs one round trip. Several go through
`Database.transaction`, which sends the BEGIN itself. On SQLite that is BEGIN IMMEDIATE: a transaction that reads first
and writes later would otherwise fail at once, without waiting, when another process wrote in between.
"""

from __future__ import annotations

import fcntl
import functools
import os
import sqlite3
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, PoolProxiedConnection, QueuePool, create_engine, event
from sqlalchemy.exc import (
    ArgumentError,
    DataError,
    IntegrityError,
    InvalidatePoolError,
    SQLAlchemyError,
    StatementError,
)

from brainq.errors import SetupError
from brainq.store.sql_url import SqlUrl, parse_sql_url

POOL_SIZE = 16  # 5 processes stay below Postgres' default of 100 connections; 100 threads take turns
POOL_TIMEOUT_S = 30.0  # longer than ANSWER_S: when all hang, the first to give up makes room
BUSY_TIMEOUT_S = 10.0
PING_AFTER_IDLE_S = 10.0
PING_S = 3.0
ANSWER_S = 20.0  # statements take milliseconds; a thread that waits for one holds a lease and a slot
_OLDEST_SQLITE = (3, 35, 0)  # RETURNING


def make_engine(url: str, *, pool_size: int = POOL_SIZE, answer_s: float | None = ANSWER_S) -> Engine:
    """Return an engine for what `parse_sql_url` reads; connects lazily.

    answer_s   how long Postgres is waited for; a statement may take three quarters of it. None: as long as it takes

    Make it after any fork. Statement parameters are kept out of error texts and logs.
    Raises SetupError for any other URL, for in-memory SQLite, or when a driver is missing.
    """
    parsed = parse_sql_url(url)
    connect_args: dict[str, Any] = {}
    if parsed.url.drivername == "sqlite":
        _check_sqlite(parsed.url)
        connect_args = {} if "timeout" in parsed.url.query else {"timeout": BUSY_TIMEOUT_S}
    try:
        engine = create_engine(
            parsed.url,
            connect_args=connect_args,
            poolclass=QueuePool,
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=POOL_TIMEOUT_S,
            pool_use_lifo=True,
            isolation_level="AUTOCOMMIT",
            hide_parameters=True,
        )
    except ModuleNotFoundError as missing:
        raise SetupError(f"{missing.name} is not installed: pip install 'brainq[postgres]'") from missing
    except ArgumentError as error:
        raise SetupError(f"the hosts and ports of the SQL URL do not fit together; {error}") from None
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _on_sqlite_connect)
    else:
        _connect_by_link(engine, parsed, answer_s)
        event.listen(engine, "checkin", _note_idle)
        event.listen(engine, "checkout", _ping_if_idle)
    return engine


def _connect_by_link(engine: Engine, parsed: SqlUrl, answer_s: float | None) -> None:
    from brainq.store.postgres import CONNECT_ARGS, PostgresLink

    query = parsed.url.query
    options = {name: value for name, value in CONNECT_ARGS.items() if name not in query} | parsed.options
    by_statement = "statement_timeout" not in str(query.get("options", ""))
    link = PostgresLink(answer_s, by_statement=by_statement, pooled=parsed.pooled)

    def connect(_dialect: Any, _record: Any, args: Any, given: Any) -> Any:
        return link.connect(*args, **options, **given)

    event.listen(engine, "do_connect", connect)


@contextmanager
def without_time_limits(connection: Connection) -> Generator[None]:
    """No limits on a Postgres connection, for what may take minutes in a transaction. Others use the connection later,
    and are bounded again."""
    driver: Any = connection.connection.driver_connection
    answer_s, driver.answer_s = driver.answer_s, None
    try:
        connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        yield
    finally:
        driver.answer_s = answer_s


@contextmanager
def transaction(engine: Engine) -> Generator[Connection]:
    """A connection inside an explicit transaction: committed at the end, rolled back on an exception."""
    with engine.connect() as connection, connection.begin():
        connection.exec_driver_sql(begin_statement(connection.connection))
        yield connection


def begin_statement(connection: PoolProxiedConnection) -> str:
    """Return how a transaction is begun on a connection, with the limits that last only for it."""
    driver: Any = connection.driver_connection
    return "BEGIN IMMEDIATE" if isinstance(driver, sqlite3.Connection) else driver.begin


def _check_sqlite(url: URL) -> None:
    path = url.database
    if not path or path == ":memory:" or "mode=memory" in path:
        raise SetupError("an in-memory SQLite database cannot be shared between workers; use sqlite:///path/to.db")
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise SetupError(f"SQLite {sqlite3.sqlite_version} is too old; brainq needs 3.35 or newer, or Postgres")
    require_fts5()
    if not path.startswith("file:"):
        Path(path).parent.mkdir(parents=True, exist_ok=True)


def require_file(url: str) -> None:
    """Raise SetupError when `url` is of a SQLite file that does not exist; to open it would make one."""
    path = parse_sql_url(url).sqlite_path
    if path and not Path(path).exists():
        raise SetupError(
            f"there is no database at {path!r}; set BRAINQ_SQL_URL, or BRAINQ_DATA_DIR, to where the workers keep "
            "theirs"
        )


@functools.cache
def require_fts5() -> None:
    """Raise SetupError when this Python's SQLite cannot search."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE probe USING fts5(terms)")
    except sqlite3.OperationalError as error:
        raise SetupError(
            f"this Python's SQLite ({sqlite3.sqlite_version}) was built without FTS5, which memory is searched "
            "with; use a Python whose SQLite has it (those of python.org, uv, Debian, Fedora and macOS do), or "
            "Postgres: BRAINQ_SQL_URL=postgresql://..."
        ) from error
    finally:
        connection.close()


def _on_sqlite_connect(connection: Any, _record: Any) -> None:
    _enter_wal(connection)
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute("PRAGMA secure_delete=ON")  # what was redacted or removed is not left in free pages


def _enter_wal(connection: Any) -> None:
    """The change of mode may be refused without waiting when several processes open a new file at once."""
    end = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError:
            if time.monotonic() >= end:
                raise
            time.sleep(0.005)
        else:
            return


def unsafe_settings(engine: Engine) -> list[str]:
    """The settings of a Postgres by which a power cut may take back what it has committed."""
    if engine.dialect.name == "sqlite":
        return []
    with engine.connect() as connection:
        settings = {
            name: connection.exec_driver_sql(f"SHOW {name}").scalar() for name in ("synchronous_commit", "fsync")
        }
    return [name for name, value in settings.items() if value == "off"]


def pooler_between(engine: Engine) -> bool | None:
    """Return whether connections are made for a pooler in transaction mode. Returns None if they are not, and two of
    them were seen to share a server nevertheless. The engine has two connections at least."""
    if engine.dialect.name == "sqlite":
        return False
    with engine.connect() as one, engine.connect() as other:
        driver: Any = one.connection.driver_connection
        servers = {each.exec_driver_sql("SELECT pg_backend_pid()").scalar() for each in (one, other)}
    if driver.link.pooled:
        return True
    return False if len(servers) == 2 else None


def log_path(engine: Engine) -> str | None:
    """The write-ahead log of a SQLite file, of which NORMAL syncs no commit; None of another database."""
    if engine.dialect.name != "sqlite":
        return None
    return (engine.url.database or "").removeprefix("file:").partition("?")[0] + "-wal"


def sync_file(path: str) -> None:
    """Return once all that was written to the file, by any process, outlives a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if sys.platform == "darwin":  # where fsync leaves it in the disk's cache
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        else:
            os.fdatasync(descriptor)  # as SQLite does: of the file's own fields only its size matters
    finally:
        os.close(descriptor)


def _note_idle(_connection: Any, record: Any) -> None:
    record.info["idle_since"] = time.monotonic()


def _ping_if_idle(connection: Any, record: Any, _proxy: Any) -> None:
    """Replace a connection that died while idle; a ping on every checkout would double the round trips."""
    idle_since = record.info.get("idle_since")
    if idle_since is None or time.monotonic() - idle_since < PING_AFTER_IDLE_S:
        return
    answer_s = connection.answer_s
    connection.answer_s = PING_S
    try:
        connection.execute("SELECT 1")
    except Exception as error:
        # The others are as old: each of them would be waited for.
        raise InvalidatePoolError("the connection died while idle") from error
    finally:
        connection.answer_s = answer_s


_IN_THE_WAY = frozenset({"40001", "40P01", "55P03"})  # serialization failure, deadlock, lock not available
_SQLITE_IN_THE_WAY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


def was_in_the_way(error: Exception) -> bool:
    """Return whether a driver's error says that a statement was undone, or not begun, because of another client's. The
    same statement may succeed when it is run again."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", 0) & 0xFF in _SQLITE_IN_THE_WAY
    return getattr(error, "sqlstate", None) in _IN_THE_WAY or _is_lost_statement(error)


def unprepare(connection: PoolProxiedConnection, error: Exception) -> bool:
    """Return whether a driver's error says that a pooler in transaction mode is between. Then nothing more is
    prepared on this connection, nor on those that are made from now on."""
    if not _is_lost_statement(error):
        return False
    driver: Any = connection.driver_connection
    driver.prepare_threshold = None
    driver.link.note_pooler("a prepared statement was on another server")
    return True


def _is_lost_statement(error: Exception) -> bool:
    # Nothing was run: a prepared statement is not there, or a stranger has one of its name.
    return getattr(error, "sqlstate", None) in ("26000", "42P05")


def is_sql_unavailable(failure: BaseException) -> bool:
    """False for what would fail in just the same way again, such as a value that no column takes."""
    if isinstance(failure, DataError | IntegrityError) or type(failure) is StatementError:
        return False
    return isinstance(failure, SQLAlchemyError | sqlite3.OperationalError)
