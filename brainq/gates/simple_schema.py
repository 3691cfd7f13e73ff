"""A quick yes for plain arguments against plain schemas.

Most tools take a few strings and numbers. For those a check made once from the schema says "valid" in about a
microsecond, where the full validator needs thirty and more. It only ever says yes to what is certainly valid;
everything else is left to the full validator, which also explains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

SimpleCheck = Callable[[dict[str, Any]], bool]

_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_NOTES = frozenset({"title", "description", "default", "examples", "$schema", "$id", "deprecated"})
_OBJECT_WORDS = frozenset({"type", "properties", "required", "additionalProperties"}) | _NOTES


def simple_check(schema: Mapping[str, Any]) -> SimpleCheck | None:
    """A check for `schema`, or None where the schema asks for more than this file knows."""
    if schema.get("type") != "object" or not set(schema) <= _OBJECT_WORDS:
        return None
    if schema.get("additionalProperties", True) not in (True, False):
        return None
    types: dict[str, tuple[type, ...]] = {}
    for name, wanted in cast("Mapping[str, object]", schema.get("properties", {})).items():
        found = _types_of(wanted)
        if found is not None:
            types[name] = found
    required = frozenset(cast("list[str]", schema.get("required", ())))

    def is_simply_valid(arguments: dict[str, Any]) -> bool:
        for name, value in arguments.items():
            # An exact type: bool is a kind of int to Python, but no integer to JSON schema.
            if type(value) not in types.get(name, ()):
                return False
        return required <= arguments.keys()

    return is_simply_valid


def _types_of(schema: object) -> tuple[type, ...] | None:
    """The Python types that fit a property's schema whatever their value; None where values matter."""
    if not isinstance(schema, Mapping):
        return None
    words = set(cast("Mapping[str, Any]", schema)) - _NOTES
    if words == {"type"}:
        named = cast("Mapping[str, Any]", schema)["type"]
        names = cast("list[str]", [named] if isinstance(named, str) else named)
        found = [_PYTHON_TYPES[name] for name in names if name in _PYTHON_TYPES]
        return tuple(kind for kinds in found for kind in kinds) or None
    if words == {"anyOf"}:
        choices = [_types_of(choice) for choice in cast("Mapping[str, Any]", schema)["anyOf"]]
        return tuple(kind for kinds in choices if kinds is not None for kind in kinds) or None
    return None
