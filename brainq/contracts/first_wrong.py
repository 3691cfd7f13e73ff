"""What pydantic found wrong, told as every other refusal of ours: by the whole name of the field."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel

from brainq.errors import InvalidInput

MAX_PART_CHARS = 60  # of a name that came from outside
NO_SUCH_FIELD = "there is no such field"
_SUBJECT = re.compile(r"^[A-Z][a-z]+ should")
_WORDS = {
    "extra_forbidden": f"{NO_SUCH_FIELD}; look at its spelling, or leave it out",
    "missing": "it is required",
}


def first_wrong(
    errors: Sequence[Mapping[str, Any]], given: object, *, under: str = "", whole: str = "body"
) -> InvalidInput:
    """Of the first of `ValidationError.errors()`: `options.temperature`, `history[2].calls[0].id`. Never says what was
    sent.

    given   what was validated; it tells the names of fields from pydantic's own, such as that of a union's branch
    under   the name of the field that it was
    whole   the name of all of it, where no field of it is to blame
    """
    first = errors[0]
    where = path_of(first["loc"], given, under=under, is_missing=first["type"] == "missing") or whole
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, InvalidInput):
        return InvalidInput(where if where.startswith(cause.field) else cause.field, cause.problem)
    said = str(first["msg"]).removeprefix("Value error, ")
    return InvalidInput(where, _WORDS.get(first["type"]) or _SUBJECT.sub("it should", said))


def path_of(loc: Sequence[object], given: object, *, under: str = "", is_missing: bool = False) -> str:
    """A place as people write it. Pure."""
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
