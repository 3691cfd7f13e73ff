"""Build inserts that handle an existing row. Each is built once per dialect so that SQLAlchemy's cache finds it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Executable, Table, and_, bindparam, false, or_, select, true

from brainq.adapters.sql.database import Database, Dialects, Transaction
from brainq.adapters.sql.tables.types import SafeText
from brainq.adapters.sql.text import sql_text
from brainq.contracts.ids import ALL_SESSIONS, prefix_upper_bound


def insert_into(dialect: str, table: Table) -> Any:
    """Return the dialect's own INSERT, which has `on_conflict_...`."""
    # Import only the dialect in use: Postgres' takes a tenth of a second of CPU.
    if dialect == "sqlite":
        from sqlalchemy.dialects.sqlite import insert
    else:
        from sqlalchemy.dialects.postgresql import insert
    return insert(table)


def insert_or_ignore(
    table: Table, *, returning: str | None = None, fixed: Mapping[str, ColumnElement[Any]] | None = None
) -> Dialects:
    """Return INSERT ... ON CONFLICT DO NOTHING [RETURNING column]. It inserts no row if a unique key exists.

    fixed   columns with an expression; the others get the values given at each run
    """

    @cache
    def statement(dialect: str) -> Executable:
        insert = insert_into(dialect, table).on_conflict_do_nothing()
        if fixed is not None:
            insert = insert.values(dict(fixed))
        # inline: the new row's key is not needed, so Postgres need not return it
        return insert.inline() if returning is None else insert.returning(table.c[returning])

    return statement


def insert_unless(table: Table, names: Sequence[str], unless: ColumnElement[bool]) -> Dialects:
    """Return INSERT ... ON CONFLICT DO NOTHING for these columns. It also inserts no row if `unless` holds."""

    @cache
    def statement(dialect: str) -> Executable:
        values = select(*(bindparam(name, type_=table.c[name].type) for name in names)).where(~unless)
        return insert_into(dialect, table).from_select(list(names), values).on_conflict_do_nothing().inline()

    return statement


def in_sessions(session_id: ColumnElement[str], prefixes: Sequence[str]) -> ColumnElement[bool]:
    """Return the condition that a session begins with one of these prefixes. `*` matches any session, and an empty
    sequence matches none."""
    if ALL_SESSIONS in prefixes:
        return true()
    ranges = [and_(session_id >= prefix, session_id < prefix_upper_bound(prefix)) for prefix in prefixes]
    return or_(false(), *ranges)


class ManyRows:
    """An insert of many complete rows, except those whose key exists. It is meant for rows that every turn writes.

    The statement goes to the driver as text, because SQLAlchemy's handling of each value would cost more than all other
    statements of a turn's record. Postgres gets all rows as one JSON text in one round trip, which takes a third of the
    time of psycopg's `executemany`.
    """

    def __init__(self, table: Table, database: Database) -> None:
        self._lite = database.dialect == "sqlite"
        self._seal = database.row_sealer(table)
        self._names = [column.name for column in table.columns]
        self._texts = [at for at, column in enumerate(table.columns) if isinstance(column.type, SafeText)]
        names = ", ".join(self._names)
        source = (
            f"VALUES ({', '.join('?' * len(self._names))})"
            if self._lite
            else f"SELECT {names} FROM json_populate_recordset(CAST(NULL AS {table.name}), CAST(%s AS json))"
        )
        self._insert = f"INSERT INTO {table.name} ({names}) {source} ON CONFLICT DO NOTHING"

    def insert(self, connection: Transaction, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows, each of which has every column."""
        if not rows:
            return
        if self._seal is not None:
            rows = self._seal(rows)
        values = [self._values(row) for row in rows]
        if self._lite:
            connection.write_text(self._insert, [tuple(row) for row in values])
        else:
            body = json.dumps([dict(zip(self._names, row, strict=True)) for row in values])
            connection.write_text(self._insert, [(body,)])

    def _values(self, row: Mapping[str, Any]) -> list[Any]:
        """Return a row's values in the columns' order, without characters that databases refuse."""
        values = [row[name] for name in self._names]
        for at in self._texts:
            values[at] = sql_text(values[at])
        return values


def upsert(
    table: Table,
    keys: Sequence[str],
    *,
    copied: Sequence[str],
    changed: Mapping[str, ColumnElement[Any]],
    where: ColumnElement[bool] | None = None,
    fixed: Mapping[str, ColumnElement[Any]] | None = None,
) -> Dialects:
    """Return an INSERT that becomes an UPDATE if the `keys` exist and `where`, if given, holds.

    copied    columns that the UPDATE sets to the values of the new row
    changed   columns that the UPDATE sets to an expression
    fixed     columns of the new row with an expression; the others get the values given at each run
    """

    @cache
    def statement(dialect: str) -> Executable:
        insert = insert_into(dialect, table).inline()
        if fixed is not None:
            insert = insert.values(dict(fixed))
        return insert.on_conflict_do_update(
            index_elements=keys, set_={name: insert.excluded[name] for name in copied} | dict(changed), where=where
        )

    return statement
