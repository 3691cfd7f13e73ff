"""Create the SQLAlchemy engine of a process, for SQLite or Postgres, and classify its errors.

Connections use autocommit: a single statement is its own transaction and costs one round trip. `Database.transaction`
sends BEGIN for several. On SQLite that is BEGIN IMMEDIATE, because a transaction that reads before it writes would
otherwise fail at once if another process wrote in between.
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

from sqlalchemy import URL, Connection, Engine, ExceptionContext, PoolProxiedConnection, QueuePool, create_engine, event
from sqlalchemy.exc import (
    ArgumentError,
    DataError,
    IntegrityError,
    InvalidatePoolError,
    SQLAlchemyError,
    StatementError,
)

from brainq.adapters.sql.fates import LEAVING, fate_of
from brainq.adapters.sql.sql_url import SqlUrl, parse_sql_url
from brainq.errors import SetupError

POOL_SIZE = 16  # 5 processes stay below Postgres' default of 100 connections; 100 threads share them
POOL_TIMEOUT_S = 30.0  # longer than ANSWER_S: if all connections hang, one of them is free again by then
BUSY_TIMEOUT_S = 10.0
PING_AFTER_IDLE_S = 10.0
PING_S = 3.0
ANSWER_S = 20.0  # statements take milliseconds, and a waiting thread occupies a lease and a slot
_OLDEST_SQLITE = (3, 35, 0)  # RETURNING


def make_engine(url: str, *, pool_size: int = POOL_SIZE, answer_s: float | None = ANSWER_S) -> Engine:
    """Return an engine for a URL that `parse_sql_url` accepts. It connects when it is first used.

    answer_s   seconds to wait for an answer of Postgres; a statement may take three quarters of it. None for no limit

    Create it after any fork. Statement parameters are kept out of error texts and logs.
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
        raise SetupError(f"the numbers of hosts and ports in the SQL URL do not match; {error}") from None
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _on_sqlite_connect)
    else:
        _connect_by_link(engine, parsed, answer_s)
        event.listen(engine, "checkin", _note_idle)
        event.listen(engine, "checkout", _ping_if_idle)
        event.listen(engine, "handle_error", _leave_server)
    return engine


def _connect_by_link(engine: Engine, parsed: SqlUrl, answer_s: float | None) -> None:
    from brainq.adapters.sql.postgres import CONNECT_ARGS, OTHER_HOST_S, PostgresLink

    query = parsed.url.query
    options = {name: value for name, value in CONNECT_ARGS.items() if name not in query} | parsed.options
    if len(parsed.hosts) > 1 and "connect_timeout" not in query:
        options["connect_timeout"] = OTHER_HOST_S
    by_statement = "statement_timeout" not in str(query.get("options", ""))
    link = PostgresLink(answer_s, by_statement=by_statement, pooled=parsed.pooled)

    def connect(_dialect: Any, _record: Any, args: Any, given: Any) -> Any:
        return link.connect(*args, **options, **given)

    event.listen(engine, "do_connect", connect)


@contextmanager
def without_time_limits(connection: Connection) -> Generator[None]:
    """Remove the time limits of a Postgres connection for a long transaction, and restore them afterwards."""
    driver: Any = connection.connection.driver_connection
    answer_s, driver.answer_s = driver.answer_s, None
    try:
        connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        yield
    finally:
        driver.answer_s = answer_s


@contextmanager
def transaction(engine: Engine) -> Generator[Connection]:
    """Yield a connection in a transaction, which is committed at the end or rolled back on an exception."""
    with engine.connect() as connection, connection.begin():
        connection.exec_driver_sql(begin_statement(connection.connection))
        yield connection


def begin_statement(connection: PoolProxiedConnection) -> str:
    """Return the statement that begins a transaction on a connection, with its time limits."""
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
    """Raise SetupError if `url` names a SQLite file that does not exist, because opening it would create one."""
    path = parse_sql_url(url).sqlite_path
    if path and not Path(path).exists():
        raise SetupError(
            f"there is no database at {path!r}; set BRAINQ_SQL_URL or BRAINQ_DATA_DIR to the database of the workers"
        )


@functools.cache
def require_fts5() -> None:
    """Raise SetupError if this Python's SQLite has no full-text search."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE probe USING fts5(terms)")
    except sqlite3.OperationalError as error:
        raise SetupError(
            f"this Python's SQLite ({sqlite3.sqlite_version}) was built without FTS5, which the search in memories "
            "needs; use a Python whose SQLite has it (those of python.org, uv, Debian, Fedora and macOS do), or "
            "Postgres: BRAINQ_SQL_URL=postgresql://..."
        ) from error
    finally:
        connection.close()


def _on_sqlite_connect(connection: Any, _record: Any) -> None:
    _enter_wal(connection)
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute("PRAGMA secure_delete=ON")  # overwrites deleted content instead of leaving it in free pages


def _enter_wal(connection: Any) -> None:
    """Switch to WAL. Repeats the statement, because SQLite refuses it at once if several processes open a new file."""
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
    """Return the settings of a Postgres that allow a power cut to lose committed transactions."""
    if engine.dialect.name == "sqlite":
        return []
    with engine.connect() as connection:
        settings = {
            name: connection.exec_driver_sql(f"SHOW {name}").scalar() for name in ("synchronous_commit", "fsync")
        }
    return [name for name, value in settings.items() if value == "off"]


def pooler_between(engine: Engine) -> bool | None:
    """Return whether connections are configured for a pooler in transaction mode.

    Returns None if they are not, but two of them share a server process. The engine must allow two connections.
    """
    if engine.dialect.name == "sqlite":
        return False
    with engine.connect() as one, engine.connect() as other:
        driver: Any = one.connection.driver_connection
        servers = {each.exec_driver_sql("SELECT pg_backend_pid()").scalar() for each in (one, other)}
    if driver.link.pooled:
        return True
    return False if len(servers) == 2 else None


def log_path(engine: Engine) -> str | None:
    """Return the path of a SQLite file's write-ahead log, which `synchronous=NORMAL` does not sync at a commit.

    Returns None for another database.
    """
    if engine.dialect.name != "sqlite":
        return None
    return (engine.url.database or "").removeprefix("file:").partition("?")[0] + "-wal"


def sync_file(path: str) -> None:
    """Sync a file to the disk, including the writes of other processes."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if sys.platform == "darwin":  # On macOS, fsync leaves the data in the disk's cache.
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        else:
            os.fdatasync(descriptor)  # fdatasync is what SQLite uses. Of the file's metadata only the size matters.
    finally:
        os.close(descriptor)


def _leave_server(context: ExceptionContext) -> None:
    """Drop the pool's connections if an error shows that their server is gone, or is no longer the primary."""
    fate = fate_of(context.original_exception)
    context.is_disconnect = context.is_disconnect or (fate in LEAVING and fate != "unprepared")


def _note_idle(connection: Any, record: Any) -> None:
    record.info["idle_since"] = time.monotonic()
    if connection is not None and connection.is_demoted:
        record.invalidate()


def _ping_if_idle(connection: Any, record: Any, _proxy: Any) -> None:
    """Replace a connection that died while it was idle. A ping at every checkout would double the round trips."""
    idle_since = record.info.get("idle_since")
    if idle_since is None or time.monotonic() - idle_since < PING_AFTER_IDLE_S:
        return
    answer_s = connection.answer_s
    connection.answer_s = PING_S
    try:
        connection.execute("SELECT 1")
    except Exception as error:
        # The pool's other connections are as old, and each of them would have to time out.
        raise InvalidatePoolError("the connection died while idle") from error
    finally:
        connection.answer_s = answer_s


def forget_prepared(connection: PoolProxiedConnection) -> None:
    """Stop preparing statements on this connection and on new ones, because a pooler in transaction mode was found."""
    driver: Any = connection.driver_connection
    driver.prepare_threshold = None
    driver.link.note_pooler("a prepared statement was on another server")


def is_sql_unavailable(failure: BaseException) -> bool:
    """Return whether a failure means that SQL is unavailable.

    A failure that would repeat, such as a value that no column accepts, returns False.
    """
    if isinstance(failure, DataError | IntegrityError) or type(failure) is StatementError:
        return False
    return isinstance(failure, SQLAlchemyError | sqlite3.OperationalError)
