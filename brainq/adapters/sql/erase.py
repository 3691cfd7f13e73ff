"""Erase sessions from SQL: every row about them in every table, and the remains of deleted content in the file.

Pruning (`adapters/sql/prune.py`) deletes by age and keeps rows that are still in use. Erasing deletes everything of a
session, after its turns have ended. It uses short transactions, so an interrupted run continues where it stopped.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain

from sqlalchemy import ColumnElement, Float, Table, and_, bindparam, delete, or_, select, update

from brainq.adapters.sql.database import Database
from brainq.adapters.sql.engine import BUSY_TIMEOUT_S
from brainq.adapters.sql.repositories.blobs import drop_unused, unlink
from brainq.adapters.sql.tables import attachments, schedules, turns
from brainq.adapters.sql.tables.tenant_tables import BY_SESSION, BY_TURN, KNOWLEDGE
from brainq.adapters.sql.tables.types import utc_after
from brainq.adapters.sql.tenant_budgets import TenantBudgetRows
from brainq.contracts.erasure import ErasureScope
from brainq.contracts.ids import prefix_upper_bound

BATCH = 200  # The number of turns in one transaction, as in pruning.
BUDGET_WINDOWS = "budget_windows"
_THESE = bindparam("turns", expanding=True)


class SqlErasure:
    """The erasure of one session or tenant from a database."""

    def __init__(self, database: Database, scope: ErasureScope) -> None:
        self._db = database
        self._scope = scope
        self._budgets = TenantBudgetRows(database)
        self._counts: Counter[str] = Counter()
        self._gone: list[str] = []  # A finalizer step that was running may write rows of these turns later.

    def open_turns(self) -> list[tuple[str, str]]:
        """Return (session id, turn id) of the turns that have not ended."""
        found = self._db.all(
            select(turns.c.session_id, turns.c.turn_id).where(self._within(turns), turns.c.ended_at.is_(None)), {}
        )
        return [(row["session_id"], row["turn_id"]) for row in found]

    def ended_turns(self, within_s: float) -> list[tuple[str, str]]:
        """Return (session id, turn id) of the turns that ended within the last `within_s` seconds."""
        recent = turns.c.ended_at > utc_after(bindparam("ago", type_=Float()))
        found = self._db.all(
            select(turns.c.session_id, turns.c.turn_id).where(self._within(turns), recent), {"ago": -within_s}
        )
        return [(row["session_id"], row["turn_id"]) for row in found]

    def erase(self) -> Mapping[str, int]:
        """Delete every row. Returns the number of rows by table. Idempotent."""
        self._counts.clear()
        for turn_ids in chain(list(_pages(self._gone)), self._turn_ids()):
            self._erase_turns(turn_ids)
        for table in self._by_session():
            self._counts[table.name] += self._db.write(delete(table).where(self._within(table)), {})
        self._counts[BUDGET_WINDOWS] += self._budgets.remove(self._scope.name) if self._scope.is_tenant else 0
        self._erase_files()
        for table in KNOWLEDGE:
            self._counts[table.name] += self._db.write(delete(table).where(self._known(table)), {})
        return dict(self._counts)

    def left(self) -> Mapping[str, int]:
        """Return the number of rows that are left, by table, without tables that have none."""
        tables = (turns, attachments, *self._by_session())
        found = {table.name: self._db.count(table, self._within(table)) for table in tables}
        found |= {table.name: self._db.count(table, self._known(table)) for table in KNOWLEDGE}
        found[BUDGET_WINDOWS] = len(self._budgets.windows(self._scope.name)) if self._scope.is_tenant else 0
        for table in BY_TURN:
            these = table.c.turn_id.in_(_THESE)
            found[table.name] = sum(self._db.count(table, these, {"turns": page}) for page in _pages(self._gone))
        return {name: count for name, count in found.items() if count}

    def scrub(self) -> str:
        """Remove deleted content from the database file. See the module's function `scrub`."""
        return scrub(self._db)

    def _turn_ids(self) -> Iterator[Sequence[str]]:
        page = select(turns.c.turn_id).where(self._within(turns)).order_by(turns.c.row).limit(BATCH)
        while found := self._db.all(page, {}):
            these = [row["turn_id"] for row in found]
            self._gone += these
            yield these

    def _erase_turns(self, turn_ids: Sequence[str]) -> None:
        given = {"turns": turn_ids}
        with self._db.transaction() as connection:
            links, files = unlink(connection, turn_ids)
            self._counts.update(attachments=links, blobs=files)
            for table in BY_TURN:
                gone = connection.write(delete(table).where(table.c.turn_id.in_(_THESE)), given)
                self._counts[table.name] += gone
            for table in KNOWLEDGE:  # what others' turns taught stays, without the name of the last that repeated it
                last = update(table).where(table.c.last_turn_id.in_(_THESE), ~self._known(table))
                connection.write(last.values(last_turn_id=table.c.turn_id), given)
            self._counts["turns"] += connection.write(delete(turns).where(turns.c.turn_id.in_(_THESE)), given)

    def _erase_files(self) -> None:
        """Delete files of submits that never became a turn."""
        mine = self._within(attachments)
        with self._db.transaction() as connection:
            hashes = [row["sha256"] for row in connection.all(select(attachments.c.sha256).where(mine), {})]
            self._counts["attachments"] += connection.write(delete(attachments).where(mine), {})
            self._counts["blobs"] += drop_unused(connection, hashes)

    def _by_session(self) -> list[Table]:
        return [each.table for each in BY_SESSION if each.is_there(self._db.engine)]

    def _within(self, table: Table) -> ColumnElement[bool]:
        theirs = self._begins(table.c.session_id)
        # A schedule's session may be a pattern such as `acme:report-{date}`. Its name also shows whose schedule it is.
        return or_(theirs, self._begins(table.c.name)) if table is schedules else theirs

    def _known(self, table: Table) -> ColumnElement[bool]:
        """Return the condition for knowledge from these sessions or in their scopes."""
        return or_(self._begins(table.c.session_id), self._begins(table.c.scope))

    def _begins(self, column: ColumnElement[str]) -> ColumnElement[bool]:
        name = self._scope.name
        if not self._scope.is_tenant:
            return column == name
        return and_(column >= name, column < prefix_upper_bound(name))


def scrub(database: Database) -> str:
    """Remove deleted content from the free pages and the log of a SQLite file.

    Returns one line about what prevents that, or "". For Postgres the line says that its own vacuum does it later.
    """
    if database.dialect != "sqlite":
        return "Postgres keeps deleted rows in its files until the next VACUUM, and in its log until that is recycled"
    path = (database.engine.url.database or "").removeprefix("file:").partition("?")[0]
    with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)) as connection:
        for table in KNOWLEDGE:  # A deleted word stays in the full-text index until its segments are merged.
            connection.execute(f"INSERT INTO {table.name}_fts({table.name}_fts) VALUES ('optimize')")
        connection.execute("VACUUM")
        busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return "another reader kept SQLite's log from being emptied; run this command again" if busy else ""


def _pages(turn_ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """Split turn ids into batches of one transaction."""
    for start in range(0, len(turn_ids), BATCH):
        yield turn_ids[start : start + BATCH]
