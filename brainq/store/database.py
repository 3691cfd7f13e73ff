"""Running statements: one write, one read, or several in one transaction."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from typing import Any, NoReturn, cast

from sqlalchemy import Engine, Executable, PoolProxiedConnection
from sqlalchemy.exc import DBAPIError

from brainq.store.prepared import Prepared, Record

Parameters = Mapping[str, object]
Dialects = Callable[[str], Executable]
"""From a dialect's name to the statement in it."""

MOST_PREPARED = 500  # more than there are; some are made anew for each call


class Transaction:
    """Several statements, all or nothing, on one connection. Raises what SQLAlchemy raises."""

    def __init__(self, database: Database, connection: PoolProxiedConnection) -> None:
        self._database = database
        self._connection = connection
        self._cursor: Any = connection.cursor()

    def write(self, statement: Executable, parameters: Parameters) -> int:
        """Run one writing statement; the number of rows it touched."""
        return self._run(self._database.prepared(statement, tuple(parameters)), parameters)

    def write_many(self, statement: Executable, rows: Sequence[Parameters]) -> None:
        """Run one writing statement with each of these; all have the same names."""
        if rows:
            prepared = self._database.prepared(statement, tuple(rows[0]), many=True)
            values = [prepared.for_driver(row) for row in rows]
            self.write_text(values[0][0], [row for _, row in values])

    def write_text(self, text: str, rows: Sequence[Any]) -> None:
        """Run a statement of the driver's own with each of these rows of values."""
        try:
            if len(rows) == 1:
                self._cursor.execute(text, rows[0])
            else:
                self._cursor.executemany(text, rows)
        except BaseException as error:
            self._fail(text, error)

    def first(self, statement: Executable, parameters: Parameters) -> Record | None:
        """The first row of a reading statement, or of a writing one with RETURNING."""
        found = self.all(statement, parameters)
        return found[0] if found else None

    def all(self, statement: Executable, parameters: Parameters) -> list[Record]:
        """Every row of such a statement."""
        prepared = self._database.prepared(statement, tuple(parameters))
        self._run(prepared, parameters)
        try:
            return prepared.records(self._cursor)
        except BaseException as error:
            self._fail("", error)

    def begin(self) -> None:
        self.write_text(self._database.begin, [()])

    def commit(self) -> None:
        try:
            self._connection.commit()
        except BaseException as error:
            self._fail("COMMIT", error)

    def _run(self, prepared: Prepared, parameters: Parameters) -> int:
        text, values = prepared.for_driver(parameters)
        try:
            self._cursor.execute(text, values)
        except BaseException as error:
            self._fail(text, error)
        return self._cursor.rowcount

    def _fail(self, text: str, error: BaseException) -> NoReturn:
        """As SQLAlchemy does it: its own error, and a connection that is gone leaves the pool, with all as old."""
        if not isinstance(error, Exception):
            self._connection.invalidate(error)
            raise error
        raise self._database.failure(text, error, self._connection, self._cursor) from error


class Database:
    """An engine and the rule for writing to it. Thread-safe; each call takes a connection and gives it back.

    A SQLite file has one writer at a time. Threads of one process queue on a lock, which wakes the next at
    once; left to SQLite they would poll with pauses of up to 100 ms.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.dialect = engine.dialect.name
        self.begin = "BEGIN IMMEDIATE" if self.dialect == "sqlite" else "BEGIN"
        self.prepared = lru_cache(MOST_PREPARED)(self._prepare)
        self._writing: AbstractContextManager[Any] = (
            threading.RLock() if self.dialect == "sqlite" else nullcontext()
        )

    def pick(self, statements: Dialects) -> Executable:
        """The statement of this database's dialect."""
        return statements(self.dialect)

    def write(self, statement: Executable, parameters: Parameters) -> int:
        """Run one writing statement in its own transaction; the number of rows it touched."""
        with self._writing, self._connected() as connection:
            return connection.write(statement, parameters)

    def write_returning(self, statement: Executable, parameters: Parameters) -> Record | None:
        """Like `write`, for a statement with RETURNING; the first row it gave."""
        with self._writing, self._connected() as connection:
            return connection.first(statement, parameters)

    def first(self, statement: Executable, parameters: Parameters) -> Record | None:
        """The first row of one reading statement."""
        with self._connected() as connection:
            return connection.first(statement, parameters)

    def all(self, statement: Executable, parameters: Parameters) -> Sequence[Record]:
        """Every row of one reading statement."""
        with self._connected() as connection:
            return connection.all(statement, parameters)

    @contextmanager
    def transaction(self) -> Generator[Transaction]:
        """Several statements, all or nothing.

        Use only this connection inside: on SQLite another write would wait for this very transaction, and
        fail at the busy timeout.
        """
        with self._writing, self._connected() as connection:
            connection.begin()
            yield connection
            connection.commit()

    def failure(self, text: str, error: Exception, connection: Any = None, cursor: Any = None) -> Exception:
        """What SQLAlchemy would raise for an error of the driver; any other error as it is."""
        dialect = self.engine.dialect
        kind = cast(Any, dialect.dbapi).Error
        if not isinstance(error, kind):
            return error
        gone = connection is not None and dialect.is_disconnect(
            cast(Any, error), connection.driver_connection, cursor
        )
        if gone:
            pool: Any = self.engine.pool
            pool._invalidate(connection, error)
        return cast(
            Exception,
            DBAPIError.instance(
                text or None,
                None,
                error,
                kind,
                hide_parameters=True,
                connection_invalidated=gone,
                dialect=dialect,
            ),
        )

    @contextmanager
    def _connected(self) -> Generator[Transaction]:
        try:
            connection = self.engine.raw_connection()
        except Exception as error:
            raise self.failure("", error) from error
        try:
            yield Transaction(self, connection)
        finally:
            connection.close()  # what was begun and not committed is rolled back

    def _prepare(self, statement: Executable, names: tuple[str, ...], *, many: bool = False) -> Prepared:
        return Prepared(statement, self.engine.dialect, names, many=many)
