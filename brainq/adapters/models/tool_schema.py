"""The schema of a tool in the form that model services accept. The gate checks arguments against the original schema.

A service that does not know a keyword of one tool refuses every turn of the brain. These are rewritten, because a
service refuses them:

| what | refused by | seen in |
|---|---|---|
| an object without `properties` | OpenAI, vLLM | openai-agents-python#449, spring-ai#4776 |
| no `type: object` at the top | OpenAI, Anthropic | chatanywhere/GPT_API_free#403 |
| `oneOf`, `anyOf`, `allOf`, `enum`, `not` at the top | OpenAI, Anthropic | google-calendar-mcp#39, langchain#39271 |
| an array without `items` | OpenAI, Gemini | "array schema missing items" |
| `$ref`, `$defs` | Gemini, Groq, older Bedrock | pydantic-ai's Google transformer |
| `type` as a list | Gemini | gitlab-mcp#166 |
| `const`, `oneOf`, `$schema`, `discriminator`, `exclusiveMinimum` | Gemini | zed#45552 |
| an `enum` of other values than texts | Gemini | opencode#2687, rikkahub#477 |
| a `format` of texts other than `date-time` | Gemini | pydantic-ai's Google transformer |
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import unquote

from brainq.contracts.tool import ToolSpec
from brainq.runtime.text.surrogates import clean_json

MAX_PARTS = 2_000
"""The most schemas that inlining may produce. A reference beyond it keeps only its type and description."""
MAX_NESTED = 64
"""The deepest nesting of an argument. The gate refuses a deeper one."""
MAX_KEPT = 1_000
Schema = dict[str, Any]
_kept: dict[int, tuple[Mapping[str, Any], SentSchema]] = {}
_CONDITIONS = ("not", "if", "then", "else", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems")
_NAMES = ("$schema", "$id", "$anchor", "$dynamicAnchor", "$comment", "$vocabulary", "$defs", "definitions")
_LEFT_OUT = frozenset((*_CONDITIONS, *_NAMES, "discriminator"))
_NAMED = ("properties", "patternProperties")
_INNER = ("items", "additionalProperties", "propertyNames", "contains")
_ANNOTATIONS = ("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly")
_WORDS_OF_TYPE = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "array": ("items", "minItems", "maxItems", "uniqueItems", "contains"),
    "object": ("properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties"),
    "number": ("minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"),
}
_WORDS_OF_TYPE["integer"] = _WORDS_OF_TYPE["number"]
_PYTHON_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
}


@dataclass(frozen=True, slots=True)
class SentSchema:
    """A schema that is sent to a service.

    rewritten: the parts that a service would have refused, in words. Empty if the schema is sent unchanged.
    """

    schema: Schema
    rewritten: tuple[str, ...] = ()


def tool_parameters(tool: ToolSpec) -> Schema:
    """Return the JSON schema that is sent for the arguments of a tool. It must not be changed."""
    kept = _kept.get(id(tool.parameters))
    if kept is None or kept[0] is not tool.parameters:
        if len(_kept) >= MAX_KEPT:
            _kept.clear()
        kept = _kept[id(tool.parameters)] = tool.parameters, sent_schema(tool.parameters)
    return kept[1].schema


def sent_schema(parameters: Mapping[str, Any]) -> SentSchema:
    """Rewrite a tool's schema for model services.

    Any value that fits the original fits the result. Alternatives at the top are merged: their properties are listed
    together, and a sentence says which of them go together.
    """
    original = dict(parameters)
    folding = _Folding(original)
    schema = folding.fold(original, ())
    if alternatives := schema.pop("anyOf", None):
        folding.note("alternatives at the top")
        schema = _side_by_side(schema, alternatives)
    for condition in _conditions(original):
        inner = folding.fold(condition, ())
        schema["properties"] = {**inner.get("properties", {}), **schema.get("properties", {})}
    if schema.get("type") != "object":
        folding.note("no type at the top")
    if schema.pop("enum", None) is not None:
        folding.note("enum at the top")
    if "properties" not in schema:
        folding.note("no properties")
    schema = {"properties": {}, **schema, "type": "object"}
    return SentSchema(clean_json(schema), tuple(folding.notes))


def _conditions(schema: Schema) -> list[Schema]:
    """Return the schemas at the top level that apply only under a condition."""
    found = [schema.get("then"), schema.get("else"), *schema.get("dependentSchemas", {}).values()]
    return [cast("Schema", one) for one in found if isinstance(one, dict)]


class _Folding:
    """A schema that is being rewritten. `notes` list what was rewritten, in the order of discovery."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._parts = self._depth = 0
        self.notes: dict[str, None] = {}

    def note(self, words: str) -> None:
        self.notes[words] = None

    def fold(self, schema: object, open_references: tuple[str, ...]) -> Schema:
        """Return a schema without references, with keywords that all services know."""
        self._parts += 1
        if not isinstance(schema, dict):  # true, or false, which nothing fits: the gate reports that
            self.note("true or false in place of a schema")
            return {}
        if self._depth == MAX_NESTED:
            return {}
        self._depth += 1
        folded = self._folded(cast("Schema", schema), open_references)
        self._depth -= 1
        return self._plain(folded)

    def _folded(self, words: Schema, open_references: tuple[str, ...]) -> Schema:
        folded = {word: value for word, value in words.items() if word not in _LEFT_OUT}
        for word in _CONDITIONS:
            if word in words:
                self.note(word)
        for word in _NAMED:
            if word in folded:
                named = cast("Schema", folded[word])
                folded[word] = {key: self.fold(one, open_references) for key, one in named.items() if one is not False}
        for word in _INNER:
            if word in folded and not (word == "additionalProperties" and isinstance(folded[word], bool)):
                folded[word] = self.fold(folded[word], open_references)
        folded = self._without_tuple(folded, open_references)
        folded = self._without_choices(folded, open_references)
        if (reference := folded.pop("$ref", None)) is not None:
            return _both(folded, self._target(reference, open_references))
        return folded

    def _target(self, reference: str, open_references: tuple[str, ...]) -> Schema:
        self.note("$ref")
        target = _at(self._root, reference)
        if reference in open_references or self._parts > MAX_PARTS:
            return {word: target[word] for word in ("type", "description") if word in target}
        return self.fold(target, (*open_references, reference))

    def _without_choices(self, folded: Schema, open_references: tuple[str, ...]) -> Schema:
        every = [self.fold(one, open_references) for one in folded.pop("allOf", ())]
        if every:
            self.note("allOf")
        one_of = folded.pop("oneOf", None)
        if one_of is not None:
            self.note("oneOf")
        choices = folded.pop("anyOf", None) or one_of or ()
        choices = [self.fold(one, open_references) for one in choices]
        for one in every:
            folded = _both(folded, one)
        if len(choices) == 1:
            return _both(folded, choices[0])
        return {**folded, "anyOf": choices} if choices else folded

    def _without_tuple(self, folded: Schema, open_references: tuple[str, ...]) -> Schema:
        places = folded.pop("prefixItems", None)
        if not places:
            return folded
        self.note("prefixItems")
        choices = _distinct(self.fold(one, open_references) for one in places)
        if folded.get("items") == {} or "items" not in folded:  # further items may be anything
            return {**folded, "items": {}}
        return {**folded, "items": {"anyOf": _distinct([*choices, folded["items"]])}}

    def _plain(self, schema: Schema) -> Schema:
        """Return the schema in plain keywords. The schemas inside it are plain already."""
        schema = self._without_exact_values(schema)
        kinds = schema.get("type")
        if isinstance(kinds, list):
            schema = self._apart(schema, cast("list[str]", kinds))
        schema = self._without_limits(schema)
        if schema.get("type") == "array" and "items" not in schema:
            self.note("no items")
            schema["items"] = {}
        if schema.get("type") == "object" and schema.get("required"):
            named = cast("Schema", schema.get("properties", {}))
            schema["properties"] = named | {name: {} for name in schema["required"] if name not in named}
        if schema.get("required") == []:
            del schema["required"]
        return schema

    def _apart(self, schema: Schema, kinds: Sequence[str]) -> Schema:
        """Return one choice for each type of a list of types."""
        self.note("a list of types")
        kept = {word: schema[word] for word in _ANNOTATIONS if word in schema}
        if "anyOf" in schema:
            return {**kept, "anyOf": schema["anyOf"]}
        choices: list[Schema] = []
        for kind in kinds:
            one = {"type": kind, **{word: schema[word] for word in _WORDS_OF_TYPE.get(kind, ()) if word in schema}}
            if "enum" in schema and kind != "null":
                one["enum"] = [value for value in schema["enum"] if type(value) in _PYTHON_TYPES.get(kind, ())]
            if one.get("enum") != []:
                choices.append(self._plain(one))
        if len(choices) == 1:
            return {**choices[0], **kept}
        return {**kept, "anyOf": choices} if choices else kept

    def _without_exact_values(self, schema: Schema) -> Schema:
        if "const" in schema:
            self.note("const")
            constant = schema["const"]
            schema = {word: value for word, value in schema.items() if word != "const"} | {"enum": [constant]}
        values = cast("list[Any] | None", schema.get("enum"))
        if values is None or isinstance(schema.get("type"), list) or all(isinstance(value, str) for value in values):
            return schema
        self.note("an enum of other values than texts")
        rest = {word: value for word, value in schema.items() if word != "enum"}
        return _described(rest, f"One of {', '.join(json.dumps(value, ensure_ascii=False) for value in values)}.")

    def _without_limits(self, schema: Schema) -> Schema:
        said: list[str] = []
        for word, phrase in (("exclusiveMinimum", "above"), ("exclusiveMaximum", "below")):
            if isinstance(limit := schema.get(word), int | float) and not isinstance(limit, bool):
                self.note(word)
                said.append(f"It must be {phrase} {limit}.")
                schema = {key: value for key, value in schema.items() if key != word}
        shape = schema.get("format")
        if shape is not None and shape != "date-time" and schema.get("type", "string") == "string":
            self.note("format")
            said.append(f"Format: {shape}.")
            schema = {key: value for key, value in schema.items() if key != "format"}
        return _described(schema, " ".join(said)) if said else schema


def _described(schema: Schema, sentence: str) -> Schema:
    before = str(schema.get("description") or "")
    return schema if sentence in before else {**schema, "description": f"{before} {sentence}".strip()}


def _at(root: Schema, reference: str) -> Schema:
    """Return the target of a reference. The gate has checked that it exists."""
    here: Any = root if reference == "#" or reference.startswith("#/") else None
    for part in reference.split("/")[1:]:
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        try:
            here = here[int(key)] if isinstance(here, list) else here[key]
        except (KeyError, IndexError, ValueError, TypeError):
            return {}
    return cast("Schema", here) if isinstance(here, dict) else {}


def _both(first: Schema, second: Schema) -> Schema:
    """Return the schema of values that fit both. Of two limits of one kind the first one is kept."""
    merged = {**second, **first}
    if "properties" in first and "properties" in second:
        mine, others = cast("Schema", first["properties"]), cast("Schema", second["properties"])
        merged["properties"] = others | {name: _both(mine[name], others.get(name, {})) for name in mine}
    if "required" in first and "required" in second:
        merged["required"] = list(dict.fromkeys([*first["required"], *second["required"]]))
    return merged


def _side_by_side(schema: Schema, alternatives: Sequence[Schema]) -> Schema:
    """Return an object with the properties of all alternatives.

    A property is required if each alternative requires it.
    """
    parts = [_side_by_side(one, one["anyOf"]) if "anyOf" in one else one for one in alternatives]
    own = cast("Schema", schema.get("properties", {}))
    properties = dict(own)
    for name in dict.fromkeys(name for part in parts for name in part.get("properties", {})):
        shapes = _distinct(part["properties"][name] for part in parts if name in part.get("properties", {}))
        shape = _any(shapes)
        properties[name] = _both(own[name], shape) if name in own else shape
    wanted = [set(part.get("required", ())) for part in parts]
    always = list(dict.fromkeys([*schema.get("required", ()), *sorted(set.intersection(*wanted))]))
    merged = {word: value for word, value in schema.items() if word not in ("anyOf", "required")}
    merged["properties"] = properties
    if always:
        merged["required"] = always
    if "additionalProperties" not in schema and all(part.get("additionalProperties") is False for part in parts):
        merged["additionalProperties"] = False
    sets = [" and ".join(sorted(one - set(always))) for one in wanted]
    if not any(sets):
        return merged
    return _described(merged, f"Give one of these sets: {'; '.join(one or 'nothing more' for one in sets)}.")


def _any(shapes: Sequence[Schema]) -> Schema:
    """Return the schema of values that fit one of these. Lists of texts are merged."""
    if len(shapes) == 1:
        return shapes[0]
    if all(shape.get("enum") for shape in shapes):
        return {**shapes[0], "enum": list(dict.fromkeys(value for shape in shapes for value in shape["enum"]))}
    return {"anyOf": list(shapes)}


def _distinct(shapes: Iterable[Schema]) -> list[Schema]:
    found: list[Schema] = []
    for shape in shapes:
        if shape not in found:
            found.append(shape)
    return found
