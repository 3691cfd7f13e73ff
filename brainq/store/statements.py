"""Inserts that may meet an existing row, built once a dialect so that SQLAlchemy's cache finds them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Executable, Table, and_, bindparam, false, or_, select, true

from brainq.contracts.ids import ALL_SESSIONS, prefix_upper_bound
from brainq.store.database import Database, Dialects, Transaction
from brainq.store.tables.types import SafeText
from brainq.store.text import sql_text


def insert_into(dialect: str, table: Table) -> Any:
    """The dialect's own INSERT, which has `on_conflict_...`."""
    # The dialect of a database that is not used is not imported: Postgres' takes a tenth of a second of CPU.
    if dialect == "sqlite":
        from sqlalchemy.dialects.sqlite import insert
    else:
        from sqlalchemy.dialects.postgresql import insert
    return insert(table)


def insert_or_ignore(
    table: Table, *, returning: str | None = None, fixed: Mapping[str, ColumnElement[Any]] | None = None
) -> Dialects:
    """INSERT ... ON CONFLICT DO NOTHING [RETURNING column]; 0 rows where any unique key was taken.

    `fixed` columns get an expression, the others the values given at each run.
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
    """INSERT these columns' values, given at each run, ON CONFLICT DO NOTHING; 0 rows also where `unless` holds."""

    @cache
    def statement(dialect: str) -> Executable:
        values = select(*(bindparam(name, type_=table.c[name].type) for name in names)).where(~unless)
        return insert_into(dialect, table).from_select(list(names), values).on_conflict_do_nothing().inline()

    return statement


def in_sessions(session_id: ColumnElement[str], prefixes: Sequence[str]) -> ColumnElement[bool]:
    """Whether a session begins with one of these prefixes; `*` is any. Without prefixes no session does."""
    if ALL_SESSIONS in prefixes:
        return true()
    ranges = [and_(session_id >= prefix, session_id < prefix_upper_bound(prefix)) for prefix in prefixes]
    return or_(false(), *ranges)


class ManyRows:
    """Inserts whole rows of a table, those whose key is taken left out. For rows that every turn writes.

    The statement goes to the driver as text: with SQLAlchemy's own handling of each value, the rows of a turn
    cost more than all other statements of its record. To Postgres all rows go as one JSON text, in one round trip;
    psycopg's `executemany` takes three times as long.
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
        """Effect. Every row has every column."""
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
        """In the columns' order, without what databases refuse in a text."""
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
    """INSERT, or, where `keys` are taken and `where` (if any) holds, UPDATE.

    `copied` columns take the values meant for the new row, `changed` ones an expression. `fixed` columns of the
    new row get an expression, the others the values given at each run.
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
