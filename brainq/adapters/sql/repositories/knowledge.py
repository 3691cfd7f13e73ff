"""Memories and observations: stored once per scope, merged when they are seen again, and found by full-text search;
and the default MemoryRetriever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import (
    Boolean,
    Executable,
    Select,
    Table,
    bindparam,
    column,
    delete,
    func,
    literal_column,
    or_,
    select,
    table,
)

from brainq.adapters.sql.database import Database, Dialects, Transaction
from brainq.adapters.sql.statements import in_sessions, upsert
from brainq.adapters.sql.tables import memories, observations
from brainq.adapters.sql.tables.types import utc_now
from brainq.adapters.sql.text import normalized, normalized_hash, query_terms, scope_term, terms_of
from brainq.contracts.encryption import SHREDDED
from brainq.contracts.memory import MemoryItem, Observation, RetrievedMemory
from brainq.contracts.rows import KnowledgeRow, MemoryRow, ObservationRow
from brainq.runtime.observe.logs import logger

_INTERNAL = ("norm_hash", "scope_term", "terms")
MAX_LISTED = 1000
MAX_READ_THROUGH = 2000  # MAX_READ_THROUGH encrypted memories are read by one search, which takes about 30 ms.
log = logger("brainq.memory")
Row = TypeVar("Row", bound=KnowledgeRow)
MAX_RETRIEVED = 8
HABITS_LISTED = 20  # preferences and habits apply to every message, not only to one that shares words


def search_statement(rows: Table, shown: Select[Any]) -> Dialects:
    """Return the search for rows of a scope with any of the words, best first.

    Parameters: scope match any_kind kinds limit.

    SQLite ranks by bm25. Postgres ranks by ts_rank over the length, which ignores how rare a word is.
    """

    def statement(dialect: str) -> Executable:
        found = _in_fts5(rows, shown) if dialect == "sqlite" else _in_tsvector(rows, shown)
        of_kind = or_(bindparam("any_kind", type_=Boolean()), rows.c.kind.in_(bindparam("kinds", expanding=True)))
        return (
            found.where(rows.c.scope == bindparam("scope"), of_kind)
            .order_by(rows.c.times_seen.desc(), rows.c.row.desc())
            .limit(bindparam("limit"))
        )

    return statement


def _in_fts5(rows: Table, shown: Select[Any]) -> Select[Any]:
    fts = table(f"{rows.name}_fts", column("rowid"))
    # The column `scope_term` selects the rows of the scope, and has no weight in the rank.
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
    return shown.where(search.op("@@")(query)).order_by(func.ts_rank(search, query, literal_column("1")).desc())


def match_query(dialect: str, scope: str, terms: Sequence[str]) -> str:
    """Return the full-text query for any of these terms, each of which consists of a-z and 0-9."""
    if dialect == "postgresql":
        return " | ".join(terms)
    words = " OR ".join(f'"{term}"' for term in terms)
    return f'scope_term : "{scope_term(scope)}" AND terms : ({words})'


class KnowledgeTable(Generic[Row]):
    """A table of the knowledge of scopes.

    Texts that differ only in case, spacing and punctuation share a row. A scope sees only its own rows.
    """

    def __init__(self, database: Database, rows: Table, make_row: Callable[..., Row]) -> None:
        self._db = database
        self._rows = rows
        self._make_row = make_row
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
                or_(bindparam("any_kind", type_=Boolean()), columns.kind.in_(bindparam("kinds", expanding=True))),
            )
            .order_by(columns.updated_at.desc(), columns.times_seen.desc(), columns.row.desc())
            .limit(bindparam("limit"))
        )
        self._of_turn = shown.where(columns.turn_id == bindparam("turn")).order_by(columns.row)

    def merge(
        self,
        connection: Transaction,
        *,
        scope: str,
        session_id: str,
        turn_id: str,
        items: Sequence[MemoryItem] | Sequence[Observation],
        **values: object,
    ) -> int:
        """Effect: insert new items, and count those that the scope already has. Returns the number of distinct items.

        Repeats within one call count once. An existing text keeps its wording. `values` are those of further columns.
        """
        in_scope = {"scope": scope, "scope_term": scope_term(scope), "session_id": session_id, **values}
        in_scope |= {"turn_id": turn_id, "last_turn_id": turn_id}
        # The terms of an encrypted text would reveal its content.
        is_encrypted = self._db.codec is not None and self._db.codec.writes
        rows = {
            (item.kind, normalized_hash(item.text)): {
                "kind": item.kind,
                "text": item.text,
                "terms": "" if is_encrypted else " ".join(terms_of(item.text)),
            }
            for item in reversed(items)
        }
        if rows:
            # A fixed order prevents a deadlock of two turns that merge the same rows.
            connection.write_many(
                self._merge, [{**in_scope, **row, "norm_hash": key[1]} for key, row in sorted(rows.items())]
            )
        return len(rows)

    def search(self, scope: str, query: str, limit: int = 8, kinds: Sequence[str] = ()) -> list[Row]:
        """Return rows that share words with the query, best first, or the newest rows if the query has no words.

        The query may be any text; it has no syntax. Only the beginning and the end of a long text count.
        """
        terms = query_terms(query)
        if not terms:
            return self._newest_of(scope, kinds, limit)
        if self._db.codec is not None:
            return self._read_through(scope, terms, limit, kinds)
        match = match_query(self._db.dialect, scope, terms)
        return self._read(self._search, {**_kind_parameters(scope, kinds, limit), "match": match})

    def list(self, scope: str, limit: int = MAX_LISTED) -> list[Row]:
        """Return rows of all kinds, most recently seen first."""
        return self._newest_of(scope, (), limit)

    def of_kinds(self, scope: str, kinds: Sequence[str], limit: int = 20) -> list[Row]:
        """Return rows of these kinds, most recently seen first, then most often seen."""
        return self._newest_of(scope, kinds, limit) if kinds else []

    def of_turn(self, turn_id: str) -> list[Row]:
        """Return the rows that were first seen in this turn."""
        return self._read(self._of_turn, {"turn": turn_id})

    def page(
        self, scopes: Sequence[str], limit: int, after: int | None = None, sessions: Sequence[str] | None = None
    ) -> list[Row]:
        """Return rows of all kinds, newest first. Pass the `row` of the last one as `after` for the next page.

        sessions   only rows that were first seen in a session with one of these prefixes
        """
        columns = self._rows.c
        statement = self._shown.where(columns.scope.in_(scopes)).order_by(columns.row.desc()).limit(limit)
        if after is not None:
            statement = statement.where(columns.row < after)
        if sessions is not None:
            statement = statement.where(in_sessions(columns.session_id, sessions))
        return self._read(statement, {})

    def forget(self, row: int, sessions: Sequence[str] | None = None) -> bool:
        """Delete a row. Returns False if it does not exist in these sessions; see `page`."""
        columns = self._rows.c
        statement = delete(self._rows).where(columns.row == row)
        if sessions is not None:
            statement = statement.where(in_sessions(columns.session_id, sessions))
        return self._db.write(statement, {}) == 1

    def forget_all(self, connection: Transaction, scopes: Sequence[str], sessions: Sequence[str] | None = None) -> int:
        """Effect: delete all rows of these scopes. Returns how many; see `page`."""
        columns = self._rows.c
        statement = delete(self._rows).where(columns.scope.in_(scopes))
        if sessions is not None:
            statement = statement.where(in_sessions(columns.session_id, sessions))
        return connection.write(statement, {})

    def _read_through(self, scope: str, terms: Sequence[str], limit: int, kinds: Sequence[str]) -> list[Row]:
        """Search encrypted texts: read the scope's newest rows, and rank them by the words they share with the query.

        Stemming covers little more than plurals. A word that few rows have counts more.
        """
        found = self._newest_of(scope, kinds, MAX_READ_THROUGH)
        if len(found) == MAX_READ_THROUGH:
            log.warning(
                "the search covers only the newest memories of the scope, because they are encrypted",
                searched=MAX_READ_THROUGH,
            )
        return rank_by_words(found, terms)[:limit]

    def _newest_of(self, scope: str, kinds: Sequence[str], limit: int) -> list[Row]:
        return self._read(self._newest, _kind_parameters(scope, kinds, limit))

    def _read(self, statement: Executable, values: Mapping[str, object]) -> list[Row]:
        return [self._make_row(**found) for found in self._db.all(statement, values)]


def rank_by_words(rows: Sequence[Row], terms: Sequence[str]) -> list[Row]:
    """Return the rows that share a word with the query, best first, and in the given order if they are equal. Pure."""
    wanted = {_stem(term) for term in terms}
    readable = [row for row in rows if row.text != SHREDDED]
    shared = [wanted & {_stem(term) for term in terms_of(row.text)} for row in readable]
    holders = Counter(term for words in shared for term in words)
    ranked = [(sum(1 / holders[term] for term in words), at) for at, words in enumerate(shared) if words]
    return [readable[at] for _, at in sorted(ranked, key=lambda item: (-item[0], item[1]))]


def _stem(term: str) -> str:
    """Remove the most common English endings, so that `deployed` equals `deploying`."""
    for ending in ("ing", "ed", "es", "s", "e"):
        if term.endswith(ending) and len(term) - len(ending) >= 3:
            return term[: -len(ending)]
    return term


def _kind_parameters(scope: str, kinds: Sequence[str], limit: int) -> dict[str, Any]:
    """Return the parameters of a search by kinds; no kinds means any kind."""
    return {"scope": scope, "any_kind": not kinds, "kinds": list(kinds), "limit": limit}


class Memories(KnowledgeTable[MemoryRow]):
    """The `memories` table: the facts, preferences and habits of scopes."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, memories, MemoryRow)


class Observations(KnowledgeTable[ObservationRow]):
    """The `observations` table: what turns revealed about scopes, each with the event from which it was learned."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, observations, ObservationRow)


@dataclass(eq=False)
class SqlMemoryRetriever:
    """The default `contracts.memory.MemoryRetriever`.

    scope_of   returns the scope of a session id
    limit      the highest number of facts
    """

    memories: Memories
    scope_of: Callable[[str], str]
    limit: int = MAX_RETRIEVED

    def retrieve_for_context(self, query: str, session_id: str) -> RetrievedMemory:
        """Return one line per memory: facts that share words with the query, newest first, then preferences and habits
        that match it, then the most recently seen ones. Each line has the day on which it was last seen, so that the
        newer of two contradicting memories counts. No text is repeated."""
        scope = self.scope_of(session_id)
        found = self.memories.search(scope, query, self.limit, kinds=["fact"])
        facts = sorted(found, key=lambda row: row.updated_at, reverse=True)
        ways = [
            *self.memories.search(scope, query, self.limit, kinds=["preference", "habit"]),
            *self.memories.of_kinds(scope, ["preference", "habit"], HABITS_LISTED),
        ]
        listed: set[str] = set()
        preferences = _unrepeated((row for row in ways if row.kind == "preference"), listed)
        habits = _unrepeated((row for row in ways if row.kind == "habit"), listed)
        known = _unrepeated(facts, listed)
        return RetrievedMemory(text="\n".join(f"- {fact}" for fact in known), preferences=preferences, habits=habits)


def _unrepeated(rows: Iterable[MemoryRow], listed: set[str]) -> tuple[str, ...]:
    """Return one dated line for each text that is not in `listed` yet, and add these texts to `listed`."""
    fresh: list[str] = []
    for row in rows:
        if row.text != SHREDDED and (key := normalized(row.text)) not in listed:
            listed.add(key)
            fresh.append(f"{' '.join(row.text.split())} (said {row.updated_at:%Y-%m-%d})")
    return tuple(fresh)
