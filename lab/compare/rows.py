"""The SQL rows of a turn's `log` and `decision` steps, in a SQLite file (WAL), for systems that bring no SQL."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS logs (turn_id TEXT PRIMARY KEY, answer TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS decisions (turn_id TEXT PRIMARY KEY, calls INTEGER NOT NULL)",
)
LOG = "INSERT OR IGNORE INTO logs VALUES (?, ?)"
DECISION = "INSERT OR IGNORE INTO decisions VALUES (?, ?)"


class Rows:
    """One connection a thread; each call is a transaction. A step that runs twice writes once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local = threading.local()

    def log(self, turn_id: str, answer: str) -> None:
        self._write(LOG, (turn_id, answer))

    def decision(self, turn_id: str, calls: int) -> None:
        self._write(DECISION, (turn_id, calls))

    def close(self) -> None:
        """Close this thread's connection."""
        self._local.connection.close()

    def _write(self, statement: str, values: tuple[str | int, ...]) -> None:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = connect(self._path)
        connection.execute(statement, values)


def connect(path: Path) -> sqlite3.Connection:
    """Return a connection that commits each statement, and waits for other writers."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=30)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    for statement in SCHEMA:
        connection.execute(statement)
    return connection
