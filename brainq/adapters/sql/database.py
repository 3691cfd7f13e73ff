"""Run statements: one write, one read, or several in one transaction."""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from typing import Any, NoReturn, Self, cast

from sqlalchemy import (
    Column,
    ColumnElement,
    Engine,
    Executable,
    PoolProxiedConnection,
    Select,
    Table,
    bindparam,
    func,
    select,
    tuple_,
)
from sqlalchemy.exc import DBAPIError

from brainq.adapters.sql.engine import begin_statement, forget_prepared, log_path, sync_file
from brainq.adapters.sql.fates import LEAVING, Fate, fate_of
from brainq.adapters.sql.prepared import Prepared, Record
from brainq.contracts.encryption import ContentCodec

Parameters = Mapping[str, object]
_NOTHING: Parameters = {}
UNREADABLE = "unreadable"
"""The field of a record from `readable` that holds the reason why its content cannot be read."""
Dialects = Callable[[str], Executable]
"""A function from a dialect's name to the statement in that dialect."""
REPEAT_WITHIN_S = 8.0  # shorter than a lease, and than SQLite's own wait, which must not start a second time
FIRST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 0.5
MAX_PREPARED = 500  # MAX_PREPARED is more than the code has. Some callers build a new statement for each call.


class Transaction:
    """A transaction on one connection. Its methods raise SQLAlchemy's errors.

    is_repeatable   whether its first statement may run again, on another connection, if it is unknown whether it ran
    """

    def __init__(self, database: Database, connection: PoolProxiedConnection, *, is_repeatable: bool) -> None:
        self._database = database
        self._connection = connection
        self._cursor: Any = connection.cursor()
        self._is_lone = True
        self._reasons_to_move: set[Fate] = {"read-only", "cut"} if is_repeatable else {"read-only"}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # A SQLite cursor resets its statement when it is garbage-collected, which may be late. Statements are cached
        # per connection, so the connection's next user may be using that very statement, and its next row would be an
        # API misuse error.
        if self._connection.is_valid:
            self._cursor.close()
        self._connection.close()  # This rolls back an uncommitted transaction.

    def write(self, statement: Executable, parameters: Parameters) -> int:
        """Run a statement that writes. Returns the number of rows that it changed."""
        text, values = self._database.prepared(statement, tuple(parameters)).for_driver(parameters)
        try:
            self._cursor.execute(text, values)
        except BaseException as error:
            self._repeat(text, values, error)
        return self._cursor.rowcount

    def write_many(self, statement: Executable, rows: Sequence[Parameters]) -> None:
        """Run a writing statement once for each of `rows`, which all have the same names."""
        if rows:
            prepared = self._database.prepared(statement, tuple(rows[0]), many=True)
            values = [prepared.for_driver(row) for row in rows]
            self.write_text(values[0][0], [row for _, row in values])

    def write_text(self, text: str, rows: Sequence[Any]) -> None:
        """Run SQL text in the driver's parameter style, once for each row in `rows`."""
        try:
            if len(rows) == 1:
                self._cursor.execute(text, rows[0])
            else:
                self._cursor.executemany(text, rows)
        except BaseException as error:
            self._fail(text, error)

    def first(self, statement: Executable, parameters: Parameters) -> Record | None:
        """Return the first row of a reading statement, or of a writing statement with RETURNING."""
        found = self.all(statement, parameters)
        return found[0] if found else None

    def all(self, statement: Executable, parameters: Parameters) -> list[Record]:
        """Return every row of a reading statement, or of a writing statement with RETURNING."""
        self.write(statement, parameters)
        try:
            return self._database.prepared(statement, tuple(parameters)).records(self._cursor)
        except BaseException as error:
            self._fail("", error)

    def begin(self) -> None:
        text = begin_statement(self._connection)
        try:
            self._cursor.execute(text, ())
        except BaseException as error:
            self._repeat(text, (), error)
        self._is_lone = False

    def commit(self) -> None:
        try:
            self._connection.commit()
        except BaseException as error:
            self._fail("COMMIT", error)

    def _repeat(self, text: str, values: Any, error: BaseException) -> None:
        """Run a statement again that had no effect, or that may run twice.

        It is repeated while a concurrent statement is in its way, and once on a new connection. Statements inside a
        transaction are not repeated, because the whole transaction would have to be.
        """
        until = time.monotonic() + REPEAT_WITHIN_S
        pause_s = FIRST_PAUSE_S
        while self._is_lone and isinstance(error, Exception) and time.monotonic() < until:
            try:
                if not self._move(error):
                    if not self._may_repeat_here(error):
                        break
                    time.sleep(pause_s * random.uniform(0.5, 1.5))  # equal pauses would make the two collide again
                    pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
                self._cursor.execute(text, values)
            except BaseException as again:
                error = again
            else:
                return
        self._fail(text, error)

    def _may_repeat_here(self, error: Exception) -> bool:
        fate = self._database.fate(error, self._connection)
        if fate == "unprepared":
            forget_prepared(self._connection)
        return fate in ("in the way", "unprepared")

    def _move(self, error: Exception) -> bool:
        """Continue on a new connection if the error demands it. Returns False if it does not, or at the second time."""
        if self._database.fate(error, self._connection) not in self._reasons_to_move:
            return False
        self._reasons_to_move = set()
        self._database.leave(self._connection, error)
        self._connection.close()
        self._connection = self._database.engine.raw_connection()
        self._cursor = self._connection.cursor()
        return True

    def _fail(self, text: str, error: BaseException) -> NoReturn:
        """Raise SQLAlchemy's error for a driver's error.

        If the connection is lost, it leaves the pool together with all connections of the same age.
        """
        if not isinstance(error, Exception):
            if self._connection.driver_connection is not None:  # None while a new one is being opened
                self._connection.invalidate(error)
            raise error
        raise self._database.failure(text, error, self._connection) from error


class Database:
    """A database. Thread-safe; each call takes a connection from the pool and returns it.

    A SQLite file has one writer at a time. The threads of a process queue on a lock, which wakes the next thread at
    once; SQLite itself would poll with pauses of up to 100 ms.
    """

    codec: ContentCodec | None = None
    """The codec that encrypts content, or None if content is in the clear."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.dialect = engine.dialect.name
        self.prepared = lru_cache(MAX_PREPARED)(self._prepare)
        self._log = log_path(engine)
        self._writing: AbstractContextManager[Any] = threading.RLock() if self.dialect == "sqlite" else nullcontext()

    def row_sealer(self, table: Table) -> Callable[[Sequence[Record]], Sequence[Record]] | None:
        """Return the function that encodes whole rows of a table, or None if no column is encoded."""
        return None

    def close(self) -> None:
        """Release resources other than the engine, which its owner closes."""

    def pick(self, statements: Dialects) -> Executable:
        """Return the statement for this database's dialect."""
        return statements(self.dialect)

    def write(self, statement: Executable, parameters: Parameters, *, durably: bool = False) -> int:
        """Run a writing statement in its own transaction. Returns the number of rows that it changed.

        If its connection is cut, it may or may not have run. That is raised: its caller repeats what it was doing.

        durably   return only when the rows it wrote or found survive a power cut; Postgres decides by
                  `synchronous_commit`

        SQLite's log is synced after the commit. `synchronous=FULL` would sync it during the commit, while the writer
        holds the file's lock; this way many writers also share one sync.
        """
        return self._write(statement, parameters, durably=durably, is_repeatable=False)

    def put(self, statement: Executable, parameters: Parameters, *, durably: bool = False) -> int:
        """Run a writing statement like `write`, and a second time if its connection is cut.

        The statement must change nothing at its second run, whose number of rows is then returned: 0 may mean that the
        first run wrote the rows.
        """
        return self._write(statement, parameters, durably=durably, is_repeatable=True)

    def _write(self, statement: Executable, parameters: Parameters, *, durably: bool, is_repeatable: bool) -> int:
        with self._writing, self._connected(is_repeatable=is_repeatable) as connection:
            touched = connection.write(statement, parameters)
        if durably and self._log is not None:
            try:
                sync_file(self._log)
            except OSError as error:
                unsynced = sqlite3.OperationalError(f"{self._log} cannot be synced: {error}")
                raise self.failure("", unsynced) from error
        return touched

    def write_returning(self, statement: Executable, parameters: Parameters) -> Record | None:
        """Run a statement with RETURNING, like `write`. Returns its first row."""
        with self._writing, self._connected(is_repeatable=False) as connection:
            return connection.first(statement, parameters)

    def first(self, statement: Executable, parameters: Parameters) -> Record | None:
        """Return the first row of a reading statement."""
        with self._connected() as connection:
            return connection.first(statement, parameters)

    def all(self, statement: Executable, parameters: Parameters) -> Sequence[Record]:
        """Return every row of a reading statement."""
        with self._connected() as connection:
            return connection.all(statement, parameters)

    def count(self, table: Table, where: ColumnElement[bool], parameters: Parameters = _NOTHING) -> int:
        """Return how many rows of a table meet the condition."""
        found = self.first(select(func.count().label("rows")).select_from(table).where(where), parameters)
        return 0 if found is None else int(found["rows"])

    def pages(
        self,
        statement: Select[*tuple[Any, ...]],
        order: Sequence[Column[Any]],
        size: int,
        parameters: Parameters = _NOTHING,
    ) -> Generator[Sequence[Record]]:
        """Yield the rows of a reading statement, `size` at a time. The columns of `order` together are unique."""
        first = statement.order_by(*order).limit(size)
        after = [bindparam(f"after_{column.name}", type_=column.type) for column in order]
        following = first.where(tuple_(*order) > tuple_(*after) if len(order) > 1 else order[0] > after[0])
        page = self.all(first, parameters)
        while page:
            yield page
            if len(page) < size:
                return
            last = {f"after_{column.name}": page[-1][column.name] for column in order}
            page = self.all(following, {**parameters, **last})

    def readable(self, statement: Executable, parameters: Parameters, named: str) -> Sequence[Record]:
        """Return every row, including rows that cannot be decrypted: these have the reason as UNREADABLE, and no
        content. Each such row is logged once, with its column `named`."""
        return self.all(statement, parameters)

    @contextmanager
    def transaction(self) -> Generator[Transaction]:
        """Open a transaction.

        Use only this connection inside it: on SQLite another write would wait for this transaction and fail at the busy
        timeout.
        """
        with self._writing, self._connected() as connection:
            connection.begin()
            yield connection
            connection.commit()

    def failure(self, text: str, error: Exception, connection: PoolProxiedConnection | None = None) -> Exception:
        """Return the error that SQLAlchemy raises for a driver's error. Returns any other error unchanged."""
        dialect = self.engine.dialect
        kind = cast(Any, dialect.dbapi).Error
        if not isinstance(error, kind):
            return error
        fate = self.fate(error, connection)
        gone = fate in LEAVING
        if connection is not None and gone:
            if fate == "unprepared":
                forget_prepared(connection)  # The other statements are prepared as well.
            self.leave(connection, error)
        return cast(
            Exception,
            DBAPIError.instance(
                text or None, None, error, kind, hide_parameters=True, connection_invalidated=gone, dialect=dialect
            ),
        )

    def fate(self, error: BaseException, connection: PoolProxiedConnection | None) -> Fate:
        """Return what became of the statement whose error a connection raised."""
        driver: Any = None if connection is None else connection.driver_connection
        return fate_of(error, is_closed=getattr(driver, "closed", False) or getattr(driver, "broken", False))

    def leave(self, connection: PoolProxiedConnection, error: Exception) -> None:
        """Close a connection, and let all others of its age leave the pool."""
        pool: Any = self.engine.pool
        pool._invalidate(connection, error)

    def _connected(self, *, is_repeatable: bool = True) -> Transaction:
        try:
            return Transaction(self, self.engine.raw_connection(), is_repeatable=is_repeatable)
        except Exception as error:
            raise self.failure("", error) from error

    def _prepare(self, statement: Executable, names: tuple[str, ...], *, many: bool = False) -> Prepared:
        return Prepared(statement, self.engine.dialect, names, many=many)
