"""Which notes are about a query: BM25 over words, the title counting three times."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from examples.vault.note import Note, without_link_marks

_WORD = re.compile(r"[^\W_]+")
_URL = re.compile(r"https?://\S+")
_ITEM = re.compile(r"\s*[-*]\s+(?:\[.\]\s+)?")
_EMPTY_WORDS = """
    a about an and are as at be but by can did do does for from had has have how i if in into is it its me my of on or
    our so than that the their them then there they this to us was we what when where which who why will with you your
"""
_STOP_WORDS = frozenset(_EMPTY_WORDS.split())
_K1 = 1.4  # how fast repeats of a word stop counting
_B = 0.6  # how much a long note is held back
_TITLE_WEIGHT = 3


def words(text: str) -> list[str]:
    """Lower-case words with a meaning, no addresses; plurals become singular, so `retries` finds `retry`."""
    found = (word.lower() for word in _WORD.findall(_URL.sub(" ", text)))
    return [_singular(word) for word in found if word not in _STOP_WORDS]


def rank(notes: Sequence[Note], query: str) -> list[tuple[Note, float]]:
    """Notes that hold a word of the query, best first; equal scores in the order of their paths."""
    wanted = set(words(query))
    counts = [Counter(words(f"{note.title} " * _TITLE_WEIGHT + note.text)) for note in notes]
    if not wanted or not counts:
        return []
    lengths = [sum(count.values()) for count in counts]
    average = sum(lengths) / len(lengths) or 1.0
    rarity = {
        word: math.log(1 + (len(notes) - holders + 0.5) / (holders + 0.5))
        for word in wanted
        if (holders := sum(word in count for count in counts))
    }
    scored = [
        (note, sum(weight * _saturated(count[word], length / average) for word, weight in rarity.items()))
        for note, count, length in zip(notes, counts, lengths, strict=True)
    ]
    return sorted((pair for pair in scored if pair[1] > 0), key=lambda pair: (-pair[1], pair[0].path))


def excerpt(note: Note, query: str, longest: int = 240) -> str:
    """The paragraph or list item of the note that shares most words with the query, on one line."""
    wanted = set(words(query))
    best, most = "", -1
    for piece in _pieces(note.text):
        shared = len(wanted & set(words(piece)))
        if shared > most:
            best, most = piece, shared
    return shortened(best, longest)


def shortened(text: str, longest: int) -> str:
    """At most `longest` characters, cut between words."""
    if len(text) <= longest:
        return text
    return text[: longest - 1].rsplit(" ", 1)[0].rstrip(",;:") + "…"


def _saturated(count: int, relative_length: float) -> float:
    return count * (_K1 + 1) / (count + _K1 * (1 - _B + _B * relative_length))


def _pieces(text: str) -> list[str]:
    """Paragraphs and list items, without headings and marks, each on one line."""
    pieces: list[list[str]] = [[]]
    for line in text.splitlines():
        if not line.strip() or line.startswith("#") or _URL.search(line):
            pieces.append([])
        elif _ITEM.match(line):
            pieces.append([_ITEM.sub("", line, count=1)])
        else:
            pieces[-1].append(line.strip())
    return [without_link_marks(" ".join(lines)) for lines in pieces if lines]


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
