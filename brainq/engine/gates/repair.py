"""Repairs of arguments that models get almost right. Only unambiguous mistakes are repaired.

Broken JSON is repaired only for calls that read. A value is converted to another type only if nothing is lost.

Each function takes arguments and the schema's errors, and returns repaired arguments, or None if it could repair
nothing. It never changes what it is given.
"""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

Path = tuple[str | int, ...]
_MAX_REPAIRED_CHARS = 100_000  # json_repair is slow on long broken text
_MAX_NUMBER_CHARS = 40
_MAX_WHOLE = 10**18  # texts are not converted to integers beyond a machine's
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?(e[+-]?[0-9]{1,3})?")  # the numbers of JSON
_NOTHING = object()
_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "integer": lambda value: isinstance(value, int | float) and not isinstance(value, bool) and value % 1 == 0,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
}


def refuse_constant(name: str) -> Any:
    """Refuse NaN and infinities, which are not JSON. For `json.loads(parse_constant=...)`."""
    raise ValueError(f"{name} is not JSON")


def finite_number(text: str) -> float:
    """Refuse numbers such as 1e999 that could not be written again. For `json.loads(parse_float=...)`."""
    if math.isinf(number := float(text)):
        raise ValueError(f"{text[:_MAX_NUMBER_CHARS]} is too large a number")
    return number


def mend_text(text: str) -> dict[str, Any] | None:
    """Return the object in a text that is not quite JSON. Returns None if none can be found."""
    if len(text) > _MAX_REPAIRED_CHARS or "{" not in text:
        return None
    import json_repair

    try:
        found: object = json_repair.loads(text, skip_json_loads=True)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found else None


def decode_strings(arguments: dict[str, Any], errors: Sequence[ValidationError]) -> dict[str, Any] | None:
    """Replace strings that contain JSON if the schema requires an object or an array."""
    return _replace(arguments, errors, _decoded)


def coerce_scalars(arguments: dict[str, Any], errors: Sequence[ValidationError]) -> dict[str, Any] | None:
    """Replace scalars by their exact equivalent of the required type: "3" by 3, "true" by true, 3 by "3".

    An ambiguous value is kept: "007" and "1_000" are texts, and 1.10 would lose its last digit.
    """
    return _replace(arguments, errors, _coerced)


def drop_unknown(arguments: dict[str, Any], errors: Sequence[ValidationError]) -> dict[str, Any] | None:
    """Remove unknown properties if the schema forbids them."""
    mended: dict[str, Any] | None = None
    for error in leaves(errors):
        if error.validator != "additionalProperties" or error.validator_value is not False:
            continue
        schema = error.schema
        if not isinstance(schema, dict) or "patternProperties" in schema:
            continue
        mended = copy.deepcopy(arguments) if mended is None else mended
        holder = _value_at(mended, tuple(error.absolute_path))
        if isinstance(holder, dict):
            known = schema.get("properties", {})
            for name in [name for name in cast("dict[str, Any]", holder) if name not in known]:
                del holder[name]
    return mended


def leaves(errors: Iterable[ValidationError]) -> Iterator[ValidationError]:
    """Yield the leaf errors. An error that combines the alternatives of an anyOf is replaced by the alternatives' own
    errors."""
    for error in errors:
        if error.context:
            yield from leaves(error.context)
        else:
            yield error


def _replace(
    arguments: dict[str, Any], errors: Sequence[ValidationError], replacement: Callable[[Any, set[str]], Any]
) -> dict[str, Any] | None:
    wanted: dict[Path, set[str]] = {}
    for error in leaves(errors):
        if error.validator == "type":
            types = error.validator_value
            wanted.setdefault(tuple(error.absolute_path), set()).update(
                [types] if isinstance(types, str) else cast("list[str]", types)
            )
    mended: dict[str, Any] | None = None
    for path, types in wanted.items():
        value = _value_at(arguments, path)
        new = replacement(value, types) if path and value is not _NOTHING else _NOTHING
        if new is _NOTHING:
            continue
        mended = copy.deepcopy(arguments) if mended is None else mended
        holder = _value_at(mended, path[:-1])
        holder[path[-1]] = new
    return mended


def _decoded(value: Any, types: set[str]) -> Any:
    if not isinstance(value, str):
        return _NOTHING
    try:
        decoded = json.loads(value, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        return _NOTHING
    wanted = types & {"object", "array"}
    return decoded if any(_TYPES[name](decoded) for name in wanted) else _NOTHING


def _coerced(value: Any, types: set[str]) -> Any:
    if isinstance(value, str):
        word = value.strip().lower()
        if "boolean" in types and word in ("true", "false"):
            return word == "true"
        if "null" in types and word == "null":
            return None
        if types & {"integer", "number"}:
            return _number(word, whole="number" not in types)
        return _NOTHING
    if "string" in types and isinstance(value, int):
        return json.dumps(value)
    return _NOTHING


def _number(word: str, *, whole: bool) -> Any:
    if not _NUMBER.fullmatch(word) or len(word) > _MAX_NUMBER_CHARS:
        return _NOTHING
    exact = Decimal(word)
    if exact == exact.to_integral_value() and abs(exact) < _MAX_WHOLE:
        return int(exact)
    return _NOTHING if whole or math.isinf(float(word)) else float(word)


def _value_at(value: Any, path: Path) -> Any:
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return _NOTHING
    return value
