"""The text in which a model gives the arguments of a call, read by one rule for every tool and every wire."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn, cast

_NOTHING_BEFORE = re.compile(r"\s*(?:(?:\{\s*\}|null)\s*(?=\{|null))*")
_SPACE = re.compile(r"\s*")
MAX_DIGITS = 4300  # Python's limit for reading a whole number
_LONG_NUMBER = re.compile(f"[0-9]{{{MAX_DIGITS + 1}}}")


class Unmendable(ValueError):
    """The error of a text whose meaning no repair could find."""


_TWO_OBJECTS = "they hold two JSON objects that differ; make one call for each"


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        for key, value in pairs:
            if repr(made[key]) != repr(value):  # 1, 1.0 and true are equal, but not the same
                raise Unmendable(f"they give {key!r} twice, with different values; give it once")
    return made


def read_argument_text(text: str) -> object:
    """Return the JSON value in `text`.

    Empty text and `null` are `{}`, because several models call a tool without parameters this way. `{}` or `null`
    directly before an object are ignored, because some proxies insert them. Equal objects in a row are one, because a
    proxy repeated it.

    Raises Unmendable if objects in a row differ, a key has two values or a number is too long. Raises RecursionError if
    the value is nested too deep, and ValueError with the reason if `text` is not JSON.
    """
    if not text.strip():
        return {}
    try:
        value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unambiguous)
    except json.JSONDecodeError as error:
        return _one_of_row(text, error)
    except Unmendable:
        raise
    except ValueError as error:
        if _LONG_NUMBER.search(text):
            raise Unmendable(f"they hold a number of more than {MAX_DIGITS} digits; give it as text") from None
        raise ValueError(f"they are not JSON ({error})") from None
    return {} if value is None else value


def _one_of_row(text: str, error: ValueError) -> dict[str, Any]:
    """Return the object that all objects in `text` equal. `error` is the reason why the text is not one value."""
    values = _values_in_row(text)
    if not values:
        if holds_several_objects(text):
            raise Unmendable(_TWO_OBJECTS) from None
        raise ValueError(f"they are not JSON ({error})") from None
    first, *others = (json.dumps(value, sort_keys=True) for value in values)
    if any(other != first for other in others):
        raise Unmendable(_TWO_OBJECTS) from None
    return values[0]


def _values_in_row(text: str) -> list[dict[str, Any]]:
    """Return the consecutive JSON objects in `text`, without leading empty ones.

    Returns [] if `text` holds anything other than objects.
    """
    decoder = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_unambiguous)
    values = list[dict[str, Any]]()
    at = _NOTHING_BEFORE.match(text).end()  # pyright: ignore[reportOptionalMemberAccess]
    while at < len(text):
        try:
            value, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError:
            return []
        if not isinstance(value, dict):
            return []
        values.append(cast("dict[str, Any]", value))
        at = _SPACE.match(text, at).end()  # pyright: ignore[reportOptionalMemberAccess]
    return values


def without_empty_prefix(text: str) -> str:
    """Return `text` without the empty objects before the first that is not empty."""
    return text[_NOTHING_BEFORE.match(text).end() :]  # pyright: ignore[reportOptionalMemberAccess]


def holds_several_objects(text: str) -> bool:
    """Return whether an object begins in `text` after another one has ended, however broken either is."""
    depth, in_string, has_ended, skip = 0, False, False, False
    for character in without_empty_prefix(text):
        if skip:
            skip = False
        elif in_string:
            skip, in_string = character == "\\", character != '"'
        elif character == '"':
            in_string = True
        elif character == "{":
            if has_ended and not depth:
                return True
            depth += 1
        elif character == "}" and depth:
            depth -= 1
            has_ended = True
    return False
