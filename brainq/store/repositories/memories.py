"""Memories: facts, preferences and habits of a scope, each once."""

from __future__ import annotations

from collections.abc import Sequence

from brainq.contracts.memory import MemoryItem, MemoryKind
from brainq.contracts.rows import MemoryRow
from brainq.store.database import Database, Transaction
from brainq.store.repositories.knowledge import LISTED, KnowledgeTable
from brainq.store.tables import memories


class Memories:
    """The `memories` table. A scope sees its own memories and nobody else's."""

    def __init__(self, database: Database) -> None:
        self._table = KnowledgeTable(database, memories)

    def merge(
        self,
        connection: Transaction,
        *,
        scope: str,
        session_id: str,
        turn_id: str,
        items: Sequence[MemoryItem],
    ) -> int:
        """Effect: keep what is new and count what the scope knows already; how many different items there were.

        Two texts are one when they differ in case, spacing and punctuation only.
        """
        values: dict[str, object] = {"session_id": session_id, "turn_id": turn_id, "last_turn_id": turn_id}
        return self._table.merge(connection, scope, ((item.kind, item.text) for item in items), values)

    def search(
        self, scope: str, query: str, limit: int = 8, kinds: Sequence[MemoryKind] = ()
    ) -> list[MemoryRow]:
        """What shares words with the query, the best first; the newest when the query has no words.

        The query is any text: nothing in it is syntax. Of a long one the beginning and the end count.
        """
        return [MemoryRow(**found) for found in self._table.search(scope, query, limit, kinds)]

    def of_kinds(self, scope: str, kinds: Sequence[MemoryKind], limit: int = 20) -> list[MemoryRow]:
        """Of these kinds, the last seen first; of those seen together, what was seen most."""
        return [MemoryRow(**found) for found in self._table.newest(scope, kinds, limit)] if kinds else []

    def page(
        self,
        scopes: Sequence[str],
        limit: int,
        after: int | None = None,
        sessions: Sequence[str] | None = None,
    ) -> list[MemoryRow]:
        """All kinds, those first said last come first; the next page begins after the `row` of the last one here.

        sessions   only what was first said in a session that begins with one of these prefixes
        """
        return [MemoryRow(**found) for found in self._table.page(scopes, limit, after, sessions)]

    def forget(self, row: int, sessions: Sequence[str] | None = None) -> bool:
        """False where there is no such memory, or none of these sessions; see `page`."""
        return self._table.remove(row, sessions)

    def forget_all(
        self, connection: Transaction, scopes: Sequence[str], sessions: Sequence[str] | None = None
    ) -> int:
        """Effect: no memory of these scopes stays; how many went. See `page`."""
        return self._table.remove_all(connection, scopes, sessions)

    def list(self, scope: str, limit: int = LISTED) -> list[MemoryRow]:
        """All kinds, the last seen first."""
        return [MemoryRow(**found) for found in self._table.newest(scope, (), limit)]

    def of_turn(self, turn_id: str) -> list[MemoryRow]:
        """What was first seen in this turn."""
        return [MemoryRow(**found) for found in self._table.of_turn(turn_id)]
