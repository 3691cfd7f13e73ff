"""The schema of a tool as model services take it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from brainq.adapters.models.tool_schema import sent_schema
from brainq.engine.gates.schema_validator import SchemaValidator

TEXT = {"type": "string"}


def thing(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("original", "sent"),
    [
        ({}, thing()),
        ({"type": "object"}, thing()),
        ({"properties": {"a": TEXT}}, thing(a=TEXT)),
        ({"type": "object", "required": ["a"]}, {**thing(a={}), "required": ["a"]}),
        ({**thing(a=TEXT), "required": []}, thing(a=TEXT)),
        (thing(a={"type": "array"}), thing(a={"type": "array", "items": {}})),
        (thing(a={"type": "array", "items": True}), thing(a={"type": "array", "items": {}})),
        (
            thing(a={"type": "array", "prefixItems": [TEXT, {"type": "null"}], "items": TEXT}),
            thing(a={"type": "array", "items": {"anyOf": [TEXT, {"type": "null"}]}}),
        ),
        (thing(a=True, b=False), thing(a={})),
        (thing(a={"type": ["string", "null"]}), thing(a={"anyOf": [TEXT, {"type": "null"}]})),
        (thing(a={"type": ["string"]}), thing(a=TEXT)),
        (
            thing(a={"type": ["string", "null"], "enum": ["x", None], "minLength": 1, "description": "A."}),
            thing(a={"anyOf": [{**TEXT, "minLength": 1, "enum": ["x"]}, {"type": "null"}], "description": "A."}),
        ),
        (thing(a={"const": "x"}), thing(a={"enum": ["x"]})),
        (thing(a={"const": 1}), thing(a={"description": "One of 1."})),
        (
            thing(a={"type": "integer", "enum": [1, 2], "description": "How many."}),
            thing(a={"type": "integer", "description": "How many. One of 1, 2."}),
        ),
        (thing(a={"type": "string", "format": "uri"}), thing(a={**TEXT, "description": "Format: uri."})),
        (thing(a={"type": "string", "format": "date-time"}), thing(a={**TEXT, "format": "date-time"})),
        (
            thing(a={"type": "number", "exclusiveMinimum": 0}),
            thing(a={"type": "number", "description": "It must be above 0."}),
        ),
        (thing(a={"oneOf": [TEXT, {"type": "null"}]}), thing(a={"anyOf": [TEXT, {"type": "null"}]})),
        (thing(a={"allOf": [TEXT], "description": "A."}), thing(a={**TEXT, "description": "A."})),
        (thing(a={"not": TEXT, "type": "integer"}), thing(a={"type": "integer"})),
        ({**thing(**{"$ref": TEXT, "title": TEXT}), "$schema": "x"}, thing(**{"$ref": TEXT, "title": TEXT})),
        (
            {**thing(a={"$ref": "#/$defs/x y", "description": "A."}), "$defs": {"x y": TEXT}},
            thing(a={**TEXT, "description": "A."}),
        ),
        ({"$ref": "#/$defs/args", "$defs": {"args": thing(a=TEXT)}}, thing(a=TEXT)),
        (
            {**thing(a={"$ref": "#/$defs/node"}), "$defs": {"node": thing(next={"$ref": "#/$defs/node"})}},
            thing(a=thing(next={"type": "object"})),
        ),
        (
            {**thing(a=TEXT, b=TEXT), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {**thing(a=TEXT, b=TEXT), "description": "Give one of these sets: a; b."},
        ),
        (
            {
                "oneOf": [
                    {**thing(k={"const": "x"}), "required": ["k"]},
                    {**thing(k={"const": "y"}, z=TEXT), "required": ["k", "z"]},
                ]
            },
            {
                **thing(k={"enum": ["x", "y"]}, z=TEXT),
                "required": ["k"],
                "description": "Give one of these sets: nothing more; z.",
            },
        ),
        (
            {"type": "object", "allOf": [thing(a=TEXT), {**thing(b=TEXT), "required": ["b"]}]},
            {**thing(a=TEXT, b=TEXT), "required": ["b"]},
        ),
        (
            {**thing(a=TEXT), "if": {"required": ["a"]}, "then": thing(b=TEXT), "else": {"required": ["c"]}},
            thing(a=TEXT, b=TEXT),
        ),
    ],
)
def test_what_a_service_would_refuse_is_rewritten(original: dict[str, Any], sent: dict[str, Any]) -> None:
    before = json.dumps(original)
    found = sent_schema(original).schema
    assert found == sent
    assert json.dumps(original) == before
    assert sent_schema(found).schema == found
    assert not list(refusals(found))


def test_what_every_service_takes_is_sent_as_it_is() -> None:
    schema = {
        **thing(
            a={"type": "string", "description": "A.", "pattern": "^x$", "minLength": 1},
            b={"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 9}},
            c={"anyOf": [TEXT, {"type": "null"}], "default": None},
            d={"type": "object", "additionalProperties": TEXT},
            e={"enum": ["x", "y"], "type": "string"},
        ),
        "required": ["a"],
        "additionalProperties": False,
    }
    sent = sent_schema(schema)
    assert sent.schema == schema
    assert sent.rewritten == ()


def test_what_was_rewritten_is_named() -> None:
    assert sent_schema({"type": "object"}).rewritten == ("no properties",)
    found = sent_schema({**thing(a={"$ref": "#/$defs/x"}), "$defs": {"x": {"type": ["string", "null"]}}}).rewritten
    assert found == ("$ref", "a list of types")


def test_references_that_multiply_or_nest_without_end_are_cut() -> None:
    defs: dict[str, Any] = {
        f"d{n}": thing(a={"$ref": f"#/$defs/d{n + 1}"}, b={"$ref": f"#/$defs/d{n + 1}"}) for n in range(40)
    }
    sent = sent_schema({**thing(a={"$ref": "#/$defs/d0"}), "$defs": {**defs, "d40": TEXT}})
    assert len(json.dumps(sent.schema)) < 500_000
    chain: dict[str, Any] = {f"c{n}": {"$ref": f"#/$defs/c{n + 1}"} for n in range(2_000)}
    assert (
        sent_schema({**thing(a={"$ref": "#/$defs/c0"}), "$defs": {**chain, "c2000": TEXT}}).schema["type"] == "object"
    )
    deep: Any = TEXT
    for _ in range(900):
        deep = {"type": "array", "items": deep}
    assert not list(refusals(sent_schema(thing(a=deep)).schema))


VALUES: list[Any] = [
    None,
    True,
    0,
    1,
    2.5,
    "",
    "x",
    "yy",
    [],
    ["x"],
    [1, "x"],
    {},
    {"a": "x"},
    {"a": 1, "b": {"a": None}},
]


def drawn(rng: random.Random, depth: int) -> Any:
    """A random schema."""
    if depth == 0 or rng.random() < 0.1:
        return rng.choice([True, {}, TEXT, {"type": "integer"}, {"const": rng.choice(VALUES)}, {"$ref": "#/$defs/d"}])
    inner = lambda: drawn(rng, depth - 1)  # noqa: E731
    words: dict[str, Any] = {
        "type": rng.choice(["string", "object", "array", "integer", ["string", "null"], ["object", "array", "number"]]),
        "enum": rng.sample(VALUES, 3),
        "exclusiveMinimum": 0,
        "minLength": 1,
        "format": "uri",
        "items": inner(),
        "prefixItems": [inner()],
        "properties": {"a": inner(), "b": inner()},
        "required": rng.choice([[], ["a"], ["c"]]),
        "additionalProperties": rng.choice([True, False, inner()]),
        "anyOf": [inner(), inner()],
        "oneOf": [inner(), inner()],
        "allOf": [inner(), inner()],
        "not": inner(),
        "if": inner(),
        "then": inner(),
        "unevaluatedProperties": False,
        "$ref": rng.choice(["#/$defs/d", "#", "#/properties/a"]),
    }
    return {word: words[word] for word in rng.sample(list(words), rng.choice([1, 2, 3]))}


UNKNOWN = (
    "$ref",
    "$defs",
    "definitions",
    "$schema",
    "const",
    "oneOf",
    "allOf",
    "prefixItems",
    "exclusiveMinimum",
    "not",
)


def refusals(schema: Any, *, is_top: bool = True) -> Iterator[str]:
    """What OpenAI, Anthropic or Gemini would say."""
    if not isinstance(schema, dict):
        yield f"{schema} is not an object"
        return
    if is_top and schema.get("type") != "object":
        yield "schema must have type 'object'"
    if is_top and "properties" not in schema:
        yield "object schema missing properties"
    yield from (
        f"{word} at the top level" for word in ("oneOf", "anyOf", "allOf", "enum", "not") if is_top and word in schema
    )
    if schema.get("type") == "array" and "items" not in schema:
        yield "array schema missing items"
    if isinstance(schema.get("type", ""), list):
        yield "type is a list"
    if any(not isinstance(value, str) for value in schema.get("enum", ())):
        yield "enum of other values"
    for word in (
        "$ref",
        "$defs",
        "definitions",
        "$schema",
        "const",
        "oneOf",
        "allOf",
        "prefixItems",
        "exclusiveMinimum",
        "not",
        "if",
    ):
        if word in schema:
            yield f"unknown name {word}"
    for inner in schema.get("properties", {}).values():
        yield from refusals(inner, is_top=False)
    for inner in [*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else [])]:
        yield from refusals(inner, is_top=False)


@pytest.mark.parametrize("seed", range(4))
def test_no_service_refuses_what_is_sent_and_it_refuses_no_valid_argument(seed: int) -> None:
    rng = random.Random(seed)
    fitted = 0
    for _ in range(100):
        schema = {**thing(a=drawn(rng, 3), b=drawn(rng, 2)), "$defs": {"d": drawn(rng, 2)}}
        sent = sent_schema(schema).schema
        assert not list(refusals(sent)), (schema, sent)
        original, now = SchemaValidator(schema), SchemaValidator(sent)
        for value in VALUES:
            arguments = {"a": value, "b": value}
            if not original.errors(arguments):
                fitted += 1
                assert not now.errors(arguments), (schema, sent, value)
    assert fitted > 20


@pytest.mark.parametrize("seed", range(2))
def test_no_service_refuses_what_comes_of_words_at_the_top(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        top = drawn(rng, 3)
        schema = {**(top if isinstance(top, dict) else {}), "type": "object", "$defs": {"d": drawn(rng, 2)}}
        assert not list(refusals(sent_schema(schema).schema)), schema
