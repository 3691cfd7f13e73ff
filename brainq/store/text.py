"""Text that every database accepts.

Models return lone surrogates (half an emoji, split by a server) and tools return NULs. Postgres refuses both
and sqlite3 the first, so they are replaced where values are bound, not where they are made.
"""

from __future__ import annotations

import json
from typing import cast

from pydantic import BaseModel, JsonValue
from pydantic_core import PydanticSerializationError

from brainq.text.surrogates import clean

REPLACEMENT = "\ufffd"


def sql_text(text: str) -> str:
    """`text` with U+FFFD for NULs and lone surrogates; two halves that meet become their character."""
    return clean(text.replace("\x00", REPLACEMENT) if "\x00" in text else text)


def sql_json(model: BaseModel, *, exclude_defaults: bool = False) -> str:
    """`model` as JSON text that `model_validate_json` reads back; a NUL inside survives as an escape."""
    try:
        return model.model_dump_json(exclude_defaults=exclude_defaults)
    except PydanticSerializationError:
        return json.dumps(_clean(model.model_dump(mode="python", exclude_defaults=exclude_defaults)))


def _clean(value: object) -> JsonValue:
    """Plain data with `sql_text` applied to every string in it, keys too."""
    if isinstance(value, str):
        return sql_text(value)
    if isinstance(value, dict):
        items = cast("dict[str, object]", value).items()
        return {sql_text(key): _clean(item) for key, item in items}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in cast("list[object]", value)]
    return cast("JsonValue", value)
