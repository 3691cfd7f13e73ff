"""Sentences, words and terms of a text: what rules that read language have in common. English; pure."""

from __future__ import annotations

import re

# The stop list of the Snowball project (M. Porter, snowball.tartarus.org/algorithms/english/stop.txt) without its
# contractions, which `is_stop_word` takes apart.
_STOP_LIST = """
    i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers
    herself it its itself they them their theirs themselves what which who whom this that these those am is are
    was were be been being have has had having do does did doing would should could ought cannot a an the and
    but if or because as until while of at by for with about against between into through during before after
    above below to from up down in out on off over under again further then once here there when where why how
    all any both each few more most other some such no nor not only own same so than too very can will just now
    let
"""

STOP_WORDS = frozenset(_STOP_LIST.split())
_WORD = re.compile(r"[^\W_]+(?:['\N{RIGHT SINGLE QUOTATION MARK}.][^\W_]+)*")
_END = re.compile(r"(?<=[.!?;])[\"'\N{RIGHT DOUBLE QUOTATION MARK})\]]*\s+")

_ABBREVIATION = re.compile(
    r"(?:\b(?:Dr|Mr|Mrs|Ms|Prof|St|Jr|Sr|vs|etc|approx|No|e\.g|i\.e|a\.m|p\.m)|\b(?-i:[A-Z]))\.$", re.IGNORECASE
)

_LOOK_BACK = 24  # characters before it; a long text is not read again at each sentence
_BULLET = re.compile(r"^\s*(?:[-*+\N{BULLET}]|\d{1,3}[.)])\s+")


def sentences(text: str) -> list[str]:
    """The text's sentences, each with its closing mark. A line's end ends a sentence; list marks are dropped."""
    found: list[str] = []
    for line in text.splitlines():
        held = ""
        for piece in _END.split(_BULLET.sub("", line)):
            held = f"{held} {piece}".strip() if held else piece.strip()
            if _ABBREVIATION.search(held[-_LOOK_BACK:]):
                continue
            if held:
                found.append(held)
            held = ""
        if held:
            found.append(held)
    return found


def raw_words(text: str) -> list[str]:
    """Words and numbers as they stand, in order."""
    return _WORD.findall(text)


def terms(text: str) -> list[str]:
    """The text's content words in order, repeats kept: lower case, stop words dropped, plurals made singular."""
    return [stem(word.casefold()) for word in raw_words(text) if not is_stop_word(word)]


def is_stop_word(word: str) -> bool:
    """`the`, `It`, and contractions of such words: `I'm`, `don't`."""
    head, mark, tail = word.casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").partition("'")
    return head in STOP_WORDS or (mark != "" and tail == "t" and head.endswith("n"))


def stem(word: str) -> str:
    """The S stemmer: plurals to singulars, and possessives
    to their owner. D. Harman, "How effective is suffixing?", JASIS 42(1), 1991.

    >>> [stem(word) for word in ("queries", "boxes", "notes", "glass", "bus")]
    ['query', 'boxe', 'note', 'glass', 'bus']
    """
    word = word.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").removesuffix("'s")
    if len(word) <= 3:
        return word
    if word.endswith("ies") and not word.endswith(("eies", "aies")):
        return word[:-3] + "y"
    if word.endswith("es") and not word.endswith(("aes", "ees", "oes")):
        return word[:-1]
    if word.endswith("s") and not word.endswith(("us", "ss")):
        return word[:-1]
    return word


def cut(text: str, max_chars: int) -> str:
    """`text` in at most `most` characters; what was cut is shown by an ellipsis, at a word's end where there is one."""
    if len(text) <= max_chars:
        return text
    head = text[: max_chars - 1]
    at_word, _, _ = head.rpartition(" ")
    return (at_word if len(at_word) >= max_chars // 2 else head).rstrip() + "…"
