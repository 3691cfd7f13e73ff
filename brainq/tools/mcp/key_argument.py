"""The argument by which a server takes an idempotency key: brainq fills it in, and the model does not see it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from brainq.contracts.effect import Effect


def without_key(schema: Mapping[str, Any], argument: str, effect: Effect) -> dict[str, Any]:
    """The tool's input schema without this argument. Raises ValueError where it takes no key, saying why."""
    if effect.is_read:
        raise ValueError("the tool is a read, and needs no key; leave it out, or say effect=")
    properties = dict(cast("Mapping[str, Any]", schema.get("properties") or {}))
    if argument not in properties:
        raise ValueError(f"the tool has no argument {argument!r}; it has {', '.join(properties) or 'none'}")
    if not _takes_text(properties.pop(argument)):
        raise ValueError(f"the argument {argument!r} takes no text, which a key is")
    kept = {**schema, "properties": properties}
    if "required" in schema:
        kept["required"] = [name for name in schema["required"] if name != argument]
    return kept


def _takes_text(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return schema is not False
    given = cast("Mapping[str, Any]", schema)
    kinds = given.get("type")
    if kinds is not None:
        return "string" in ([kinds] if isinstance(kinds, str) else kinds)
    alternatives = given.get("anyOf") or given.get("oneOf")
    return not alternatives or any(_takes_text(one) for one in alternatives)
