"""Run statements: one write, one read, or several in one transaction.

Each statement is compiled once and then sent to the driver as text.
"""

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
    Dialect,
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
from sqlalchemy.types import TypeEngine

from brainq.adapters.sql.engine import begin_statement, log_path, sync_file, unprepare, was_in_the_way
from brainq.contracts.encryption import ContentCodec

Record = Mapping[str, Any]  # column name -> value
Convert = Callable[[Any], Any]
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


class Prepared:
    """A statement compiled for one dialect.

    names   the parameters given at each run; other parameters are constants of the statement

    A turn runs about twenty short statements, and SQLAlchemy's execution of one costs three times what SQLite needs for
    it. So the text and the conversions of values are taken from SQLAlchemy once.

    Raises KeyError if the statement has a parameter that is not in `names`.
    """

    def __init__(self, statement: Executable, dialect: Dialect, names: Sequence[str], *, many: bool) -> None:
        # The compiler's types are not used, because they contain less than its documentation.
        self._compiled: Any = statement.compile(  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
            dialect=dialect, column_keys=sorted(names), for_executemany=many
        )
        self._dialect = dialect
        self._columns: list[tuple[str, TypeEngine[Any]]] = [
            (column.key, column.type) for column in getattr(statement, "exported_columns", ())
        ]
        self._read: list[tuple[str, Convert | None]] | None = None
        self._text: str = self._compiled.string
        self._positional = bool(dialect.positional)
        binds: dict[str, Any] = {name: bind for bind, name in self._compiled.bind_names.items()}
        self._converts: Mapping[str, Convert] = self._compiled._bind_processors
        self._expands = any(bind.expanding for bind in binds.values())
        if missing := {name for name, bind in binds.items() if bind.required} - set(names):
            raise KeyError(f"a statement was run without the values {sorted(missing)}")
        if self._expands:
            return  # The text depends on the values, so it is built at each run.
        order: Sequence[str] = self._compiled.positiontup if self._positional else list(binds)
        self._order = [
            (
                name,
                self._converts.get(name),
                None if name in names else self._converted(name, self._compiled.params[name]),
                name in names,
            )
            for name in order
        ]

    def for_driver(self, given: Mapping[str, Any]) -> tuple[str, Any]:
        """Return the text and the values in the form that the driver expects."""
        if self._expands:
            state = self._compiled.construct_expanded_state(given)
            converts = {**self._converts, **state.processors}
            values = {
                name: converts[name](value) if name in converts else value for name, value in state.parameters.items()
            }
            order = state.positiontup
            return state.statement, tuple(values[name] for name in order) if self._positional else values
        if self._positional:
            return self._text, tuple(
                (given[name] if convert is None else convert(given[name])) if is_given else constant
                for name, convert, constant, is_given in self._order
            )
        return self._text, {
            name: (given[name] if convert is None else convert(given[name])) if is_given else constant
            for name, convert, constant, is_given in self._order
        }

    def records(self, cursor: Any) -> list[Record]:
        """Return the driver's rows with the columns' Python types."""
        found = cursor.fetchall()
        if not found:
            return []
        if self._read is None:
            self._read = [
                (name, kind.dialect_impl(self._dialect).result_processor(self._dialect, described[1]))
                for (name, kind), described in zip(self._columns, cursor.description, strict=True)
            ]
        read = self._read
        return [
            {
                name: value if convert is None else convert(value)
                for (name, convert), value in zip(read, row, strict=True)
            }
            for row in found
        ]

    def _converted(self, name: str, value: Any) -> Any:
        convert = self._converts.get(name)
        return value if convert is None else convert(value)


class Transaction:
    """A transaction on one connection. Its methods raise SQLAlchemy's errors."""

    def __init__(self, database: Database, connection: PoolProxiedConnection) -> None:
        self._database = database
        self._connection = connection
        self._cursor: Any = connection.cursor()
        self._is_lone = True

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
        """Run a statement again that failed because of a concurrent one and changed nothing.

        Statements inside a transaction are not repeated, because the whole transaction would have to be.
        """
        until = time.monotonic() + REPEAT_WITHIN_S
        pause_s = FIRST_PAUSE_S
        while self._is_lone and isinstance(error, Exception) and was_in_the_way(error) and time.monotonic() < until:
            unprepare(self._connection, error)
            time.sleep(pause_s * random.uniform(0.5, 1.5))  # equal pauses would make the two collide again
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            try:
                self._cursor.execute(text, values)
            except BaseException as again:
                error = again
            else:
                return
        self._fail(text, error)

    def _fail(self, text: str, error: BaseException) -> NoReturn:
        """Raise SQLAlchemy's error for a driver's error.

        If the connection is lost, it leaves the pool together with all connections of the same age.
        """
        if not isinstance(error, Exception):
            self._connection.invalidate(error)
            raise error
        raise self._database.failure(text, error, self._connection, self._cursor) from error


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

        durably   return only when the rows it wrote or found survive a power cut; Postgres decides by
                  `synchronous_commit`

        SQLite's log is synced after the commit. `synchronous=FULL` would sync it during the commit, while the writer
        holds the file's lock; this way many writers also share one sync.
        """
        with self._writing, self._connected() as connection:
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
        with self._writing, self._connected() as connection:
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

    def failure(self, text: str, error: Exception, connection: Any = None, cursor: Any = None) -> Exception:
        """Return the error that SQLAlchemy raises for a driver's error. Returns any other error unchanged."""
        dialect = self.engine.dialect
        kind = cast(Any, dialect.dbapi).Error
        if not isinstance(error, kind):
            return error
        gone = connection is not None and (
            dialect.is_disconnect(cast(Any, error), connection.driver_connection, cursor)
            or unprepare(connection, error)  # The other statements are prepared as well.
        )
        if gone:
            pool: Any = self.engine.pool
            pool._invalidate(connection, error)
        return cast(
            Exception,
            DBAPIError.instance(
                text or None, None, error, kind, hide_parameters=True, connection_invalidated=gone, dialect=dialect
            ),
        )

    def _connected(self) -> Transaction:
        try:
            return Transaction(self, self.engine.raw_connection())
        except Exception as error:
            raise self.failure("", error) from error

    def _prepare(self, statement: Executable, names: tuple[str, ...], *, many: bool = False) -> Prepared:
        return Prepared(statement, self.engine.dialect, names, many=many)
