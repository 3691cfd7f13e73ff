"""The airline's database: one SQLite file that all worker processes share. Each session has an airline of its own.

Only rows that a session changed are stored; the others are the package's. Every write is noted in the same
transaction: what was done can be told from here alone, whatever brainq believes.
"""

from __future__ import annotations

import copy
import hashlib
import json
import sqlite3
import threading
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from examples.airline.package import Airline, ToolError, base_airline, run_tool

BUSY_TIMEOUT_S = 30.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS changed (
    session TEXT, kind TEXT, id TEXT, body TEXT NOT NULL, PRIMARY KEY (session, kind, id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS writes (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL, key TEXT NOT NULL, tool TEXT NOT NULL, arguments TEXT NOT NULL,
    content TEXT NOT NULL, is_error INTEGER NOT NULL, repeats INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS writes_by_session ON writes (session);
CREATE INDEX IF NOT EXISTS writes_by_key ON writes (key);
"""


@dataclass(frozen=True, slots=True)
class Write:
    """One write that was done, in its place among the writes of its session.

    key       the idempotency key it came with
    content   what the tool answered, or why it refused (`is_error`)
    repeats   how often the same key came again and was answered from here
    """

    key: str
    tool: str
    arguments: dict[str, Any]
    content: str
    is_error: bool
    repeats: int


class AirlineDatabase:
    """The file at `path`, made at first use. Safe between threads and processes.

    honours_keys   True: a key that was written before gets the recorded answer, and nothing is done again
    """

    def __init__(self, path: Path, *, honours_keys: bool = True) -> None:
        self.path = path
        self._honours_keys = honours_keys
        self._local = threading.local()

    def read(self, session: str, tool: str, arguments: dict[str, Any]) -> str:
        """Run a tool that changes nothing. Raises ToolError."""
        return run_tool(self._airline(self._connection(), session), tool, arguments)

    def write(self, session: str, key: str, tool: str, arguments: dict[str, Any]) -> str:
        """Run a tool, keep what it changed, and note `key`: one transaction. Raises ToolError.

        A refusal is an answer like any other: it is noted, too.
        """
        with self._transaction() as connection:
            done = self._known(connection, key) if self._honours_keys else None
            if done is None:
                done = _run(connection, session, self._airline(connection, session), tool, arguments)
                connection.execute(
                    "INSERT INTO writes (session, key, tool, arguments, content, is_error) VALUES (?, ?, ?, ?, ?, ?)",
                    (session, key, tool, json.dumps(arguments), *done),
                )
        content, is_error = done
        if is_error:
            raise ToolError(content)
        return content

    def writes(self, session: str) -> list[Write]:
        """What was written in a session, in order."""
        rows = self._connection().execute(
            "SELECT key, tool, arguments, content, is_error, repeats FROM writes WHERE session = ? ORDER BY number",
            (session,),
        )
        return [
            Write(key, tool, json.loads(arguments), content, bool(is_error), repeats)
            for key, tool, arguments, content, is_error, repeats in rows
        ]

    def newest_key(self) -> str:
        """The key of the write that was done last, in any session; empty when there is none."""
        found = self._connection().execute("SELECT key FROM writes ORDER BY number DESC LIMIT 1").fetchone()
        return "" if found is None else str(found[0])

    def sha256(self, session: str) -> str:
        """The hash of a session's whole airline."""
        airline = self._airline(self._connection(), session)
        return airline_sha256(airline) if airline != base_airline() else _base_sha256()

    def close(self) -> None:
        """Close this thread's connection; those of other threads end with them."""
        connection: sqlite3.Connection | None = self._local.__dict__.pop("connection", None)
        if connection is not None:
            connection.close()

    def _airline(self, connection: sqlite3.Connection, session: str) -> Airline:
        airline: Airline = dict(base_airline())
        rows = connection.execute("SELECT kind, id, body FROM changed WHERE session = ?", (session,)).fetchall()
        for kind in {row[0] for row in rows}:
            airline[kind] = airline[kind] | {row_id: json.loads(body) for of, row_id, body in rows if of == kind}
        return airline

    def _known(self, connection: sqlite3.Connection, key: str) -> tuple[str, bool] | None:
        found = connection.execute("SELECT content, is_error FROM writes WHERE key = ?", (key,)).fetchone()
        if found is None:
            return None
        connection.execute("UPDATE writes SET repeats = repeats + 1 WHERE key = ?", (key,))
        return str(found[0]), bool(found[1])

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        connection = self._connection()
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")

    def _connection(self) -> sqlite3.Connection:
        if "connection" not in self._local.__dict__:
            self._local.connection = sqlite3.connect(self.path, timeout=BUSY_TIMEOUT_S, isolation_level=None)
            self._local.connection.execute("PRAGMA synchronous = NORMAL")
        return self._local.connection


def make_database(path: Path) -> None:
    """Make the file and its tables. Done once, before the workers come: the WAL switch is not for a crowd."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(_SCHEMA)


def airline_sha256(airline: Airline) -> str:
    """The hash the recorded sessions name as `db_sha256`."""
    return hashlib.sha256(json.dumps(airline, sort_keys=True).encode()).hexdigest()


@cache
def _base_sha256() -> str:
    return airline_sha256(base_airline())


class _Touched(dict[str, Any]):
    """A table whose rows are copied when they are taken out, so that a tool may change them."""

    def __init__(self, rows: dict[str, Any]) -> None:
        super().__init__(rows)
        self.rows = rows
        self.touched: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        if key not in self.touched:
            self[key] = copy.deepcopy(super().__getitem__(key))
        return super().__getitem__(key)

    def __setitem__(self, key: str, row: Any) -> None:
        self.touched.add(key)
        super().__setitem__(key, row)


def _run(
    connection: sqlite3.Connection, session: str, airline: Airline, tool: str, arguments: dict[str, Any]
) -> tuple[str, bool]:
    tables = {kind: _Touched(rows) for kind, rows in airline.items()}
    try:
        content = run_tool(dict(tables), tool, arguments)
    except ToolError as refusal:
        return str(refusal), True
    changed = [
        (session, kind, row_id, json.dumps(table[row_id]))
        for kind, table in tables.items()
        for row_id in sorted(table.touched)
        if table[row_id] != table.rows.get(row_id)
    ]
    connection.executemany("INSERT OR REPLACE INTO changed VALUES (?, ?, ?, ?)", changed)
    return content, False
