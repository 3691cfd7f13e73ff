r"""Removal of lone surrogates from all texts of models, tools and stores.

A server that cuts its stream between two UTF-16 halves of an emoji sends `"\ud83d"` in one JSON chunk and `"\ude00"` in
the next. Python parses each into a string that no codec can encode, and whatever stores or sends it later fails far
from the cause. Halves that meet are joined; a lone half becomes U+FFFD.
"""

from __future__ import annotations

import codecs
from typing import Any

_UTF16 = "utf-16-le"


def clean(text: str) -> str:
    """Return `text` with surrogate pairs joined and lone surrogates replaced, so that `.encode()` works."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(_UTF16, "surrogatepass").decode(_UTF16, "replace")
    return text


def clean_json(value: Any) -> Any:
    """Return a JSON value with every string cleaned, including keys."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(key): clean_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [clean_json(item) for item in value]
    return value


class SurrogateJoiner:
    """Cleans a stream of deltas. A first half at the end of one delta waits for the next."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder(_UTF16)("replace")
        self._pending = False

    def feed(self, delta: str) -> str:
        if not self._pending and delta.isascii():
            return delta
        cleaned = self._decoder.decode(delta.encode(_UTF16, "surrogatepass"))
        self._pending = bool(self._decoder.getstate()[0])
        return cleaned

    def flush(self) -> str:
        """Return the replaced rest. Call it once at the end."""
        self._pending = False
        return self._decoder.decode(b"", final=True)
