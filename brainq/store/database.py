"""Running statements: one write, one read, or several in one transaction."""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from sqlalchemy import Connection, Engine, Executable, RowMapping

from brainq.store.engine import transaction

Parameters = Mapping[str, object]
Dialects = Mapping[str, Executable]
Record = RowMapping  # column name -> value


class Database:
    """An engine and the rule for writing to it. Thread-safe; each call takes a connection and gives it back.

    A SQLite file has one writer at a time. Threads of one process queue on a lock, which wakes the next at
    once; left to SQLite they would poll with pauses of up to 100 ms.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.dialect = engine.dialect.name
        self._writing: AbstractContextManager[Any] = (
            threading.RLock() if self.dialect == "sqlite" else nullcontext()
        )

    def pick(self, statements: Dialects) -> Executable:
        """The statement of this database's dialect."""
        return statements[self.dialect]

    def write(self, statement: Executable, parameters: Parameters) -> int:
        """Run one writing statement in its own transaction; the number of rows it touched."""
        with self._writing, self.engine.connect() as connection:
            return connection.execute(statement, parameters).rowcount

    def write_returning(self, statement: Executable, parameters: Parameters) -> Record | None:
        """Like `write`, for a statement with RETURNING; the first row it gave."""
        with self._writing, self.engine.connect() as connection:
            return connection.execute(statement, parameters).mappings().first()

    def first(self, statement: Executable, parameters: Parameters) -> Record | None:
        """The first row of one reading statement."""
        with self.engine.connect() as connection:
            return connection.execute(statement, parameters).mappings().first()

    def all(self, statement: Executable, parameters: Parameters) -> Sequence[Record]:
        """Every row of one reading statement."""
        with self.engine.connect() as connection:
            return connection.execute(statement, parameters).mappings().all()

    @contextmanager
    def transaction(self) -> Generator[Connection]:
        """Several statements, all or nothing.

        Use only this connection inside: on SQLite another write would wait for this very transaction, and
        fail at the busy timeout.
        """
        with self._writing, transaction(self.engine) as connection:
            yield connection
