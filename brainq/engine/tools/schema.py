"""Schemas of tools, made from a function's signature or given by the app and checked, and the conversion of JSON
arguments to a function's types."""

from __future__ import annotations

import inspect
import json
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Union, cast

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, create_model
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from brainq.engine.gates.schema_check import PatternSizes, UnresolvedReference, schema_problem
from brainq.engine.tools.context import RunContext
from brainq.errors import ToolSchemaError

_REFUSED_KINDS = {
    inspect.Parameter.VAR_POSITIONAL: "*args has no JSON form; name each parameter, or take a list",
    inspect.Parameter.VAR_KEYWORD: "**kwargs has no JSON form; name each parameter, or take a dict",
    inspect.Parameter.POSITIONAL_ONLY: "models call by name; remove the / that makes it positional-only",
}
_REMEDY = "use str, int, float, bool, list, dict, an Enum, a Literal, a dataclass or a pydantic model"


def check_tool_schema(tool: str, parameters: object, sizes: PatternSizes | None = None) -> dict[str, Any]:
    """Return a copy of the schema. Raises ToolSchemaError, naming the tool and the place, unless it is a JSON schema
    (draft 2020-12) of an object in which every `$ref` has a target and every pattern can be matched.

    sizes: the compiled sizes of the patterns of other tools of the same call, or None if it comes alone.
    """
    if not isinstance(parameters, Mapping):
        raise ToolSchemaError(
            f"tool {tool!r}: its parameters must be a JSON schema as a dict, got {type(parameters).__name__}"
        )
    try:
        schema: dict[str, Any] = json.loads(json.dumps(dict(cast("Mapping[str, Any]", parameters)), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolSchemaError(f"tool {tool!r}: its parameters must be JSON: {error}") from error
    kind = schema.get("type", "object")
    if kind != "object":
        raise ToolSchemaError(
            f"tool {tool!r}: its parameters must be the schema of an object, got type {kind!r}; "
            'use {"type": "object", "properties": {...}}'
        )
    try:
        problem = schema_problem(schema, sizes)
    except UnresolvedReference as reference:
        raise ToolSchemaError(
            f"tool {tool!r}: its parameters refer to {str(reference)!r}, which is not in them; "
            "put it under $defs and refer to '#/$defs/name'"
        ) from None
    if problem:
        raise ToolSchemaError(f"tool {tool!r}: its parameters must be a JSON schema: {problem}")
    return schema


def check_function_takes(
    tool: str, function: Callable[..., Any], schema: Mapping[str, Any], context_param: str | None
) -> None:
    """Raise ToolSchemaError if the function cannot be called with arguments that fit the schema."""
    properties = cast("Mapping[str, Any]", schema.get("properties", {}))
    if context_param is not None and context_param in properties:
        raise ToolSchemaError(
            f"tool {tool!r}: the schema has a property {context_param!r}, which is also the name of its "
            "RunContext parameter; rename that parameter"
        )
    takes = inspect.signature(function).parameters
    takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in takes.values())
    missing = [] if takes_any else [name for name in properties if name not in takes]
    if missing:
        raise ToolSchemaError(
            f"tool {tool!r}: its function has no parameter for {_joined_names(missing)}; name it, or take **arguments"
        )
    extra = [name for name, parameter in takes.items() if _is_required(parameter)]
    extra = [name for name in extra if name not in properties and name != context_param]
    if extra:
        raise ToolSchemaError(
            f"tool {tool!r}: the schema has no property for {_joined_names(extra)} of its function; "
            "add one, or give the parameter a default"
        )


def _is_required(parameter: inspect.Parameter) -> bool:
    variadic = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return parameter.default is inspect.Parameter.empty and parameter.kind not in variadic


def _joined_names(names: list[str]) -> str:
    return ", ".join(map(repr, names))


@dataclass(frozen=True, slots=True)
class ArgumentBinder:
    """A converter of JSON arguments into keywords of the annotated types.

    model: has a field for each argument. Raises pydantic's ValidationError if one does not fit its annotation.
    names: maps a field of the model to a parameter of the function.
    """

    model: type[BaseModel]
    names: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ToolSignature:
    """The facts in the signature of a tool. `schema` is empty unless it was requested."""

    description: str
    schema: dict[str, Any]
    context_param: str | None
    binder: ArgumentBinder | None


class _QuietSchema(GenerateJsonSchema):
    """A generator that leaves out a default without a JSON form, without a warning."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}


def read_signature(tool: str, function: Callable[..., Any], *, with_schema: bool = True) -> ToolSignature:
    """Read annotations, defaults, `Annotated[..., Field(...)]` and the docstring of `function`.

    Raises ToolSchemaError naming the tool, the parameter and the remedy.
    """
    hints = _hints(tool, function)
    description, described = _documented(function)
    context_param: str | None = None
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if _is_context(hints.get(name)):
            if context_param is not None:
                raise ToolSchemaError(
                    f"tool {tool!r}: both {context_param!r} and {name!r} are annotated RunContext; keep one"
                )
            context_param = name
            continue
        if with_schema:
            _check_parameter(tool, parameter, hints)
        parameters.append(parameter)
    if not with_schema:
        return ToolSignature(description, {}, context_param, None)
    binder = _binder(tool, parameters, hints, described)
    return ToolSignature(description, _schema(tool, binder.model), context_param, binder)


def _documented(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return the docstring's texts for the function and for each parameter, in the style of Google, NumPy or Sphinx."""
    from docstring_parser import ParseError, parse

    text = inspect.cleandoc(function.__doc__ or "")
    try:
        parsed = parse(text)
    except ParseError:  # it only resembles one of the styles
        return text, {}
    described = {
        name.strip().lstrip("*"): " ".join((param.description or "").split())
        for param in parsed.params
        for name in param.arg_name.split(",")  # NumPy's form for one text about two parameters
    }
    return (parsed.description or "").strip(), described


def _hints(tool: str, function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise ToolSchemaError(
            f"tool {tool!r}: its annotations cannot be read ({error}); every name in them must be importable "
            "in the module of the function, also at run time (not under TYPE_CHECKING)"
        ) from error


def _is_context(hint: Any) -> bool:
    if typing.get_origin(hint) is Annotated:
        hint = typing.get_args(hint)[0]
    if typing.get_origin(hint) in (Union, types.UnionType):
        return RunContext in typing.get_args(hint)
    return hint is RunContext


def _check_parameter(tool: str, parameter: inspect.Parameter, hints: Mapping[str, Any]) -> None:
    if parameter.kind in _REFUSED_KINDS:
        raise ToolSchemaError(f"tool {tool!r}: parameter {parameter.name!r}: {_REFUSED_KINDS[parameter.kind]}")
    if parameter.name not in hints:
        raise ToolSchemaError(
            f"tool {tool!r}: parameter {parameter.name!r} has no annotation; write its type, "
            f"such as {parameter.name}: str"
        )


def _binder(
    tool: str, parameters: list[inspect.Parameter], hints: Mapping[str, Any], docs: Mapping[str, str]
) -> ArgumentBinder:
    # Fields are p0, p1, ... with the parameter's name as alias: a parameter may be called `copy`, `json` or `_x`, which
    # a model's field may not.
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    for index, parameter in enumerate(parameters):
        field = f"p{index}"
        names[field] = parameter.name
        hint = hints[parameter.name]
        extra: dict[str, Any] = {"alias": parameter.name}
        if parameter.name in docs and not _is_described(hint):
            extra["description"] = docs[parameter.name]
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        fields[field] = (Annotated[hint, Field(**extra)], default)
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=False, protected_namespaces=())
    try:
        model = create_model("Arguments", __config__=config, **fields)
    except (PydanticSchemaGenerationError, PydanticUserError, TypeError) as error:
        raise ToolSchemaError(f"tool {tool!r}: {_culprit(parameters, hints)}: {_first_line(error)}") from error
    return ArgumentBinder(model, names)


def _schema(tool: str, model: type[BaseModel]) -> dict[str, Any]:
    try:
        schema = model.model_json_schema(by_alias=True, schema_generator=_QuietSchema)
    except (PydanticInvalidForJsonSchema, PydanticUserError) as error:
        raise ToolSchemaError(
            f"tool {tool!r}: a parameter's type has no JSON form ({_first_line(error)}); {_REMEDY}"
        ) from error
    _drop_titles(schema)
    schema.setdefault("properties", {})
    # pydantic makes a valid JSON schema; only a pattern in it may be Python's own.
    if '"pattern' in json.dumps(schema) and (problem := schema_problem(schema)):
        raise ToolSchemaError(f"tool {tool!r}: {problem}")
    return schema


def _drop_titles(schema: Any) -> None:
    """Remove titles, which repeat the names: models pay for them by the token."""
    if not isinstance(schema, dict):
        return
    words = cast("dict[str, Any]", schema)
    words.pop("title", None)
    for word, inner in words.items():
        if word in ("properties", "$defs", "patternProperties"):
            for named in inner.values():  # these keys are names: one of them may be "title"
                _drop_titles(named)
        elif word in ("anyOf", "oneOf", "allOf", "prefixItems"):
            for choice in inner:
                _drop_titles(choice)
        elif word in ("items", "additionalProperties", "propertyNames", "not"):
            _drop_titles(inner)


def _is_described(hint: Any) -> bool:
    if typing.get_origin(hint) is not Annotated:
        return False
    return any(isinstance(extra, FieldInfo) and extra.description for extra in typing.get_args(hint)[1:])


def _culprit(parameters: list[inspect.Parameter], hints: Mapping[str, Any]) -> str:
    """Return the parameter that pydantic does not support, which it does not name itself."""
    for parameter in parameters:
        try:
            create_model("Probe", value=(hints[parameter.name], ...))
        except (PydanticSchemaGenerationError, PydanticUserError, TypeError):
            return (
                f"parameter {parameter.name!r} is annotated {hints[parameter.name]!r}, "
                f"which has no JSON form; {_REMEDY}"
            )
    return "its parameters cannot become a JSON schema"


def _first_line(error: BaseException) -> str:
    return str(error).split("\n", 1)[0]
