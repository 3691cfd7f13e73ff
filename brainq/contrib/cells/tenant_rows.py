"""Read a tenant's rows from one database page by page, write them to another, count them, and delete them.

This covers every table except `tokens`, which only the home cell has. Rows keep all columns except `row`, which each
database numbers itself; they are written in their order, so that the order within a session stays.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Executable,
    Table,
    Text,
    UniqueConstraint,
    and_,
    bindparam,
    delete,
    func,
    select,
    true,
    update,
)

from brainq.adapters.sql.database import Database
from brainq.adapters.sql.prepared import Record
from brainq.adapters.sql.repositories.blobs import unlink
from brainq.adapters.sql.statements import insert_into
from brainq.adapters.sql.tables import attachments, blobs, brakes, inputs, pruned_sessions, turns
from brainq.adapters.sql.tables.job_tables import JOB_TABLES
from brainq.adapters.sql.tables.tenant_tables import COPIED, HANDED_OVER, KNOWLEDGE, OF_TURNS, row_key
from brainq.adapters.sql.tables.types import UtcTimestamp
from brainq.contracts.encryption import MARK
from brainq.contracts.ids import PREFIX_BOUNDARY, prefix_upper_bound, tenant_of

PAGE = 500
BATCH = 200  # The number of turns in one transaction, as in pruning.
BLOB_PAGE = 20  # Each blob may have some megabytes.
_FIRST, _BEYOND = bindparam("first"), bindparam("beyond")
_THEIR_TURNS = select(turns.c.turn_id).where(turns.c.session_id >= _FIRST, turns.c.session_id < _BEYOND)
_THEIR_HASHES = select(attachments.c.sha256).where(
    attachments.c.session_id >= _FIRST, attachments.c.session_id < _BEYOND
)
_THESE = bindparam("turns", expanding=True)
_TURNS = select(turns.c.row, turns.c.turn_id).where(turns.c.session_id >= _FIRST, turns.c.session_id < _BEYOND)
_FIRST_TURNS = _TURNS.order_by(turns.c.row).limit(BATCH)
_KNOWN_TURNS = select(turns.c.turn_id).where(turns.c.turn_id.in_(_THESE))
_INPUTS = select(inputs.c.row, inputs.c.session_id, inputs.c.client_message_id).where(inputs.c.turn_id.in_(_THESE))
_REMOVE_TURNS = [
    delete(table).where(table.c.turn_id.in_(_THESE)) for table in (*OF_TURNS, turns) if table is not inputs
]
_INPUTS_GONE = delete(inputs).where(inputs.c.row.in_(bindparam("rows", expanding=True)))
_LAST_ROW = select(func.coalesce(func.max(turns.c.row), 0)).scalar_subquery()
_PRUNED_BEFORE_ALL = update(pruned_sessions).where(pruned_sessions.c.turn_row > _LAST_ROW).values(turn_row=_LAST_ROW)
Counts = Mapping[str, int]
"""Rows by table."""


@dataclass(frozen=True, slots=True)
class TableDigest:
    """The number of a tenant's rows in a table, and a digest of their content."""

    rows: int
    digest: str


def tenant_range(tenant: str) -> dict[str, str]:
    """Return the range of a tenant's session ids, from `first` to before `beyond`."""
    beyond = prefix_upper_bound(tenant) if tenant.endswith(PREFIX_BOUNDARY) else tenant + "\x01"
    return {"first": tenant, "beyond": beyond}


class TenantRows:
    """The rows of tenants, named by their keys, in one database."""

    def __init__(self, database: Database) -> None:
        self._db = database
        JOB_TABLES.make(database.engine)

    def pages(self, table: Table, tenant: str, upto: Mapping[str, int] | None = None) -> Iterator[Sequence[Record]]:
        """Return the rows of a tenant in a table page by page, in the order in which they were written.

        upto   the last row to include, by table; later rows and the files of later turns are left out
        """
        statement, values = select(table).where(is_of_tenant(table)), dict[str, object](tenant_range(tenant))
        if upto is not None:
            statement = statement.where(_is_settled(table))
            values |= {"upto": upto.get(table.name, 0), "upto_turns": upto.get("turns", 0)}
        return self._db.pages(statement, row_key(table), BLOB_PAGE if table is blobs else PAGE, values)

    def put(self, table: Table, rows: Sequence[Record]) -> None:
        """Insert rows in one transaction. Rows whose key exists stay unchanged."""
        if not rows:
            return
        lite = self._db.dialect == "sqlite"
        names = [column.name for column in _kept(table)]
        values = [{name: _stored(row[name], lite=lite) for name in names} for row in rows]
        if table is pruned_sessions:
            values = [{**row, "turn_row": 0} for row in values]  # before all rows of this database
        with self._db.transaction() as connection:
            connection.write_many(_put(table, self._db.dialect), values)

    def digest(self, table: Table, tenant: str, upto: Mapping[str, int] | None = None) -> TableDigest:
        """Return a digest that is equal for two databases with equal rows."""
        count, total = 0, 0
        for page in self.pages(table, tenant, upto):
            for row in page:
                count += 1
                total += int.from_bytes(hashlib.sha256(_canonical(table, row)).digest()[:16])
        return TableDigest(count, f"{total % 2**128:032x}")

    def digests(self, tenant: str, upto: Mapping[str, int] | None = None) -> dict[str, TableDigest]:
        """Return the digests of all records, by table. `upto` is as for `pages`."""
        return {table.name: self.digest(table, tenant, upto) for table in COPIED}

    def counts(self, tenant: str) -> dict[str, int]:
        """Return the number of rows by table, without tables that have none."""
        tables, given = (*COPIED, *HANDED_OVER), tenant_range(tenant)
        found = {table.name: self._db.count(table, is_of_tenant(table), given) for table in tables}
        return {name: count for name, count in found.items() if count}

    def replace(self, table: Table, rows: Sequence[Record]) -> None:
        """Insert rows, and replace those whose key exists."""
        keys = _unique(table)
        with self._db.transaction() as connection:
            for row in rows:
                connection.write(_delete_one(table), {f"old_{name}": row[name] for name in keys})
        self.put(table, rows)

    def unreadable(self, tenant: str) -> int:
        """Return how many turns are under removed keys. Raises ContentKeyMissing if a key is not available."""
        codec = self._db.codec
        gone = () if codec is None else codec.removed(tenant_of(tenant))
        if not gone:
            return 0
        begins = func.substr(turns.c.request_json, 1, len(MARK) + len(gone[0]))
        is_lost = and_(is_of_tenant(turns), begins.in_([MARK + key for key in gone]))
        return self._db.count(turns, is_lost, tenant_range(tenant))

    def first_turns(self, tenant: str) -> list[str]:
        """Return the ids of the tenant's oldest turns, at most one page."""
        return [row["turn_id"] for row in self._db.all(_FIRST_TURNS, tenant_range(tenant))]

    def turn_pages(self, tenant: str) -> Iterator[list[str]]:
        """Yield the ids of the tenant's turns in the order of acceptance."""
        for page in self._db.pages(_TURNS, [turns.c.row], BATCH, tenant_range(tenant)):
            yield [row["turn_id"] for row in page]

    def known_turns(self, turn_ids: Sequence[str]) -> set[str]:
        """Return those of the given turns that are in this database."""
        return {row["turn_id"] for row in self._db.all(_KNOWN_TURNS, {"turns": turn_ids})}

    def inputs_of(self, turn_ids: Sequence[str]) -> dict[tuple[str, str], int]:
        """Return the row numbers of the inputs of these turns, by session and client_message_id."""
        found = self._db.all(_INPUTS, {"turns": turn_ids})
        return {(row["session_id"], row["client_message_id"]): row["row"] for row in found}

    def remove_turns(self, turn_ids: Sequence[str], input_rows: Sequence[int]) -> None:
        """Delete these turns with all their rows, and the given rows of inputs."""
        with self._db.transaction() as connection:
            unlink(connection, turn_ids)
            for statement in _REMOVE_TURNS:
                connection.write(statement, {"turns": turn_ids})
            connection.write(_INPUTS_GONE, {"rows": input_rows})

    def remove_rest(self, tenant: str) -> None:
        """Delete a tenant's other rows after its turns: knowledge, flags, schedules, counts."""
        values = tenant_range(tenant)
        for table in (*KNOWLEDGE, pruned_sessions, brakes, *HANDED_OVER):
            self._db.write(_remove(table), values)
        if self._db.dialect == "sqlite":
            # The row numbers of deleted rows are reused, but a session's next turn must come after its earlier ones.
            self._db.write(_PRUNED_BEFORE_ALL, {})

    def remove_jobs(self, table: Table, tenant: str) -> None:
        """Delete the tenant's rows in a table of HANDED_OVER."""
        self._db.write(_remove(table), tenant_range(tenant))


def _unique(table: Table) -> tuple[str, ...]:
    """Return the columns that identify a row of a table in every database."""
    constraints = sorted(
        (each for each in table.constraints if isinstance(each, UniqueConstraint)), key=lambda each: str(each.name)
    )
    chosen = table.primary_key if "row" not in table.c else constraints[0]
    return tuple(column.name for column in chosen.columns)


@cache
def _delete_one(table: Table) -> Executable:
    return delete(table).where(
        *(table.c[name] == bindparam(f"old_{name}", type_=table.c[name].type) for name in _unique(table))
    )


def _kept(table: Table) -> list[Column[Any]]:
    return [column for column in table.columns if column.name != "row"]


def is_of_tenant(table: Table) -> ColumnElement[bool]:
    """Return the condition that a row belongs to the tenant with the range `first` to `beyond`."""
    if table is blobs:
        return blobs.c.sha256.in_(_THEIR_HASHES)
    if "session_id" not in table.c:
        return table.c.turn_id.in_(_THEIR_TURNS)
    return and_(table.c.session_id >= _FIRST, table.c.session_id < _BEYOND)


def _is_settled(table: Table) -> ColumnElement[bool]:
    """Return the condition that a row is not later than the last row to include."""
    upto = bindparam("upto", type_=turns.c.row.type)
    theirs = _THEIR_TURNS.where(turns.c.row <= bindparam("upto_turns", type_=turns.c.row.type))
    if table is blobs:
        return blobs.c.sha256.in_(_THEIR_HASHES.where(attachments.c.turn_id.in_(theirs)))
    if table is attachments:
        return attachments.c.turn_id.in_(theirs)
    return table.c.row <= upto if "row" in table.c else true()


@cache
def _put(table: Table, dialect: str) -> Executable:
    lite = dialect == "sqlite"
    texts = {
        column.name: bindparam(column.name, type_=Text())
        for column in _kept(table)
        if lite and isinstance(column.type, UtcTimestamp)
    }
    insert = insert_into(dialect, table).on_conflict_do_nothing().inline()
    return insert.values(texts) if texts else insert


@cache
def _remove(table: Table) -> Executable:
    return delete(table).where(is_of_tenant(table))


def _stored(value: Any, *, lite: bool) -> Any:
    """Return an instant in the form of the database's own clock: SQLite compares texts with milliseconds."""
    if lite and isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}.{value.microsecond // 1000:03d}"
    return value


def _canonical(table: Table, row: Record) -> bytes:
    """Return a row's content as bytes that are equal for all databases."""
    values: list[Any] = []
    for column in _kept(table):
        value = row[column.name]
        if isinstance(value, datetime):
            value = int(value.timestamp() * 1000)
        elif isinstance(value, bytes | memoryview):
            value = hashlib.sha256(value).hexdigest()
        elif table is pruned_sessions and column.name == "turn_row":
            value = 0
        values.append(value)
    return json.dumps(values, sort_keys=True, default=str).encode()
