"""Text for SQL: what every database accepts, when two texts say the same, and the words that a search finds a
text by.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from itertools import pairwise
from typing import cast

from pydantic import BaseModel, JsonValue
from pydantic_core import PydanticSerializationError

from brainq.text.surrogates import clean

REPLACEMENT = "\ufffd"


def sql_text(text: str) -> str:
    """`text` with U+FFFD for NULs and lone surrogates; two halves that meet become their character.

    Models return lone surrogates (half an emoji, split by a server) and tools return NULs. Postgres refuses both and
    sqlite3 the first, so they are replaced where values are bound, not where they are made.
    """
    text = text.replace("\x00", REPLACEMENT)
    return text if text.isascii() else clean(text)


def sql_json(model: BaseModel, *, exclude_defaults: bool = False) -> str:
    """`model` as JSON text that `model_validate_json` reads back; a NUL inside survives as an escape."""
    try:
        return model.model_dump_json(exclude_defaults=exclude_defaults)
    except PydanticSerializationError:
        return json.dumps(_clean_strings(model.model_dump(mode="python", exclude_defaults=exclude_defaults)))


def _clean_strings(value: object) -> JsonValue:
    """Plain data with `sql_text` applied to every string in it, keys too."""
    if isinstance(value, str):
        return sql_text(value)
    if isinstance(value, dict):
        items = cast("dict[str, object]", value).items()
        return {sql_text(key): _clean_strings(item) for key, item in items}
    if isinstance(value, list | tuple):
        return [_clean_strings(item) for item in cast("list[object]", value)]
    return cast("JsonValue", value)


# Punctuation that tells things apart: C# from C, 50% from 50, a/b from ab.
_KEPT_CATEGORIES = frozenset("#%&@/")


class _SqueezeTable(dict[int, str]):
    """For `str.translate`: letters, marks, digits and symbols stay, everything else is a space."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        kind = unicodedata.category(char)
        # Sk is ` ^ and their like: quotes and accents that stand alone.
        stays = (kind[0] in "LMNS" and kind != "Sk") or char in _KEPT_CATEGORIES
        self[code] = char if stays else " "
        return self[code]


_SQUEEZE_TABLE = _SqueezeTable()


def casefolded(text: str) -> str:
    """`text` for a caseless compatibility match, as the Unicode Standard defines it (section 3.13, D146):
    full-width and styled letters, ligatures and cases are one. Folding it again changes nothing."""
    text = unicodedata.normalize("NFD", sql_text(text))
    for _ in range(2):
        text = unicodedata.normalize("NFKC", text.casefold())
    return text


def normalized(text: str) -> str:
    """What is compared: `It's  5%, "OK"!` is `it s 5% ok`. A minus before a number stays.

    A text of punctuation alone is itself, folded and without the spaces around it.
    """
    plain = casefolded(text)
    squeezed = " ".join(_keep_minus(plain).translate(_SQUEEZE_TABLE).split())
    return squeezed.replace(_NUMBER_SIGN, "-") or plain.strip()


def normalized_hash(text: str) -> str:
    """32 hex digits that are the same for two texts that say the same."""
    return hashlib.blake2b(normalized(text).encode(), digest_size=16).hexdigest()


_NUMBER_SIGN = "\N{MINUS SIGN}"  # category Sm: it passes where the hyphen, a dash, does not


def _keep_minus(text: str) -> str:
    """A hyphen that begins a number as a minus sign: -5 degrees are not 5."""
    if "-" not in text:
        return text
    words = text.split(" ")
    return " ".join(_NUMBER_SIGN + word[1:] if word[:1] == "-" and word[1:2].isdigit() else word for word in words)


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
_UNSPACED_SCRIPTS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_RUNS = re.compile(f"([{_UNSPACED_SCRIPTS}]+)|([^{_UNSPACED_SCRIPTS}]+)")


class _LetterTable(dict[int, str]):
    """For `str.translate`: letters, digits and the marks of other scripts stay; accents go, the rest are spaces."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if 0x300 <= code <= 0x36F:  # accents of Latin, Greek and Cyrillic letters: cafe finds café
            self[code] = ""
        else:
            self[code] = char if unicodedata.category(char)[0] in "LMN" else " "
        return self[code]


_LETTER_TABLE = _LetterTable()


def terms_of(text: str) -> list[str]:
    """The words of a text in order, repeats kept, each of a-z and 0-9; empty for one without a word.

    They are the same for every database, so SQLite and Postgres find the same texts, neither one's tokenizer meets
    anything it treats in its own way, and nothing in a query can be taken for its syntax. What the databases add is
    English stemming ("deployed" finds "deploying"). Words of other languages are stemmed alike in texts and queries, so
    they are found as well as without it.
    """
    bare = unicodedata.normalize("NFD", casefolded(text)).translate(_LETTER_TABLE)
    words = unicodedata.normalize("NFC", bare).split()
    return [_ascii_term(part) for word in words if word not in _STOP_WORDS for part in _split_runs(word)]


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


def _split_runs(word: str) -> list[str]:
    if word.isascii():
        return [word]
    parts: list[str] = []
    for unspaced, spaced in _RUNS.findall(word):
        if len(unspaced) > 1:
            parts += [first + second for first, second in pairwise(unspaced)]
        else:
            parts.append(unspaced or spaced)
    return parts


def _ascii_term(word: str) -> str:
    """A word beyond ASCII as the hex of its UTF-8, behind an x: opaque, and one token everywhere."""
    word = word[:_MAX_TERM_CHARS]
    return word if word.isascii() else "x" + word.encode().hex()
