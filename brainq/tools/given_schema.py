"""A JSON schema that was given, not made from a signature: checked where it enters."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from brainq.errors import ToolSchemaError


def checked_schema(tool: str, given: object) -> dict[str, Any]:
    """`given` as a dict of its own. Raises ToolSchemaError, naming the tool and the place, unless it is a JSON schema
    (draft 2020-12) of an object whose every `$ref` leads to a place in it."""
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
    _check_words(tool, schema)
    _check_references(tool, schema)
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


def _check_words(tool: str, schema: dict[str, Any]) -> None:
    if problem := wrong_words(schema):
        raise ToolSchemaError(f"tool {tool!r}: its parameters must be a JSON schema: {problem}")


def _check_references(tool: str, schema: dict[str, Any]) -> None:
    if reference := lost_reference(schema):
        raise ToolSchemaError(
            f"tool {tool!r}: its parameters refer to {reference!r}, which is not in them; "
            "put it under $defs and refer to '#/$defs/name'"
        )


def wrong_words(schema: dict[str, Any]) -> str:
    """Why this is no JSON schema, and where; "" for one that is."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"{error.message} at {error.json_path}"
    return ""


def lost_reference(schema: dict[str, Any]) -> str:
    """The first `$ref` to something that is not in the schema; "" for none."""
    references = dict.fromkeys(_references(schema))
    if not references:
        return ""
    from referencing import Registry, Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    resource: Resource[Any] = Resource.from_contents(schema, default_specification=DRAFT202012)
    registry: Registry[Any] = Registry()
    resolver = registry.resolver_with_root(resource)
    for reference in references:
        try:
            resolver.lookup(reference)
        except Unresolvable:
            return reference
    return ""


def _references(part: object) -> Iterator[str]:
    if isinstance(part, dict):
        for word, inner in cast("dict[str, object]", part).items():
            if word == "$ref" and isinstance(inner, str):
                yield inner
            elif word not in ("const", "enum", "default", "examples"):
                yield from _references(inner)
    elif isinstance(part, list):
        for inner in cast("list[object]", part):
            yield from _references(inner)
