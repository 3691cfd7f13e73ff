"""The lanes of a call, from resource templates and arguments.

A template is text with names in braces: of a parameter, such as `note:{path}`; of a plain value in one, such as
`item:{order.sku}`; or `{session}`, the session's id, unless a parameter has this name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from string import Formatter
from typing import Any, Literal, cast

from brainq.contracts.tool import ToolSpec
from brainq.errors import InvalidInput, ToolSchemaError

MAX_KEY_CHARS = 200
SESSION = "session"
_FORMATTER = Formatter()
Schema = Mapping[str, Any]
LaneScope = Literal["tenant", "cell"]
"""The scope in which a tool's lanes must hold: the sessions of a `tenant`, which are all in one cell; or `cell`, if the
sessions of each cell are enough."""


def lanes_of(spec: ToolSpec, arguments: Mapping[str, Any], session_id: str) -> tuple[str, ...]:
    """Return the lanes that a call holds while it runs: none for a read, and the resource keys of any other call."""
    return () if spec.effect.is_read else resource_keys(spec, arguments, session_id)


def resource_keys(spec: ToolSpec, arguments: Mapping[str, Any], session_id: str) -> tuple[str, ...]:
    """Return the resources that a call works on, sorted and without repeats.

    Two reads with a common key run in separate waves, and any other call holds the lanes of these names. A call that is
    not a read and names nothing works on its session. Raises InvalidInput, naming tool and template, if an argument
    that a template needs is missing, or is not a plain value.
    """
    if not spec.resources:
        return () if spec.effect.is_read else (f"session:{session_id}",)
    return tuple(sorted({_fill_template(spec, template, arguments, session_id) for template in spec.resources}))


def shared_templates(spec: ToolSpec) -> tuple[str, ...]:
    """Return the resources whose lanes calls of several sessions may share. A read has none, because it holds no lane.

    Sessions of two tenants may be in two cells, and a lane holds within one cell only.
    """
    if spec.effect.is_read:
        return ()
    own = SESSION not in spec.parameters.get("properties", {})
    return tuple(
        template
        for template in spec.resources
        if not (own and any(name == SESSION for _, name, _, _ in _FORMATTER.parse(template)))
    )


def check_template(tool: str, template: object, schema: Schema) -> str:
    """Return `template` if arguments that fit `schema` can fill it. Raises ToolSchemaError if not."""
    if not isinstance(template, str) or not template.strip():
        raise ToolSchemaError(f"tool {tool!r}: resource {template!r} must be a text such as 'note:{{path}}'")
    try:
        parts = list(_FORMATTER.parse(template))
    except ValueError as error:
        raise ToolSchemaError(
            f"tool {tool!r}: resource {template!r} cannot be read ({error}); write {{{{ for a brace"
        ) from error
    for _, name, spec, conversion in parts:
        if name is not None:
            problem = "is not a name" if spec or conversion or not name else _problem(name, schema)
            if problem:
                known = ", ".join(schema.get("properties", {})) or "(the tool has none)"
                raise ToolSchemaError(
                    f"tool {tool!r}: resource {template!r} names {{{name}}}, which {problem}; use {{session}}, plain "
                    f"values in parameters such as {{order.id}}, or plain names of: {known}"
                )
    return template


def _problem(name: str, schema: Schema) -> str:
    """Return why a resource cannot contain the argument `name`, or "" if its value is a text or number."""
    if name == SESSION and SESSION not in schema.get("properties", {}):
        return ""
    found = [schema]
    for part in name.split("."):
        found = [inner for part_of in found for inner in _property_schemas(part_of, part, schema)]
        if not found:
            return "is not a parameter, nor in one"
    if any(_is_container(kind) for inner in found for kind in _possible_schemas(inner, schema)):
        return "may be an object or a list"
    return ""


def _property_schemas(part: Schema, name: str, root: Schema) -> Iterator[Schema]:
    for kind in _possible_schemas(part, root):
        properties = kind.get("properties", {})
        if name in properties and isinstance(properties[name], Mapping):
            yield properties[name]


def _possible_schemas(part: Schema, root: Schema, depth: int = 0) -> Iterator[Schema]:
    """Yield the schemas that a value of `part` may have to fit: itself, its references, its choices."""
    yield part
    if depth > 8:  # a schema that refers to itself
        return
    reference = part.get("$ref")
    named: Any = root.get("$defs", {})
    if isinstance(reference, str) and reference.removeprefix("#/$defs/") in named:
        yield from _possible_schemas(named[reference.removeprefix("#/$defs/")], root, depth + 1)
    for word in ("anyOf", "oneOf", "allOf"):
        for choice in cast("list[Schema]", part.get(word, [])):
            yield from _possible_schemas(choice, root, depth + 1)


def _is_container(kind: Schema) -> bool:
    types: Any = kind.get("type", [])
    names = [types] if isinstance(types, str) else types
    return "object" in names or "array" in names or "properties" in kind


def _fill_template(spec: ToolSpec, template: str, arguments: Mapping[str, Any], session_id: str) -> str:
    if "{" not in template and "}" not in template:
        return _bounded_key(template)
    key: list[str] = []
    for text, name, _, _ in _FORMATTER.parse(template):
        key.append(text)
        if name == SESSION and SESSION not in spec.parameters.get("properties", {}):
            key.append(session_id)
        elif name is not None:
            key.append(str(_template_value(spec, template, name, arguments)))
    return _bounded_key("".join(key))


def _template_value(spec: ToolSpec, template: str, name: str, arguments: Mapping[str, Any]) -> Any:
    value: Any = arguments
    found: list[Schema] = [spec.parameters]
    for part in name.split("."):
        found = [inner for part_of in found for inner in _property_schemas(part_of, part, spec.parameters)]
        if isinstance(value, Mapping) and part in value:
            value = cast("Mapping[str, Any]", value)[part]
            continue
        # A call that omits a value works on the same thing as one that gives the default.
        defaults = [inner["default"] for inner in found if "default" in inner]
        if not isinstance(value, Mapping) or not defaults:
            raise InvalidInput(
                name,
                f"tool {spec.name!r} needs it for its resource {template!r}, and the call does not give it; "
                f"pass {name}",
            )
        value = defaults[0]
    if isinstance(value, dict | list):
        raise InvalidInput(
            name, f"tool {spec.name!r} needs a plain value for its resource {template!r}; pass a text or number"
        )
    return value


def _bounded_key(key: str) -> str:
    """Return the key as a name in Redis. A long one keeps its beginning, and a digest of the whole."""
    if len(key) <= MAX_KEY_CHARS:
        return key
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{key[: MAX_KEY_CHARS - 33]}~{digest}"
