"""Full-text search, made for each database: an FTS5 table beside the rows, or a generated tsvector column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Boolean, Executable, Select, Table, bindparam, column, func, literal_column, or_, table

from brainq.store.database import Dialects
from brainq.store.terms import scope_term


def search_statement(rows: Table, shown: Select[Any]) -> Dialects:
    """Rows of a scope that hold any of the words, the best first. Parameters: scope match any_kind kinds limit.

    SQLite ranks by bm25; Postgres by ts_rank over the length, which does not know how rare a word is.
    """

    def statement(dialect: str) -> Executable:
        found = _in_fts5(rows, shown) if dialect == "sqlite" else _in_tsvector(rows, shown)
        of_kind = or_(
            bindparam("any_kind", type_=Boolean()), rows.c.kind.in_(bindparam("kinds", expanding=True))
        )
        return (
            found.where(rows.c.scope == bindparam("scope"), of_kind)
            .order_by(rows.c.times_seen.desc(), rows.c.row.desc())
            .limit(bindparam("limit"))
        )

    return statement


def _in_fts5(rows: Table, shown: Select[Any]) -> Select[Any]:
    fts = table(f"{rows.name}_fts", column("rowid"))
    # The scope's own column leads to its rows and counts nothing for the rank.
    rank = literal_column(f"bm25({fts.name}, 0.0, 1.0)")
    return (
        shown.join(fts, fts.c.rowid == rows.c.row)
        .where(literal_column(fts.name).op("MATCH")(bindparam("match")))
        .order_by(rank)
    )


def _in_tsvector(rows: Table, shown: Select[Any]) -> Select[Any]:
    from sqlalchemy.dialects.postgresql import TSVECTOR

    search = literal_column(f"{rows.name}.search", TSVECTOR())
    query = func.to_tsquery(literal_column("'english'"), bindparam("match"))
    return shown.where(search.op("@@")(query)).order_by(
        func.ts_rank(search, query, literal_column("1")).desc()
    )


def match_of(dialect: str, scope: str, terms: Sequence[str]) -> str:
    """The query for these terms, each of a-z and 0-9 alone, any of which may be found."""
    if dialect == "postgresql":
        return " | ".join(terms)
    words = " OR ".join(f'"{term}"' for term in terms)
    return f'scope_term : "{scope_term(scope)}" AND terms : ({words})'
