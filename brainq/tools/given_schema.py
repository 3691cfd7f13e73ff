"""A JSON schema that was given, not made from a signature: checked where it enters."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any, cast

from brainq.errors import ToolSchemaError
from brainq.gates.pattern_sizes import PatternSizes
from brainq.gates.usable_schema import LostReference, problem_of


def checked_schema(tool: str, given: object, sizes: PatternSizes | None = None) -> dict[str, Any]:
    """`given` as a dict of its own. Raises ToolSchemaError, naming the tool and the place, unless it is a JSON schema
    (draft 2020-12) of an object, whose every `$ref` leads to a place in it and whose every pattern can be matched.

    sizes   what the patterns of tools that come with it compiled to; None: it comes alone
    """
    if not isinstance(given, Mapping):
        raise ToolSchemaError(
            f"tool {tool!r}: its parameters must be a JSON schema as a dict, got {type(given).__name__}"
        )
    try:
        schema: dict[str, Any] = json.loads(
            json.dumps(dict(cast("Mapping[str, Any]", given)), allow_nan=False)
        )
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolSchemaError(f"tool {tool!r}: its parameters must be JSON: {error}") from error
    kind = schema.get("type", "object")
    if kind != "object":
        raise ToolSchemaError(
            f"tool {tool!r}: its parameters must be the schema of an object, got type {kind!r}; "
            'use {"type": "object", "properties": {...}}'
        )
    try:
        problem = problem_of(schema, sizes)
    except LostReference as reference:
        raise ToolSchemaError(
            f"tool {tool!r}: its parameters refer to {str(reference)!r}, which is not in them; "
            "put it under $defs and refer to '#/$defs/name'"
        ) from None
    if problem:
        raise ToolSchemaError(f"tool {tool!r}: its parameters must be a JSON schema: {problem}")
    return schema


def check_taken(
    tool: str, function: Callable[..., Any], schema: Mapping[str, Any], context_param: str | None
) -> None:
    """Raises ToolSchemaError if the function cannot be called with what the schema lets through."""
    properties = cast("Mapping[str, Any]", schema.get("properties", {}))
    if context_param is not None and context_param in properties:
        raise ToolSchemaError(
            f"tool {tool!r}: the schema has a property {context_param!r}, and so is its RunContext parameter called; "
            "give that parameter another name"
        )
    takes = inspect.signature(function).parameters
    takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in takes.values())
    missing = [] if takes_any else [name for name in properties if name not in takes]
    if missing:
        raise ToolSchemaError(
            f"tool {tool!r}: its function has no parameter for {_listed(missing)}; name it, or take **arguments"
        )
    extra = [name for name, parameter in takes.items() if _is_needed(parameter)]
    extra = [name for name in extra if name not in properties and name != context_param]
    if extra:
        raise ToolSchemaError(
            f"tool {tool!r}: the schema has no property for {_listed(extra)} of its function; "
            "add one, or give the parameter a default"
        )


def _is_needed(parameter: inspect.Parameter) -> bool:
    variadic = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return parameter.default is inspect.Parameter.empty and parameter.kind not in variadic


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names))
