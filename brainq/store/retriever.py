"""The shipped MemoryRetriever: full-text search over the SQL memories."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from brainq.contracts.memory import RetrievedMemory
from brainq.contracts.rows import MemoryRow
from brainq.store.normal import normal
from brainq.store.repositories.memories import Memories

LIMIT = 8
HABITS_LISTED = 20  # preferences and habits count for every message, not only where words are shared


@dataclass(eq=False)
class SqlMemoryRetriever:
    """Finds what is known for a message. Fits `contracts.memory.MemoryRetriever`.

    scope_of   from a session's id to whose memories are read
    limit      at most so many facts
    """

    memories: Memories
    scope_of: Callable[[str], str]
    limit: int = LIMIT

    def retrieve_for_context(self, query: str, session_id: str) -> RetrievedMemory:
        """Facts that share words with the query, one a line, those said last first; the preferences and habits that
        match it, and then those seen last. Each has the day on which it was last said: of two that contradict each
        other the newer one counts. Nothing is said twice."""
        scope = self.scope_of(session_id)
        found = self.memories.search(scope, query, self.limit, kinds=["fact"])
        facts = sorted(found, key=lambda row: row.updated_at, reverse=True)
        ways = [
            *self.memories.search(scope, query, self.limit, kinds=["preference", "habit"]),
            *self.memories.of_kinds(scope, ["preference", "habit"], HABITS_LISTED),
        ]
        said: set[str] = set()
        preferences = _fresh((row for row in ways if row.kind == "preference"), said)
        habits = _fresh((row for row in ways if row.kind == "habit"), said)
        known = _fresh(facts, said)
        return RetrievedMemory(
            text="\n".join(f"- {fact}" for fact in known), preferences=preferences, habits=habits
        )


def _fresh(rows: Iterable[MemoryRow], said: set[str]) -> tuple[str, ...]:
    """Each text on one line with its day, without those that `said` holds; it is added to."""
    fresh: list[str] = []
    for row in rows:
        if (key := normal(row.text)) not in said:
            said.add(key)
            fresh.append(f"{' '.join(row.text.split())} (said {row.updated_at:%Y-%m-%d})")
    return tuple(fresh)
