"""From resource templates and arguments to the lanes of a call.

A template is text with the names of parameters in braces, such as `note:{path}`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from string import Formatter
from typing import Any, cast

from brainq.contracts.tool import ToolSpec
from brainq.errors import InvalidInput, ToolSchemaError
from brainq.gates.canonical import canonical_json

MAX_KEY_CHARS = 200
_FORMATTER = Formatter()


def lanes_of(spec: ToolSpec, arguments: Mapping[str, Any], session_id: str) -> tuple[str, ...]:
    """The lanes a call must hold before it may start, sorted, without repeats.

    A read holds none. Another call holds what its resources name, or its session's lane if they name
    nothing. Raises InvalidInput, naming tool and template, if an argument that a template needs is missing.
    """
    if spec.effect.is_read:
        return ()
    return _filled(spec, arguments) or (f"session:{session_id}",)


def resource_keys_of(spec: ToolSpec, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """What a call works on, sorted, without repeats: two reads that share a key are kept in separate waves.

    Raises InvalidInput like `lanes_of`.
    """
    return _filled(spec, arguments)


def check_template(tool: str, template: object, parameters: tuple[str, ...]) -> str:
    """Return `template` if it can be filled from `parameters`; raise ToolSchemaError if not."""
    if not isinstance(template, str) or not template.strip():
        raise ToolSchemaError(f"tool {tool!r}: resource {template!r} must be a text such as 'note:{{path}}'")
    try:
        parts = list(_FORMATTER.parse(template))
    except ValueError as error:
        raise ToolSchemaError(
            f"tool {tool!r}: resource {template!r} cannot be read ({error}); write {{{{ for a brace"
        ) from error
    for _, name, spec, conversion in parts:
        if name is None:
            continue
        if spec or conversion or name not in parameters:
            raise ToolSchemaError(
                f"tool {tool!r}: resource {template!r} names {{{name}}}, which is not a parameter; "
                f"use plain names of: {', '.join(parameters) or '(the tool has none)'}"
            )
    return template


def _filled(spec: ToolSpec, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    if not spec.resources:
        return ()
    return tuple(sorted({_fill(spec, template, arguments) for template in spec.resources}))


def _fill(spec: ToolSpec, template: str, arguments: Mapping[str, Any]) -> str:
    if "{" not in template and "}" not in template:
        return _fitted(template)
    key: list[str] = []
    for text, name, _, _ in _FORMATTER.parse(template):
        key.append(text)
        if name is not None:
            key.append(_shown(_value(spec, template, name, arguments)))
    return _fitted("".join(key))


def _value(spec: ToolSpec, template: str, name: str, arguments: Mapping[str, Any]) -> Any:
    if name in arguments:
        return arguments[name]
    # A call that leaves a parameter out works on the same thing as one that spells the default out.
    found: Any = spec.parameters.get("properties", {}).get(name)
    if isinstance(found, Mapping) and "default" in found:
        return cast("Mapping[str, Any]", found)["default"]
    raise InvalidInput(
        name,
        f"tool {spec.name!r} needs it for its resource {template!r}, and the call does not give it; "
        f"pass {name}",
    )


def _shown(value: Any) -> str:
    # The order of keys must not matter, as it would in str() of a dict.
    return canonical_json(value) if isinstance(value, dict | list) else str(value)


def _fitted(key: str) -> str:
    """Keys are names in Redis: a long one keeps its beginning, and a digest of the whole."""
    if len(key) <= MAX_KEY_CHARS:
        return key
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{key[: MAX_KEY_CHARS - 33]}~{digest}"
