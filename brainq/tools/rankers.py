"""The rankings a Selection can name."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from brainq.contracts.parts import Selection, ToolRanker
from brainq.errors import InvalidInput
from brainq.tools.embedding import EmbeddingRanker, require_extra
from brainq.tools.ranking import Bm25Ranker


def require_ranking(selection: Selection | None, tools: Collection[str]) -> None:
    """Check what can be checked at a worker's start, without loading a model.

    Raises SetupError for an extra that is missing, InvalidInput for a pinned tool that the brain does not have.
    """
    if selection is None:
        return
    unknown = sorted(set(selection.pinned) - set(tools))
    if unknown:
        raise InvalidInput(
            "selection.pinned", f"the brain has no tool {', '.join(unknown)}; correct the name"
        )
    if selection.ranking == "embedding":
        require_extra()


def ranker_named(ranking: ToolRanker | Literal["bm25", "embedding"]) -> ToolRanker:
    """The ranker of `Selection.ranking`; one of the user's own is returned as it is.

    Raises SetupError if `embedding` is asked for and its extra is missing.
    """
    if ranking == "bm25":
        return Bm25Ranker()
    if ranking == "embedding":
        return EmbeddingRanker()
    return ranking
