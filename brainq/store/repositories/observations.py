"""Observations: what turns taught of a scope's subjects, each once."""

from __future__ import annotations

from collections.abc import Sequence

from brainq.contracts.memory import Observation, ObservationKind
from brainq.contracts.rows import ObservationRow
from brainq.store.database import Database, Transaction
from brainq.store.repositories.knowledge import LISTED, KnowledgeTable
from brainq.store.tables import observations


class Observations:
    """The `observations` table. Like `Memories`, with the event each was learned from."""

    def __init__(self, database: Database) -> None:
        self._table = KnowledgeTable(database, observations)

    def merge(
        self,
        connection: Transaction,
        *,
        scope: str,
        session_id: str,
        turn_id: str,
        source_event_id: str,
        items: Sequence[Observation],
    ) -> int:
        """Effect: keep what is new and count what the scope knows already; how many different items there were."""
        values: dict[str, object] = {
            "session_id": session_id,
            "turn_id": turn_id,
            "last_turn_id": turn_id,
            "source_event_id": source_event_id,
        }
        return self._table.merge(connection, scope, ((item.kind, item.text) for item in items), values)

    def search(
        self, scope: str, query: str, limit: int = 8, kinds: Sequence[ObservationKind] = ()
    ) -> list[ObservationRow]:
        """What shares words with the query, the best first; the newest when the query has no words."""
        return [ObservationRow(**found) for found in self._table.search(scope, query, limit, kinds)]

    def forget_all(
        self, connection: Transaction, scopes: Sequence[str], sessions: Sequence[str] | None = None
    ) -> int:
        """Effect: no observation of these scopes stays; how many went. See `Memories.page` for `sessions`."""
        return self._table.remove_all(connection, scopes, sessions)

    def list(self, scope: str, limit: int = LISTED) -> list[ObservationRow]:
        """All kinds, the last seen first."""
        return [ObservationRow(**found) for found in self._table.newest(scope, (), limit)]

    def of_turn(self, turn_id: str) -> list[ObservationRow]:
        """What was first seen in this turn."""
        return [ObservationRow(**found) for found in self._table.of_turn(turn_id)]
