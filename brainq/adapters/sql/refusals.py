"""Test whether a database accepts writes without leaving anything behind, and explain refusals with a remedy."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Mapping
from contextlib import closing

from sqlalchemy import Engine

from brainq.adapters.sql.engine import BUSY_TIMEOUT_S
from brainq.adapters.sql.fates import Fate, fate_of
from brainq.adapters.sql.migrations.upgrade import VERSION_TABLE
from brainq.contracts.refusal import Refusal

DISK_FULL = Refusal(
    "has no space left on its disk, so it accepts no writes",
    "free space on the disk of the database; writes then work again without a restart",
)
READ_ONLY = Refusal(
    "is read-only, so it accepts no writes",
    "connect to the primary, or remove the cause (`SHOW default_transaction_read_only`, the file's mode)",
)
IN_THE_WAY = Refusal(
    "cancelled a statement that conflicted with another client's, and nothing was written",
    "try again; if it continues, look for long transactions and locks",
)
TOO_SLOW = Refusal(
    "cancelled a statement that took too long, and nothing was written",
    "try again; if it continues, look for locks (`pg_stat_activity`) and check the load of its machine",
)
_OF_POSTGRES: Mapping[str, Refusal] = {
    "53100": DISK_FULL,
    "25006": READ_ONLY,
    "57014": TOO_SLOW,
    "53300": Refusal(
        "has no connection left", "raise max_connections, or put a pooler in front of it: docs/operate/deploy.md"
    ),
    "42501": Refusal(
        "does not permit this for the user in BRAINQ_SQL_URL",
        "grant the user all rights on brainq's tables: GRANT ALL ON ALL TABLES IN SCHEMA",
    ),
    "28P01": Refusal("refuses the login", "set user and password in BRAINQ_SQL_URL, percent-encoded"),
    "28000": Refusal("refuses the login", "set user and password in BRAINQ_SQL_URL, and check pg_hba.conf"),
    "3D000": Refusal("has no such database", "create it (createdb), or correct the name in BRAINQ_SQL_URL"),
}
"""Refusals by SQLSTATE; see PostgreSQL's documentation, appendix "PostgreSQL Error Codes"."""
_OF_FATE: Mapping[Fate, Refusal] = {"in the way": IN_THE_WAY, "unprepared": IN_THE_WAY}
_OF_SQLITE: Mapping[int, Refusal] = {sqlite3.SQLITE_FULL: DISK_FULL, sqlite3.SQLITE_READONLY: READ_ONLY}
ROOM = 131_072  # bytes: more than most commits need

# This leaves neither a row nor a temporary file. A row that another process is testing with is skipped.
_POSTGRES_TRY = (
    "BEGIN; SET LOCAL work_mem = '64kB'; "
    f"UPDATE {VERSION_TABLE} SET version_num = version_num "
    f"WHERE ctid IN (SELECT ctid FROM {VERSION_TABLE} FOR UPDATE SKIP LOCKED); "
    f"SELECT count(*) FROM generate_series(1, {ROOM // 16}); ROLLBACK"
)


def sql_refusal(failure: Exception) -> Refusal | None:
    """Return why a database that answers refuses a statement. Returns None for other failures."""
    driver: Exception = getattr(failure, "orig", None) or failure
    if isinstance(driver, sqlite3.Error):
        code = getattr(driver, "sqlite_errorcode", 0) & 0xFF
        if isinstance(driver.__cause__, OSError) and driver.__cause__.errno in (errno.ENOSPC, errno.EDQUOT):
            return DISK_FULL
        return _OF_SQLITE.get(code) or _OF_FATE.get(fate_of(driver))
    state = getattr(driver, "sqlstate", None)
    if state is None:
        return next((refusal for code, refusal in _AT_CONNECT.items() if code in str(driver)), None)
    return _OF_POSTGRES.get(state) or _OF_FATE.get(fate_of(driver))


# For a refused connect, psycopg has only the server's text, in the server's language.
_AT_CONNECT: Mapping[str, Refusal] = {
    "password authentication failed": _OF_POSTGRES["28P01"],
    "no pg_hba.conf entry": _OF_POSTGRES["28000"],
    "too many clients": _OF_POSTGRES["53300"],
    "remaining connection slots": _OF_POSTGRES["53300"],
    "No space left on device": DISK_FULL,
    "session is read-only": READ_ONLY,  # no host of several accepts writes
}


def try_write(engine: Engine) -> None:
    """Write enough to need the disk, in a transaction that is rolled back. The schema must exist.

    Raises the error of the driver or SQLAlchemy. A SQLite file that another process is writing to counts as writable.
    """
    if engine.dialect.name != "sqlite":
        with engine.connect() as connection:
            connection.exec_driver_sql(_POSTGRES_TRY)
        return
    path = (engine.url.database or "").removeprefix("file:").partition("?")[0]
    with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT_S / 10, isolation_level=None)) as connection:
        try:
            connection.execute("PRAGMA cache_size = 8")  # more than eight pages go to the disk before the commit
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("CREATE TABLE brainq_room (bytes BLOB)")
            connection.execute(f"INSERT INTO brainq_room VALUES (zeroblob({ROOM}))")
        except sqlite3.OperationalError as error:
            if fate_of(error) != "in the way":
                raise
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")


def driver_message(error: BaseException) -> str:
    """Return the first line of the driver's message, without SQLAlchemy's additions."""
    driver = getattr(error, "orig", None) or error
    return str(driver).strip().partition("\n")[0]
