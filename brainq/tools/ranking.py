"""How near each tool is to a text. The default ranking needs nothing but Python."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from brainq.contracts.tool import ToolSpec
from brainq.tools.spec_cache import SpecCache
from brainq.tools.words import words

K1 = 2.0  # how fast repeating a word stops to count; Robertson & Zaragoza find 1.2 to 2 good
B = 0.75  # how much a long description is discounted; 0: not at all, 1: in full
NAME_WEIGHT = 3  # a word of the name counts as that many in the description


Postings = Mapping[str, Sequence[tuple[int, float]]]
"""word -> (place of a tool, what the word adds to its score), where that is not 0."""


class Bm25Ranker:
    """Okapi BM25 over a tool's name, description and parameter names.

    score(q, d) = sum over the distinct words w of q of
                  idf(w) * tf(w, d) * (k1 + 1) / (tf(w, d) + k1 * (1 - b + b * |d| / avgdl))
    idf(w)      = ln(1 + (N - n(w) + 0.5) / (n(w) + 0.5))

    The formula is that of Robertson & Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009),
    section 3; the fields are weighted before the saturation, as in its section 3.6 (BM25F with one b for all);
    the idf is Lucene's (`BM25Similarity`), which is never negative. tf and |d| count weighted words, N is
    the number of tools, n(w) that of the tools with w, avgdl the mean |d|.

    Descriptions of parameters are not indexed: they are long where a service's filters are many, and such
    tools then match everything. docs/tool-selection.md has the figures.
    """

    def __init__(self) -> None:
        self._indexes = SpecCache(_index)

    def rank(self, query: str, specs: Sequence[ToolSpec]) -> list[float]:
        scores = [0.0] * len(specs)
        if not specs:
            return scores
        postings = self._indexes.get(specs)
        for word in dict.fromkeys(words(query)):
            for place, weight in postings.get(word, ()):
                scores[place] += weight
        return scores


def _index(specs: Sequence[ToolSpec]) -> Postings:
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
    """The property names of a JSON schema, at every depth."""
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
