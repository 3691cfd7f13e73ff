"""The shipped MemoryRetriever: full-text search over the SQL memories."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from brainq.contracts.memory import RetrievedMemory
from brainq.store.normal import normal
from brainq.store.repositories.memories import Memories

LIMIT = 8
HABITS_LISTED = 20  # preferences and habits count for every message, not only where words are shared


class SqlMemoryRetriever:
    """Finds what is known for a message. Fits `contracts.memory.MemoryRetriever`.

    scope_of   from a session's id to whose memories are read
    limit      at most so many facts
    """

    def __init__(self, memories: Memories, scope_of: Callable[[str], str], limit: int = LIMIT) -> None:
        self._memories = memories
        self._scope_of = scope_of
        self._limit = limit

    def retrieve_for_context(self, query: str, session_id: str) -> RetrievedMemory:
        """Facts that share words with the query, one a line; the preferences and habits that match it, and then
        those seen last. Nothing is said twice."""
        scope = self._scope_of(session_id)
        facts = self._memories.search(scope, query, self._limit, kinds=["fact"])
        ways = [
            *self._memories.search(scope, query, self._limit, kinds=["preference", "habit"]),
            *self._memories.of_kinds(scope, ["preference", "habit"], HABITS_LISTED),
        ]
        said: set[str] = set()
        preferences = _fresh((row.text for row in ways if row.kind == "preference"), said)
        habits = _fresh((row.text for row in ways if row.kind == "habit"), said)
        known = _fresh((row.text for row in facts), said)
        return RetrievedMemory(
            text="\n".join(f"- {fact}" for fact in known), preferences=preferences, habits=habits
        )


def _fresh(texts: Iterable[str], said: set[str]) -> tuple[str, ...]:
    """Each text on one line, without those that `said` holds; it is added to."""
    fresh: list[str] = []
    for text in texts:
        if (key := normal(text)) not in said:
            said.add(key)
            fresh.append(" ".join(text.split()))
    return tuple(fresh)
