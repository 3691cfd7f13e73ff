"""The base class of models that cross processes, the check of incoming JSON, and the errors of its fields."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Self, cast

from pydantic import AfterValidator, BaseModel, ConfigDict

from brainq.errors import InvalidInput

MAX_DEPTH = 64
MAX_JSON_CHARS = 1_000_000
MAX_PART_CHARS = 60  # of a name that came from outside
NO_SUCH_FIELD = "there is no such field"
_PYDANTIC_SUBJECT = re.compile(r"^[A-Z][a-z]+ should")
_PROBLEM_TEXTS = {
    "string_unicode": "it holds half of a surrogate pair; send whole characters",
    "extra_forbidden": f"{NO_SUCH_FIELD}; look at its spelling, or leave it out",
    "missing": "it is required",
}


def _without_nul(text: str) -> str:
    return text.replace("\x00", "\ufffd")


UserText = Annotated[str, AfterValidator(_without_nul)]
"""A person's text, with U+FFFD for each NUL. Databases keep no NUL, and every reader must get the same text."""


class Wire(BaseModel):
    """A frozen model that refuses unknown fields and is cheap to validate from JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def from_stored(cls, text: str) -> Self:
        """Read what brainq has stored as JSON, without the fields that a newer build has added."""
        return cls.model_validate_json(text, extra="ignore")


class OfTurn(Wire):
    """A record that belongs to one turn."""

    turn_id: str
    session_id: str


def check_json(field: str, value: object) -> object:
    """Return `value` if it is JSON that every reader can accept. Raises InvalidInput naming `field` if it is not.

    It refuses values that have no JSON form (including NaN), invalid Unicode, more than 64 levels of nesting, and more
    than a million characters.
    """
    if _nests_too_deep(value):
        raise InvalidInput(field, f"it is nested deeper than {MAX_DEPTH} levels, or holds itself; make it flatter")
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


def _nests_too_deep(value: object) -> bool:
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _children(outer)]
        if not level:
            return False
    return True


def _children(value: object) -> Iterable[object]:
    match value:
        case dict():
            return cast("dict[Any, object]", value).values()
        case list() | tuple():
            return cast("list[object]", value)
        case _:
            return ()


def first_problem(
    errors: Sequence[Mapping[str, Any]], given: object, *, under: str = "", whole: str = "body"
) -> InvalidInput:
    """Return the error for the first of `ValidationError.errors()`, as in `options.temperature` or
    `history[2].calls[0].id`. It never quotes the input.

    given: the input that was validated. It distinguishes its field names from names that pydantic adds to the path,
        such as the branch of a union.
    under: the name of the field that held the input.
    whole: the name of the whole input, for errors without a field.
    """
    first = errors[0]
    where = field_path(first["loc"], given, under=under, is_missing=first["type"] == "missing") or whole
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, InvalidInput):
        return InvalidInput(where if where.startswith(cause.field) else cause.field, cause.problem)
    message = str(first["msg"]).removeprefix("Value error, ")
    return InvalidInput(where, _PROBLEM_TEXTS.get(first["type"]) or _PYDANTIC_SUBJECT.sub("it should", message))


def field_path(loc: Sequence[object], given: object, *, under: str = "", is_missing: bool = False) -> str:
    """Return the path of a field as people write it, such as `history[2].calls[0].id`."""
    path, here = under, given
    for at, part in enumerate(loc):
        if isinstance(part, int) and isinstance(here, list | tuple):
            path += f"[{part}]"
            items = cast("Sequence[object]", here)
            here = items[part] if part < len(items) else None
        elif isinstance(here, Mapping) and part in here:
            path += f".{str(part)[:MAX_PART_CHARS]}"
            here = cast("Mapping[object, object]", here)[part]
        elif isinstance(here, BaseModel) and isinstance(part, str) and part in type(here).model_fields:
            path += f".{part}"
            here = getattr(here, part)
        elif is_missing and at == len(loc) - 1:
            path += f".{str(part)[:MAX_PART_CHARS]}"
    return path.lstrip(".")
