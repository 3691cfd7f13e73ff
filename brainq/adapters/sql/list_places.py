"""Find where a list of one database continues after an item of another database: by its time, or by its cost or tokens.

Each database lists its rows by number. A list over several databases is ordered by time, and for equal times by
database. Rows are usually written in the order of their times. If two are written at once, or a clock is set back, a
list may show an item twice, but it omits none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Column, ColumnElement, Text, literal, literal_column, or_, select, type_coerce

from brainq.adapters.sql.database import Database
from brainq.adapters.sql.statements import in_sessions
from brainq.adapters.sql.tables import approvals, deliveries, memories, turns
from brainq.contracts.history import Sort

NEAR = 256  # Rows that were written at once may have times and numbers in different orders.
NOTHING_NEWER = 2**62  # No row has this number.
_LISTED = {
    "turns": (turns, turns.c.accepted_at),
    "approvals": (approvals, approvals.c.created_at),
    "deliveries": (deliveries, deliveries.c.created_at),
    "memories": (memories, memories.c.created_at),
}


@dataclass(frozen=True, slots=True)
class ListPlace:
    """The place of an item in a list: its row, its instant, and its cost or tokens if the list is sorted by these."""

    row: int
    at: datetime
    figure: float = 0


@dataclass(frozen=True, slots=True)
class Figure:
    """The place after all items with a higher figure.

    If `has_ties`, items with the same figure come after it as well.
    """

    value: float
    has_ties: bool

    def is_behind(self, figure: Column[Any]) -> ColumnElement[bool]:
        return or_(figure < self.value, *([figure == self.value] if self.has_ties else []))


class ListPlaces:
    """The places in the lists of one database. An item that is not in the database has the place None."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def of_turn(self, turn_id: str, sort: Sort, sessions: Sequence[str] | None) -> ListPlace | None:
        """Return the place of a turn, if its session begins with one of these prefixes."""
        named = [turns.c.row, turns.c.accepted_at, turns.c.cost_usd, turns.c.tokens]
        statement = select(*named).where(turns.c.turn_id == turn_id)
        if sessions is not None:
            statement = statement.where(in_sessions(turns.c.session_id, sessions))
        found = self._db.first(statement, {})
        if found is None:
            return None
        figure = {"cost": found["cost_usd"], "tokens": found["tokens"]}.get(sort)
        return ListPlace(int(found["row"]), found["accepted_at"], figure or 0)

    def of_row(self, kind: str, row: int) -> ListPlace | None:
        """Return the place of a row of `kind`: turns, approvals, deliveries or memories."""
        table, at = _LISTED[kind]
        found = self._db.first(select(at.label("at")).where(table.c.row == row), {})
        return None if found is None else ListPlace(row, found["at"])

    def behind(self, kind: str, other: ListPlace, *, has_ties: bool, is_newest_first: bool = True) -> int:
        """Return the row number after which a list continues if its last item is in another database.

        has_ties: rows with the same time come after the item.
        """
        table, at = _LISTED[kind]
        column, bound = instants_of(self._db, at), as_stored(self._db, at, other.at)
        if is_newest_first:
            is_behind = column <= bound if has_ties else column < bound
        else:
            is_behind = column >= bound if has_ties else column > bound
        near = select(table.c.row).where(is_behind).order_by(at.desc() if is_newest_first else at.asc())
        rows = [int(found["row"]) for found in self._db.all(near.limit(literal_column(str(NEAR))), {})]
        if is_newest_first:
            return max(rows) + 1 if rows else 0
        return min(rows) - 1 if rows else NOTHING_NEWER


def instants_of(database: Database, at: Column[Any]) -> ColumnElement[Any]:
    """Return the column in a form that can be compared. SQLite's times are texts with milliseconds."""
    return type_coerce(at, Text()) if database.dialect == "sqlite" else at


def as_stored(database: Database, at: Column[Any], instant: datetime) -> ColumnElement[Any]:
    """Return a time in the form that the column has."""
    if database.dialect != "sqlite":
        return literal(instant, at.type)
    utc = instant.astimezone(UTC).replace(tzinfo=None)
    return literal(utc.isoformat(" ", "milliseconds"), Text())
