"""The words that a query and a tool's text are compared by."""

from __future__ import annotations

import re

_STOP = """
a about after all also an and any are as at be been but by can could did do does for from get got had has have
he her hi his how i if im in into is it its ive just let like me my need no not now of ok okay on one or our
out please she so some sure than thank thanks that the their them then there these they this those to up us
use used want was we were what when where which who will with would yes you your
"""
STOPWORDS = frozenset(_STOP.split())
"""Function words and courtesies of English. They say nothing of a tool, and long descriptions are full of them."""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W_]+")
_UNSPACED = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_RUNS = re.compile(f"([{_UNSPACED}]+)|([^{_UNSPACED}]+)")


def words(text: str) -> list[str]:
    """The words of `text`, in order: lower case, without plural endings and stop words.

    `snake_case`, `kebab-case` and `camelCase` are parted. Han, kana and hangul, which are written without
    spaces or with endings, become pairs of characters, as in Lucene's CJKAnalyzer.
    """
    found: list[str] = []
    for word in _WORD.findall(_CAMEL.sub(" ", text.replace("'", "").replace("\u2019", "")).lower()):
        if word.isascii():
            if word not in STOPWORDS:
                found.append(singular(word))
        else:
            found += _foreign(word)
    return found


def singular(word: str) -> str:
    """`word` without an English plural ending: `flights`, `policies`, `passes`; others are returned as they are."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _foreign(word: str) -> list[str]:
    found: list[str] = []
    for run, rest in _RUNS.findall(word):
        found += [run[i : i + 2] for i in range(max(1, len(run) - 1))] if run else [rest]
    return found
