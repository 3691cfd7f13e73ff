"""When two texts say the same: without case, width, spacing and punctuation."""

from __future__ import annotations

import hashlib
import unicodedata

from brainq.store.text import sql_text

# Punctuation that tells things apart: C# from C, 50% from 50, a/b from ab.
_MEANS_SOMETHING = frozenset("#%&@/")


class _Squeezed(dict[int, str]):
    """For `str.translate`: letters, marks, digits and symbols stay, everything else is a space."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        kind = unicodedata.category(char)
        # Sk is ` ^ and their like: quotes and accents that stand alone.
        stays = (kind[0] in "LMNS" and kind != "Sk") or char in _MEANS_SOMETHING
        self[code] = char if stays else " "
        return self[code]


_SQUEEZED = _Squeezed()


def folded(text: str) -> str:
    """`text` for a caseless compatibility match, as the Unicode Standard defines it (section 3.13, D146):
    full-width and styled letters, ligatures and cases are one. Folding it again changes nothing."""
    text = unicodedata.normalize("NFD", sql_text(text))
    for _ in range(2):
        text = unicodedata.normalize("NFKC", text.casefold())
    return text


def normal(text: str) -> str:
    """What is compared: `It's  5%, "OK"!` is `it s 5% ok`. A minus before a number stays.

    A text of punctuation alone is itself, folded and without the spaces around it.
    """
    plain = folded(text)
    squeezed = " ".join(_with_minus(plain).translate(_SQUEEZED).split())
    return squeezed.replace(_MINUS, "-") or plain.strip()


def normal_hash(text: str) -> str:
    """32 hex digits that are the same for two texts that say the same."""
    return hashlib.blake2b(normal(text).encode(), digest_size=16).hexdigest()


_MINUS = "\N{MINUS SIGN}"  # category Sm: it passes where the hyphen, a dash, does not


def _with_minus(text: str) -> str:
    """A hyphen that begins a number as a minus sign: -5 degrees are not 5."""
    if "-" not in text:
        return text
    words = text.split(" ")
    return " ".join(_MINUS + word[1:] if word[:1] == "-" and word[1:2].isdigit() else word for word in words)
