"""Texts as search sees them: the words they are found by.

The words are made here, the same for every database, and reach it as plain a-z and 0-9. So SQLite and Postgres
find the same texts, neither one's tokenizer meets anything it treats in its own way, and nothing in a query
can be taken for its syntax. What the databases add is English stemming ("deployed" finds "deploying"): the
models' texts are mostly English, and words of other languages are stemmed alike in texts and queries, so they
are found as well as without it.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from itertools import pairwise

from brainq.store.normal import folded

MAX_QUERY_TERMS = 64
MAX_QUERY_CHARS = 8_000  # of a longer message the beginning and the end are searched for
_MAX_TERM_CHARS = 48

# Words that say nothing about a text's subject.
_STOP_TEXT = """
a about after again all also am an and any are as at be because been before being but by can cannot could did
do does doing done down each either else ever every few for from further get got had has have having he her
here hers him his how i if in into is it its itself just let like many may me might more most much must my
myself no nor not now of off on once one only or other our ours out over own please same shall she should so
some such tell than thank thanks that the their theirs them then there these they this those through to too
under until up us very was we were what when where which while who whom whose why will with would yes yet you
your yours
d ll m re s t ve don doesn didn isn aren wasn weren won wouldn couldn shouldn hasn haven hadn
"""
_STOP_WORDS = frozenset(_STOP_TEXT.split())

# Scripts written without spaces: Han, kana, Thai, Lao, Burmese, Khmer. Two letters at a time are a term.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_RUNS = re.compile(f"([{_UNSPACED}]+)|([^{_UNSPACED}]+)")


class _Lettered(dict[int, str]):
    """For `str.translate`: letters, digits and the marks of other scripts stay; accents go, the rest are spaces."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if 0x300 <= code <= 0x36F:  # accents of Latin, Greek and Cyrillic letters: cafe finds café
            self[code] = ""
        else:
            self[code] = char if unicodedata.category(char)[0] in "LMN" else " "
        return self[code]


_LETTERED = _Lettered()


def terms_of(text: str) -> list[str]:
    """The words of a text in order, repeats kept, each of a-z and 0-9; empty for one without a word."""
    bare = unicodedata.normalize("NFD", folded(text)).translate(_LETTERED)
    words = unicodedata.normalize("NFC", bare).split()
    return [_plain(part) for word in words if word not in _STOP_WORDS for part in _parts(word)]


def query_terms(query: str) -> list[str]:
    """The different words of a query, at most 64: of more, those at its beginning and at its end."""
    if len(query) > MAX_QUERY_CHARS:
        half = MAX_QUERY_CHARS // 2
        query = f"{query[:half]} {query[-half:]}"
    found = list(dict.fromkeys(terms_of(query)))
    if len(found) <= MAX_QUERY_TERMS:
        return found
    return found[: MAX_QUERY_TERMS // 2] + found[-(MAX_QUERY_TERMS // 2) :]


def scope_term(scope: str) -> str:
    """A word for a scope, so that a full-text index can be entered by it."""
    return "s" + hashlib.blake2b(scope.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _parts(word: str) -> list[str]:
    if word.isascii():
        return [word]
    parts: list[str] = []
    for unspaced, spaced in _RUNS.findall(word):
        if len(unspaced) > 1:
            parts += [first + second for first, second in pairwise(unspaced)]
        else:
            parts.append(unspaced or spaced)
    return parts


def _plain(word: str) -> str:
    """A word beyond ASCII as the hex of its UTF-8, behind an x: opaque, and one token everywhere."""
    word = word[:_MAX_TERM_CHARS]
    return word if word.isascii() else "x" + word.encode().hex()
