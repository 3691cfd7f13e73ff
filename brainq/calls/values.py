"""From what a tool returned or raised to what may cross a process line."""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import PydanticSerializationError, to_jsonable_python

from brainq.text.shorten import beginning
from brainq.text.surrogates import clean, clean_json

MAX_RESULT_CHARS = 256_000
MAX_ERROR_CHARS = 2_000


def jsonable(value: Any) -> Any:
    """`value` as JSON: models, dataclasses, dates, sets and bytes in their usual form, the rest by `str()`.

    What is longer than MAX_RESULT_CHARS becomes the beginning of its text, and a line that says so.
    Raises ValueError for what has no JSON form, such as a list that holds itself.
    """
    if value is None or (isinstance(value, bool | int) and -(2**63) <= value < 2**63):
        return value
    if isinstance(value, str):
        text = clean(str(value))
        return text if len(text) <= MAX_RESULT_CHARS else _cut(text)
    text = _json_text(value)
    if len(text) > MAX_RESULT_CHARS:
        return _cut(text)
    return json.loads(text, parse_constant=str)  # NaN and infinities become words: JSON has no such numbers


def one_line(error: BaseException) -> str:
    """`TypeName: message` in one line of at most MAX_ERROR_CHARS characters."""
    try:
        message = " ".join(clean(str(error)).split())
    except Exception:  # a broken __str__ must not hide that the tool failed
        message = ""
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return beginning(text, MAX_ERROR_CHARS)


def _json_text(value: Any) -> str:
    try:
        try:
            plain = to_jsonable_python(value, fallback=str, bytes_mode="utf8")
        except (
            UnicodeError,
            PydanticSerializationError,
        ):  # bytes that are not text, or half an emoji in a key
            plain = to_jsonable_python(clean_json(value), fallback=str, bytes_mode="base64")
        return clean(json.dumps(plain, ensure_ascii=False))
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"it returned, but the result has no JSON form: {error}") from error


def _cut(text: str) -> str:
    marker = f"\n[cut: the first {{}} of {len(text)} characters]"
    shown = MAX_RESULT_CHARS - len(marker) - 8
    return text[:shown] + marker.format(shown)
