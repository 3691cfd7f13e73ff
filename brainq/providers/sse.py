"""Server-sent events -> JSON objects.

The SDKs' own stream classes are not used: they drop the connection instead of returning it to the pool,
hide whether the end marker was seen, and build a model object for every token. Lines are split on bytes,
because text line splitting also breaks at U+2028, which JSON allows inside a string.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

DONE = "[DONE]"


def events(pieces: Iterable[bytes]) -> Iterator[dict[str, Any] | None]:
    """The `data` of each event as an object, or None for the end marker `[DONE]`.

    Comments, event names and empty events are skipped; several `data` lines of one event are joined.
    Raises ValueError for data that is not a JSON object.
    """
    data: list[bytes] = []
    for line in _lines(pieces):
        if line.startswith(b"data:"):
            data.append(line[5:].strip())
        elif not line and data:
            yield from _event(data)
            data = []
    if data:  # a stream that ends without its last blank line
        yield from _event(data)


def _event(data: list[bytes]) -> Iterator[dict[str, Any] | None]:
    text = b"\n".join(data).decode()
    if text == DONE:
        yield None
    elif text:
        value = json.loads(text)
        if not isinstance(value, dict):
            raise ValueError(f"an event is a JSON {type(value).__name__}, not an object")
        yield value


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *complete, rest = (rest + piece).split(b"\n")
        for line in complete:
            yield line.removesuffix(b"\r")
    if rest:
        yield rest
