"""JSON of a producer's own: checked where it enters, because it is stored and sent on as it is."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, cast

from brainq.errors import InvalidInput

MAX_DEPTH = 64
MAX_JSON_CHARS = 1_000_000


def check_json(field: str, value: object) -> object:
    """Return `value` if it is JSON that every reader can take; raise InvalidInput naming `field` if not.

    Refused: what JSON has no form for (NaN, too), text that is no Unicode, more than 64 levels, more than a
    million characters.
    """
    if _is_too_deep(value):
        raise InvalidInput(
            field, f"it is nested deeper than {MAX_DEPTH} levels, or holds itself; make it flatter"
        )
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(field, "it holds half of a surrogate pair; send whole characters") from None
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            field, f"it is not JSON ({error}); use None, bool, int, float, str, and lists and dicts of them"
        ) from None
    if len(text) > MAX_JSON_CHARS:
        raise InvalidInput(field, f"it is {len(text):,} characters of JSON; send at most {MAX_JSON_CHARS:,}")
    return value


def _is_too_deep(value: object) -> bool:
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return True


def _inside(value: object) -> Iterable[object]:
    match value:
        case dict():
            return cast("dict[Any, object]", value).values()
        case list() | tuple():
            return cast("list[object]", value)
        case _:
            return ()
