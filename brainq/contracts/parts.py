"""The optional parts of a brain. Each part left out (None) is a stage skipped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from brainq.contracts.memory import AutonomousResearchLearner, MemoryExtractor, MemoryRetriever
from brainq.contracts.tool import ToolSpec


@dataclass(frozen=True, slots=True)
class Memory:
    """What a brain remembers over turns. `Memory()` takes the shipped parts, over brainq's own SQL tables.

    retriever   finds what is known at the start of a turn: `sql` (full-text search), or one of your own
    extractor   picks what is worth remembering of an ended turn: `model` (rules where the model fails), `rules`
    learner     notes topics, sources and open questions of an ended turn: `rules`
    scope       from a session's id to whose memories it reads and writes, such as a user's id; by default
                each session has memories of its own
    """

    retriever: MemoryRetriever | Literal["sql"] | None = "sql"
    extractor: MemoryExtractor | Literal["model", "rules"] | None = "model"
    learner: AutonomousResearchLearner | Literal["rules"] | None = "rules"
    scope: Callable[[str], str] | None = None

    def scope_of(self, session_id: str) -> str:
        return session_id if self.scope is None else self.scope(session_id)


class ToolRanker(Protocol):
    """Scores tools against a query: one number a tool, in their order; higher is nearer."""

    def rank(self, query: str, specs: Sequence[ToolSpec]) -> Sequence[float]: ...


@dataclass(frozen=True, slots=True)
class Selection:
    """Which tools a model sees when the brain has more than `max_tools_per_turn`.

    pinned    names of tools that are always shown
    ranking   `bm25`: by words, offline; `embedding`: by meaning, needs the extra `brainq[embeddings]`; or a
              ToolRanker of your own
    """

    max_tools_per_turn: int = 40
    pinned: tuple[str, ...] = ()
    ranking: ToolRanker | Literal["bm25", "embedding"] = "bm25"


@dataclass(frozen=True, slots=True)
class Context:
    """What a model call is made of, beside the conversation.

    pack_tool       the READ_ONLY tool that is called with the user's message when a turn begins, where the
                    brain has a tool of that name; its result is shown to the model as data
    opening_s       how long a turn waits for memory and pack together, seconds; it then goes on without
    auto_compact    True: older messages are replaced by a summary when the context is nearly full
    """

    pack_tool: str | None = "get_context_pack"
    opening_s: float = 10.0
    auto_compact: bool = True
