"""Prepare text for SQL: replace characters that databases refuse, compare texts, and extract search terms."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from itertools import pairwise
from typing import cast

from pydantic import BaseModel, JsonValue
from pydantic_core import PydanticSerializationError

from brainq.runtime.text.surrogates import clean

REPLACEMENT = "\ufffd"


def sql_text(text: str) -> str:
    """Return `text` with U+FFFD in place of NULs and lone surrogates; a surrogate pair becomes its character.

    Models return lone surrogates (half an emoji, split by a server) and tools return NULs. Postgres refuses both and
    sqlite3 the first, so they are replaced where values are bound, not where they are made.
    """
    text = text.replace("\x00", REPLACEMENT)
    return text if text.isascii() else clean(text)


def sql_json(model: BaseModel, *, exclude_defaults: bool = False) -> str:
    """Return `model` as JSON text that `model_validate_json` reads back. A NUL becomes an escape."""
    try:
        return model.model_dump_json(exclude_defaults=exclude_defaults)
    except PydanticSerializationError:
        return json.dumps(_clean_strings(model.model_dump(mode="python", exclude_defaults=exclude_defaults)))


def _clean_strings(value: object) -> JsonValue:
    """Apply `sql_text` to every string in plain data, including keys."""
    if isinstance(value, str):
        return sql_text(value)
    if isinstance(value, dict):
        items = cast("dict[str, object]", value).items()
        return {sql_text(key): _clean_strings(item) for key, item in items}
    if isinstance(value, list | tuple):
        return [_clean_strings(item) for item in cast("list[object]", value)]
    return cast("JsonValue", value)


# Punctuation that distinguishes texts: C# from C, 50% from 50, a/b from ab.
_KEPT_CATEGORIES = frozenset("#%&@/")


class _SqueezeTable(dict[int, str]):
    """A table for `str.translate`: letters, marks, digits and symbols stay, everything else becomes a space."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        kind = unicodedata.category(char)
        # Sk has ` ^ and similar characters: quotes and accents that stand alone.
        stays = (kind[0] in "LMNS" and kind != "Sk") or char in _KEPT_CATEGORIES
        self[code] = char if stays else " "
        return self[code]


_SQUEEZE_TABLE = _SqueezeTable()


def casefolded(text: str) -> str:
    """Fold `text` for a caseless compatibility match (Unicode Standard, section 3.13, D146): full-width and styled
    letters, ligatures and cases become equal. Idempotent."""
    text = unicodedata.normalize("NFD", sql_text(text))
    for _ in range(2):
        text = unicodedata.normalize("NFKC", text.casefold())
    return text


def normalized(text: str) -> str:
    """Return the form that is compared: `It's  5%, "OK"!` becomes `it s 5% ok`. A minus sign before a number stays.

    A text that is only punctuation is folded and stripped.
    """
    plain = casefolded(text)
    squeezed = " ".join(_keep_minus(plain).translate(_SQUEEZE_TABLE).split())
    return squeezed.replace(_NUMBER_SIGN, "-") or plain.strip()


def normalized_hash(text: str) -> str:
    """Return 32 hex digits that are equal for texts with the same normalized form."""
    return hashlib.blake2b(normalized(text).encode(), digest_size=16).hexdigest()


_NUMBER_SIGN = "\N{MINUS SIGN}"  # A minus sign has the category Sm, so it is kept; a hyphen is a dash and is not.


def _keep_minus(text: str) -> str:
    """Turn a hyphen before a number into a minus sign, because -5 degrees differ from 5."""
    if "-" not in text:
        return text
    words = text.split(" ")
    return " ".join(_NUMBER_SIGN + word[1:] if word[:1] == "-" and word[1:2].isdigit() else word for word in words)


MAX_QUERY_TERMS = 64
MAX_QUERY_CHARS = 8_000  # In a longer query, only the beginning and the end are used.
_MAX_TERM_CHARS = 48
# Words that carry no information about a text's subject.
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
# Scripts written without spaces: Han, kana, Thai, Lao, Burmese, Khmer. Each pair of letters is a term.
_UNSPACED_SCRIPTS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_RUNS = re.compile(f"([{_UNSPACED_SCRIPTS}]+)|([^{_UNSPACED_SCRIPTS}]+)")


class _LetterTable(dict[int, str]):
    """A table for `str.translate` that keeps letters, digits and marks of other scripts, drops accents, and turns the
    rest into spaces."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if 0x300 <= code <= 0x36F:  # accents of Latin, Greek and Cyrillic letters: cafe finds café
            self[code] = ""
        else:
            self[code] = char if unicodedata.category(char)[0] in "LMN" else " "
        return self[code]


_LETTER_TABLE = _LetterTable()


def terms_of(text: str) -> list[str]:
    """Return the words of a text in order, with repeats, each made of a-z and 0-9.

    The terms do not depend on the database, so SQLite and Postgres find the same texts, their tokenizers make no
    difference, and a query cannot contain their syntax. The databases add English stemming ("deployed" finds
    "deploying"). It applies equally to texts and queries in other languages, and does no harm there.
    """
    bare = unicodedata.normalize("NFD", casefolded(text)).translate(_LETTER_TABLE)
    words = unicodedata.normalize("NFC", bare).split()
    return [_ascii_term(part) for word in words if word not in _STOP_WORDS for part in _split_runs(word)]


def query_terms(query: str) -> list[str]:
    """Return the distinct words of a query, at most 64, taken from its beginning and its end."""
    if len(query) > MAX_QUERY_CHARS:
        half = MAX_QUERY_CHARS // 2
        query = f"{query[:half]} {query[-half:]}"
    found = list(dict.fromkeys(terms_of(query)))
    if len(found) <= MAX_QUERY_TERMS:
        return found
    return found[: MAX_QUERY_TERMS // 2] + found[-(MAX_QUERY_TERMS // 2) :]


def scope_term(scope: str) -> str:
    """Return a term for a scope, so that a full-text search can select it."""
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
    """Return a non-ASCII word as x followed by the hex digits of its UTF-8, which is one token in every database."""
    word = word[:_MAX_TERM_CHARS]
    return word if word.isascii() else "x" + word.encode().hex()
