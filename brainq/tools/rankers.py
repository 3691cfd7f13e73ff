"""The rankings a Selection can name."""

from __future__ import annotations

from typing import Literal

from brainq.contracts.parts import ToolRanker
from brainq.tools.embedding import EmbeddingRanker
from brainq.tools.ranking import Bm25Ranker


def ranker_named(ranking: ToolRanker | Literal["bm25", "embedding"]) -> ToolRanker:
    """The ranker of `Selection.ranking`; one of the user's own is returned as it is.

    Raises SetupError if `embedding` is asked for and its extra is missing.
    """
    if ranking == "bm25":
        return Bm25Ranker()
    if ranking == "embedding":
        return EmbeddingRanker()
    return ranking
