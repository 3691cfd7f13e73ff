"""The gate that validates arguments against the tool's schema, and repairs what models get almost right."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from brainq.contracts.call import ToolDenied
from brainq.contracts.tool import ToolSpec
from brainq.engine.gates.canonical import canonical_json, hashes_of
from brainq.engine.gates.repair import coerce_scalars, decode_strings, drop_unknown, leaves, mend_text
from brainq.engine.gates.schema_check import UnresolvedReference, schema_problem
from brainq.engine.gates.schema_validator import UNCHECKED, SchemaValidator
from brainq.errors import ToolSchemaError
from brainq.runtime.text.argument_text import Unmendable, read_argument_text, without_empty_prefix
from brainq.runtime.text.shorten import beginning

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError


_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_ANNOTATIONS = frozenset({"title", "description", "default", "examples", "$schema", "$id", "deprecated"})
_OBJECT_WORDS = frozenset({"type", "properties", "required", "additionalProperties"}) | _ANNOTATIONS
MAX_REPAIR_ATTEMPTS = 3
MAX_ARGUMENTS_CHARS = 1_000_000
MAX_DEPTH = 64
_MAX_ERRORS_SHOWN = 5
_MAX_SHOWN_CHARS = 200
_MAX_REASON_CHARS = 500
_Repair = Callable[[dict[str, Any], Sequence["ValidationError"]], dict[str, Any] | None]


@dataclass(frozen=True, slots=True)
class SimpleSchema:
    """The required names of plain arguments, and the valid pairs of a name and a type.

    Most tools take a few strings and numbers. This validates such arguments in half a microsecond; the full validator
    needs thirty and more. Arguments that are not certainly valid are left to the full validator, which also explains
    errors.
    """

    required: frozenset[str]
    pairs: frozenset[tuple[str, type]]

    def fits(self, arguments: dict[str, Any]) -> bool:
        """Return whether the arguments are certainly valid."""
        # The exact type: a bool is an int in Python, but not an integer in JSON schema.
        found = zip(arguments, map(type, arguments.values()), strict=True)
        return self.required <= arguments.keys() and self.pairs.issuperset(found)


def simple_schema(schema: Mapping[str, Any]) -> SimpleSchema | None:
    """Return the fast check of a schema, or None if the schema needs the full validator."""
    if schema.get("type") != "object" or not set(schema) <= _OBJECT_WORDS:
        return None
    if schema.get("additionalProperties", True) not in (True, False):
        return None
    properties = cast("Mapping[str, object]", schema.get("properties", {}))
    return SimpleSchema(
        frozenset(cast("list[str]", schema.get("required", ()))),
        frozenset((name, kind) for name, wanted in properties.items() for kind in _types_of(wanted)),
    )


def _types_of(schema: object) -> tuple[type, ...]:
    """Return the Python types all of whose values fit a property's schema."""
    if not isinstance(schema, Mapping):
        return ()
    words = set(cast("Mapping[str, Any]", schema)) - _ANNOTATIONS
    if words == {"type"}:
        named = cast("Mapping[str, Any]", schema)["type"]
        names = cast("list[str]", [named] if isinstance(named, str) else named)
        return tuple(kind for name in names for kind in _PYTHON_TYPES.get(name, ()))
    if words == {"anyOf"}:
        return tuple(kind for choice in cast("Mapping[str, Any]", schema)["anyOf"] for kind in _types_of(choice))
    return ()


@dataclass(frozen=True, slots=True)
class ReadArguments:
    """Arguments as an object, the hashes that identify equal ones, and the number of repairs.

    args_hash     the hash of the arguments; see `hashes_of`
    fingerprint   the hash of the tool and the arguments
    """

    arguments: dict[str, Any]
    args_hash: str
    fingerprint: str
    repairs: int = 0


@dataclass(frozen=True, slots=True)
class ValidArguments(ReadArguments):
    """Arguments that fit the schema."""


@dataclass(frozen=True, slots=True)
class _CompiledSchema:
    spec: ToolSpec
    simple: SimpleSchema | None
    validator: SchemaValidator


class ToolArgValidator:
    """A validator of arguments by the schemas of tools. Each schema is compiled once. It is thread-safe."""

    def __init__(self) -> None:
        self._compiled: dict[str, _CompiledSchema] = {}

    def judge(self, spec: ToolSpec, arguments: ReadArguments | dict[str, Any] | str) -> ValidArguments | ToolDenied:
        """Validate `arguments` against `spec.parameters`, with at most MAX_REPAIR_ATTEMPTS repairs.

        Raises ToolSchemaError if the schema itself is unusable.
        """
        read = arguments if isinstance(arguments, ReadArguments) else read_arguments(spec, arguments)
        if isinstance(read, ToolDenied):
            return read
        compiled = self._compiled.get(spec.name)
        if compiled is None or compiled.spec is not spec:
            compiled = self._compiled[spec.name] = _CompiledSchema(
                spec, simple_schema(spec.parameters), _validator(spec)
            )
        if compiled.simple is not None and compiled.simple.fits(read.arguments):
            return ValidArguments(read.arguments, read.args_hash, read.fingerprint, read.repairs)
        errors = compiled.validator.errors(read.arguments)
        for repair in _repairs_for(spec):
            if not errors or read.repairs >= MAX_REPAIR_ATTEMPTS:
                break
            mended = repair(read.arguments, errors)
            if mended is not None:
                repairs = read.repairs + 1
                read = read_arguments(spec, mended, repairs)
                if isinstance(read, ToolDenied):
                    return read.model_copy(update={"repairs": repairs})
                errors = compiled.validator.errors(read.arguments)
        if errors:
            return _denial(spec, explain_errors(errors)).model_copy(update={"repairs": read.repairs})
        return ValidArguments(read.arguments, read.args_hash, read.fingerprint, read.repairs)


def _validator(spec: ToolSpec) -> SchemaValidator:
    try:
        problem = schema_problem(spec.parameters)
    except UnresolvedReference as reference:
        problem = f"it refers to {str(reference)!r}, which is not in it"
    if problem:
        raise ToolSchemaError(f"tool {spec.name!r}: its parameters must be a JSON schema: {problem}")
    return SchemaValidator(spec.parameters)


def _repairs_for(spec: ToolSpec) -> tuple[_Repair, ...]:
    # A property that a write does not know may be the one that restricts it (`dry_run`), so it is never dropped.
    last: tuple[_Repair, ...] = (drop_unknown,) if spec.effect.is_read else ()
    return (decode_strings, coerce_scalars, *last)


def _parse_arguments(spec: ToolSpec, text: str) -> tuple[dict[str, Any], int] | ToolDenied:
    """Return the object in `text` and the number of repairs (0 or 1)."""
    if len(text) > MAX_ARGUMENTS_CHARS:
        return _too_long(spec, len(text))
    try:
        value = read_argument_text(text)
    except RecursionError:
        return _too_deep(spec)
    except Unmendable as error:  # of a read as well
        return _denial(spec, str(error))
    except ValueError as error:
        # The arguments of a call with an effect are never guessed: half a text is valid JSON once it is repaired.
        mended = mend_text(without_empty_prefix(text)) if spec.effect.is_read else None
        if mended is not None:
            return mended, 1
        return _denial(spec, _shorten(str(error)))
    if not isinstance(value, dict):
        return _denial(spec, f"they must be a JSON object, not {_kind_name(value)}")
    return cast("dict[str, Any]", value), 0


def read_arguments(spec: ToolSpec, arguments: dict[str, Any] | str, repairs: int = 0) -> ReadArguments | ToolDenied:
    """Return the arguments as an object, or a denial if they are not JSON, too long or nested too deeply. `repairs`
    counts earlier repairs."""
    if isinstance(arguments, str):
        parsed = _parse_arguments(spec, arguments)
        if isinstance(parsed, ToolDenied):
            return parsed
        arguments, repairs = parsed
    try:
        text = canonical_json(arguments)
    except RecursionError:
        return _too_deep(spec)
    except (ValueError, TypeError) as error:
        return _denial(spec, f"they contain a value that JSON does not have, such as NaN or Infinity ({error})")
    if len(text) > MAX_ARGUMENTS_CHARS:
        return _too_long(spec, len(text))
    # Arguments with fewer brackets cannot be nested too deeply, and most have fewer.
    if text.count("{") + text.count("[") > MAX_DEPTH and _depth(arguments) > MAX_DEPTH:
        return _too_deep(spec)
    return ReadArguments(arguments, *hashes_of(spec.name, text), repairs)


def _depth(value: object) -> int:
    level: list[object] = [value]
    depth = 0
    while level and depth <= MAX_DEPTH:
        inner: list[object] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(cast("dict[str, object]", item).values())
            elif isinstance(item, list | tuple):
                inner.extend(cast("list[object]", item))
        depth += any(isinstance(item, dict | list | tuple) for item in level)
        level = inner
    return depth


def explain_errors(errors: Sequence[ValidationError]) -> str:
    """Return the first five errors, and where they are, in one line."""
    found: dict[str, None] = {}
    if errors and errors[0].validator == UNCHECKED:
        return beginning(errors[0].message, _MAX_REASON_CHARS)
    for error in leaves(errors):
        found.setdefault(f"{error.json_path}: {_explain_error(error)}")
    shown = list(found)[:_MAX_ERRORS_SHOWN]
    more = len(found) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")


def _explain_error(error: ValidationError) -> str:
    value = error.validator_value
    match error.validator:
        case "type":
            names = [value] if isinstance(value, str) else cast("list[str]", value)
            return f"wants {' or '.join(names)}, got {_kind_name(error.instance)}"
        case "enum":
            return _shorten(f"wants one of {json.dumps(value, default=str)}")
        case "const":
            return _shorten(f"wants {json.dumps(value, default=str)}")
        case "required" | "additionalProperties":
            return _shorten(error.message)
        case _:
            return _shorten(f"wants {error.validator} {json.dumps(value, default=str)}")


def _kind_name(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _shorten(text: str) -> str:
    return beginning(text, _MAX_SHOWN_CHARS)


def _too_deep(spec: ToolSpec) -> ToolDenied:
    return _denial(spec, f"they are nested deeper than {MAX_DEPTH} levels")


def _too_long(spec: ToolSpec, chars: int) -> ToolDenied:
    return _denial(spec, f"they are {chars} characters of JSON; at most {MAX_ARGUMENTS_CHARS} are allowed")


def _denial(spec: ToolSpec, problem: str) -> ToolDenied:
    return ToolDenied(
        reason="validation",
        message=f"The arguments of {spec.name} were refused: {problem}. Correct them and call again.",
    )
