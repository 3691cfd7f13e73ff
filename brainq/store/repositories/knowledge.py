"""What memories and observations have in common: kept once per scope, merged when seen again, searchable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Boolean, Table, bindparam, delete, or_, select

from brainq.store.database import Database, Record, Transaction
from brainq.store.normal import normal_hash
from brainq.store.search import match_of, search_statement
from brainq.store.statements import upsert, within
from brainq.store.tables.types import utc_now
from brainq.store.terms import query_terms, scope_term, terms_of

_INTERNAL = ("norm_hash", "scope_term", "terms")
LISTED = 1000


class KnowledgeTable:
    """Statements over one such table, built once."""

    def __init__(self, database: Database, rows: Table) -> None:
        self._db = database
        self._rows = rows
        columns = rows.c
        shown = select(*(column for column in columns if column.name not in _INTERNAL))
        self._shown = shown
        self._merge = database.pick(
            upsert(
                rows,
                ("scope", "kind", "norm_hash"),
                copied=("last_turn_id",),
                changed={"times_seen": columns.times_seen + 1, "updated_at": utc_now()},
            )
        )
        self._search = database.pick(search_statement(rows, shown))
        self._newest = (
            shown.where(
                columns.scope == bindparam("scope"),
                or_(
                    bindparam("any_kind", type_=Boolean()),
                    columns.kind.in_(bindparam("kinds", expanding=True)),
                ),
            )
            .order_by(columns.updated_at.desc(), columns.times_seen.desc(), columns.row.desc())
            .limit(bindparam("limit"))
        )
        self._of_turn = shown.where(columns.turn_id == bindparam("turn")).order_by(columns.row)

    def merge(
        self, connection: Transaction, scope: str, items: Iterable[tuple[str, str]], values: dict[str, object]
    ) -> int:
        """Effect: keep (kind, text) items, or count those the scope has already; how many different ones.

        The same item twice in one call counts once. The first text stays as it was first said.
        """
        in_scope = values | {"scope": scope, "scope_term": scope_term(scope)}
        rows = {
            (kind, normal_hash(text)): {"kind": kind, "text": text, "terms": " ".join(terms_of(text))}
            for kind, text in reversed(list(items))
        }
        if rows:
            # In one order everywhere: two turns that merge the same rows must not wait for each other in a circle.
            connection.write_many(
                self._merge,
                [{**in_scope, **row, "norm_hash": key[1]} for key, row in sorted(rows.items())],
            )
        return len(rows)

    def search(self, scope: str, query: str, limit: int, kinds: Sequence[str]) -> Sequence[Record]:
        terms = query_terms(query)
        if not terms:
            return self.newest(scope, kinds, limit)
        match = match_of(self._db.dialect, scope, terms)
        return self._db.all(self._search, _wanted(scope, kinds, limit) | {"match": match})

    def newest(self, scope: str, kinds: Sequence[str], limit: int) -> Sequence[Record]:
        return self._db.all(self._newest, _wanted(scope, kinds, limit))

    def of_turn(self, turn_id: str) -> Sequence[Record]:
        return self._db.all(self._of_turn, {"turn": turn_id})

    def page(
        self, scopes: Sequence[str], limit: int, after: int | None, sessions: Sequence[str] | None
    ) -> Sequence[Record]:
        """Those first seen last come first; the next page begins after the `row` of the last one here.

        sessions   only what was first seen in a session that begins with one of these prefixes
        """
        columns = self._rows.c
        statement = self._shown.where(columns.scope.in_(scopes)).order_by(columns.row.desc()).limit(limit)
        if after is not None:
            statement = statement.where(columns.row < after)
        if sessions is not None:
            statement = statement.where(within(columns.session_id, sessions))
        return self._db.all(statement, {})

    def remove(self, row: int, sessions: Sequence[str] | None) -> bool:
        """False where there is none of these sessions; see `page`."""
        columns = self._rows.c
        statement = delete(self._rows).where(columns.row == row)
        if sessions is not None:
            statement = statement.where(within(columns.session_id, sessions))
        return self._db.write(statement, {}) == 1

    def remove_all(
        self, connection: Transaction, scopes: Sequence[str], sessions: Sequence[str] | None
    ) -> int:
        """Effect: nothing of these scopes stays; how many rows went. See `page`."""
        columns = self._rows.c
        statement = delete(self._rows).where(columns.scope.in_(scopes))
        if sessions is not None:
            statement = statement.where(within(columns.session_id, sessions))
        return connection.write(statement, {})


def _wanted(scope: str, kinds: Sequence[str], limit: int) -> dict[str, Any]:
    """No kinds: any kind."""
    return {"scope": scope, "any_kind": not kinds, "kinds": list(kinds), "limit": limit}
