"""The key terms of a text by RAKE: rapid automatic keyword extraction. Pure.

S. Rose, D. Engel, N. Cramer, W. Cowley: "Automatic keyword extraction from individual documents", in M. Berry and
J. Kogan (eds.), Text Mining: Applications and Theory, Wiley 2010, pp. 1-20.
"""

from __future__ import annotations

import re
from collections import Counter

from brainq.finalize.words import is_stop_word

LONGEST_PHRASE = 4  # words; RAKE's known weakness is that long phrases score high merely for their length
_PIECE = re.compile(r"\w+(?:[-'\N{RIGHT SINGLE QUOTATION MARK}.]\w+)*|[^\w\s]|\n")

# Words that say what the user wants done, not what it is about; RAKE's authors, too, fit the stop list to the field.
_REQUEST_LIST = """
    please tell show give find explain help want need know prefer like thanks thank hello hi hey could can would make
    get look write list say think use using used also still already really much many lot way thing things something
    anything everyone today tomorrow yesterday new good best better yes okay ok sorry
"""
_REQUEST_WORDS = frozenset(_REQUEST_LIST.split())


def key_terms(text: str, most: int) -> tuple[str, ...]:
    """The `most` best phrases, lower case, best first; equal ones in their order in the text.

    Candidates are the runs of words between stop words and marks. A word scores deg(w) / freq(w), where deg counts
    the words of all candidates it stands in, itself included; a candidate scores the sum of its words.
    """
    candidates = _candidates(text)
    frequency: Counter[str] = Counter(word for phrase in candidates for word in phrase)
    degree: Counter[str] = Counter()
    for phrase in candidates:
        for word in phrase:
            degree[word] += len(phrase)
    scores = {phrase: sum(degree[word] / frequency[word] for word in phrase) for phrase in candidates}
    ranked = sorted(scores, key=lambda phrase: -scores[phrase])  # stable: first said, first kept
    return tuple(" ".join(phrase) for phrase in ranked[:most])


def _candidates(text: str) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    run: list[str] = []
    for piece in (*_PIECE.findall(text), "\n"):
        word = piece.casefold()
        if piece[0].isalnum() and not is_stop_word(word) and word not in _REQUEST_WORDS:
            run.append(word)
            continue
        if 0 < len(run) <= LONGEST_PHRASE and any(len(word) > 1 and not word.isdigit() for word in run):
            found.append(tuple(run))
        run = []
    return found
