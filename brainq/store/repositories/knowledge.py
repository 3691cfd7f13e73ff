"""Memories and observations: each kept once per scope, merged when seen again, and found by full-text search;
and the shipped MemoryRetriever.
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

from brainq.contracts.encryption import SHREDDED
from brainq.contracts.memory import MemoryItem, Observation, RetrievedMemory
from brainq.contracts.rows import KnowledgeRow, MemoryRow, ObservationRow
from brainq.observe.logs import logger
from brainq.store.database import Database, Dialects, Transaction
from brainq.store.statements import in_sessions, upsert
from brainq.store.tables import memories, observations
from brainq.store.tables.types import utc_now
from brainq.store.text import normalized, normalized_hash, query_terms, scope_term, terms_of

_INTERNAL = ("norm_hash", "scope_term", "terms")
MAX_LISTED = 1000
MAX_READ_THROUGH = 2000  # encrypted memories of a scope that one search reads: some 30 ms
log = logger("brainq.memory")
Row = TypeVar("Row", bound=KnowledgeRow)
MAX_RETRIEVED = 8
HABITS_LISTED = 20  # preferences and habits count for every message, not only where words are shared


def search_statement(rows: Table, shown: Select[Any]) -> Dialects:
    """Rows of a scope that hold any of the words, the best first. Parameters: scope match any_kind kinds limit.

    SQLite ranks by bm25; Postgres by ts_rank over the length, which does not know how rare a word is.
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
    return shown.where(search.op("@@")(query)).order_by(func.ts_rank(search, query, literal_column("1")).desc())


def match_query(dialect: str, scope: str, terms: Sequence[str]) -> str:
    """The query for these terms, each of a-z and 0-9 alone, any of which may be found."""
    if dialect == "postgresql":
        return " | ".join(terms)
    words = " OR ".join(f'"{term}"' for term in terms)
    return f'scope_term : "{scope_term(scope)}" AND terms : ({words})'


class KnowledgeTable(Generic[Row]):
    """What a scope knows: each text once, merged when it is seen again, and found by its words.

    Two texts are one when they differ in case, spacing and punctuation only. A scope sees its own rows, and no other's.
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
        """Effect: keep what is new and count what the scope knows already; how many different items there were.

        The same item twice in one call counts once. The first text stays as it first was. `values`: of further columns
        """
        in_scope = {"scope": scope, "scope_term": scope_term(scope), "session_id": session_id, **values}
        in_scope |= {"turn_id": turn_id, "last_turn_id": turn_id}
        # The words of an encrypted text would be its content, in the clear.
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
            # In one order everywhere: two turns that merge the same rows must not wait for each other in a circle.
            connection.write_many(
                self._merge, [{**in_scope, **row, "norm_hash": key[1]} for key, row in sorted(rows.items())]
            )
        return len(rows)

    def search(self, scope: str, query: str, limit: int = 8, kinds: Sequence[str] = ()) -> list[Row]:
        """What shares words with the query, the best first; the newest when the query has no words.

        The query is any text: nothing in it is syntax. Of a long one the beginning and the end count.
        """
        terms = query_terms(query)
        if not terms:
            return self._newest_of(scope, kinds, limit)
        if self._db.codec is not None:
            return self._read_through(scope, terms, limit, kinds)
        match = match_query(self._db.dialect, scope, terms)
        return self._read(self._search, {**_kind_parameters(scope, kinds, limit), "match": match})

    def list(self, scope: str, limit: int = MAX_LISTED) -> list[Row]:
        """All kinds, the last seen first."""
        return self._newest_of(scope, (), limit)

    def of_kinds(self, scope: str, kinds: Sequence[str], limit: int = 20) -> list[Row]:
        """Of these kinds, the last seen first; of those seen together, what was seen most."""
        return self._newest_of(scope, kinds, limit) if kinds else []

    def of_turn(self, turn_id: str) -> list[Row]:
        """What was first seen in this turn."""
        return self._read(self._of_turn, {"turn": turn_id})

    def page(
        self, scopes: Sequence[str], limit: int, after: int | None = None, sessions: Sequence[str] | None = None
    ) -> list[Row]:
        """All kinds, those first seen last come first; the next page begins after the `row` of the last one here.

        sessions   only what was first seen in a session that begins with one of these prefixes
        """
        columns = self._rows.c
        statement = self._shown.where(columns.scope.in_(scopes)).order_by(columns.row.desc()).limit(limit)
        if after is not None:
            statement = statement.where(columns.row < after)
        if sessions is not None:
            statement = statement.where(in_sessions(columns.session_id, sessions))
        return self._read(statement, {})

    def forget(self, row: int, sessions: Sequence[str] | None = None) -> bool:
        """False where there is none of this number, or none of these sessions; see `page`."""
        columns = self._rows.c
        statement = delete(self._rows).where(columns.row == row)
        if sessions is not None:
            statement = statement.where(in_sessions(columns.session_id, sessions))
        return self._db.write(statement, {}) == 1

    def forget_all(self, connection: Transaction, scopes: Sequence[str], sessions: Sequence[str] | None = None) -> int:
        """Effect: nothing of these scopes stays; how many rows went. See `page`."""
        columns = self._rows.c
        statement = delete(self._rows).where(columns.scope.in_(scopes))
        if sessions is not None:
            statement = statement.where(in_sessions(columns.session_id, sessions))
        return connection.write(statement, {})

    def _read_through(self, scope: str, terms: Sequence[str], limit: int, kinds: Sequence[str]) -> list[Row]:
        """A search where SQL cannot look into texts: the scope's newest are read, those with most of the words first.

        Words are stemmed as little as plurals need; a word that few of them have counts for more.
        """
        found = self._newest_of(scope, kinds, MAX_READ_THROUGH)
        if len(found) == MAX_READ_THROUGH:
            log.warning("only a scope's newest memories are searched: they are encrypted", searched=MAX_READ_THROUGH)
        return rank_by_words(found, terms)[:limit]

    def _newest_of(self, scope: str, kinds: Sequence[str], limit: int) -> list[Row]:
        return self._read(self._newest, _kind_parameters(scope, kinds, limit))

    def _read(self, statement: Executable, values: Mapping[str, object]) -> list[Row]:
        return [self._make_row(**found) for found in self._db.all(statement, values)]


def rank_by_words(rows: Sequence[Row], terms: Sequence[str]) -> list[Row]:
    """Those that share a word with the query, the best first; of equals in the order given. Pure."""
    wanted = {_stem(term) for term in terms}
    readable = [row for row in rows if row.text != SHREDDED]
    shared = [wanted & {_stem(term) for term in terms_of(row.text)} for row in readable]
    holders = Counter(term for words in shared for term in words)
    ranked = [(sum(1 / holders[term] for term in words), at) for at, words in enumerate(shared) if words]
    return [readable[at] for _, at in sorted(ranked, key=lambda item: (-item[0], item[1]))]


def _stem(term: str) -> str:
    """Without the commonest endings of English: `deployed` and `deploying` are one."""
    for ending in ("ing", "ed", "es", "s", "e"):
        if term.endswith(ending) and len(term) - len(ending) >= 3:
            return term[: -len(ending)]
    return term


def _kind_parameters(scope: str, kinds: Sequence[str], limit: int) -> dict[str, Any]:
    """No kinds: any kind."""
    return {"scope": scope, "any_kind": not kinds, "kinds": list(kinds), "limit": limit}


class Memories(KnowledgeTable[MemoryRow]):
    """The `memories` table: facts, preferences and habits of a scope."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, memories, MemoryRow)


class Observations(KnowledgeTable[ObservationRow]):
    """The `observations` table: what turns taught of a scope's subjects, with the event each was learned from."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, observations, ObservationRow)


@dataclass(eq=False)
class SqlMemoryRetriever:
    """Finds what is known for a message. Fits `contracts.memory.MemoryRetriever`.

    scope_of   from a session's id to whose memories are read
    limit      at most so many facts
    """

    memories: Memories
    scope_of: Callable[[str], str]
    limit: int = MAX_RETRIEVED

    def retrieve_for_context(self, query: str, session_id: str) -> RetrievedMemory:
        """Facts that share words with the query, one a line, the newest first; the preferences and habits that
        match it, and then those seen last. Each has the day on which it last came up: of two that contradict each
        other the newer one counts. Nothing is repeated."""
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
    """Each text on one line with its day, without those that `listed` holds; it is added to."""
    fresh: list[str] = []
    for row in rows:
        if row.text != SHREDDED and (key := normalized(row.text)) not in listed:
            listed.add(key)
            fresh.append(f"{' '.join(row.text.split())} (said {row.updated_at:%Y-%m-%d})")
    return tuple(fresh)
