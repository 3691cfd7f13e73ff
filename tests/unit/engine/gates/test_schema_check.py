"""Schemas from outside, and the canonical form of values."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq.engine.gates.answer_schema import MAX_SCHEMA_CHARS, check_answer_schema, read_answer
from brainq.engine.gates.canonical import canonical_json, fingerprint
from brainq.engine.gates.schema_check import (
    MAX_SUBSCHEMAS,
    MAX_UNEVALUATED,
    PatternSizes,
    UnresolvedReference,
    schema_problem,
)
from brainq.errors import InvalidInput
from tests.support.hashes import args_hash

# Schemas from outside, looked at where they enter.


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$id": "urn:a",
            "$ref": "#/definitions/a",
            "definitions": {"a": {}},
        },
        {"properties": {"$ref": {"type": "string"}, "$id": {}, "pattern": {"pattern": "a"}, "default": {"$ref": "#"}}},
        {"default": {"pattern": "*.py", "$schema": "x"}, "examples": [{"$id": "y"}], "const": {"$ref": "nowhere"}},
        {"components": {"a": {"items": {"$ref": "#"}}}, "$ref": "#/components/a"},
    ],
)
def test_a_schema_that_can_be_used_has_no_problem(schema: dict[str, Any]) -> None:
    assert schema_problem(schema) == ""


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"properties": {"a": {"type": "no such"}}}, "'no such' is not valid"),
        ({"properties": {"a": {"pattern": "("}}}, "is not in the syntax of ECMA 262"),
        ({"properties": {"a": {"pattern": "("}}}, "at $.properties.a.pattern"),
        ({"patternProperties": {"a{1000}{1000}(": {}}}, "is not in the syntax of ECMA 262"),
        ({"pattern": "a{99999999999999999999}"}, "is not in the syntax of ECMA 262"),
        ({"pattern": "(" * 5_000}, "is not in the syntax of ECMA 262"),
        ({"$ref": "#/const", "const": {"type": 5}}, "'#/const' in it leads to what is not a schema"),
        ({"$ref": "#/const", "const": {"$ref": "#/enum/0"}, "enum": ["no schema"]}, "'#/enum/0' in it leads"),
        ({"$ref": "#/const", "const": {"pattern": "("}}, "is not in the syntax of ECMA 262"),
        ({"$ref": "#/title/0", "title": "abc"}, "'#/title/0' in it leads"),
        ({"properties": {"const": {"$schema": "http://json-schema.org/draft-07/schema#"}}}, "a $schema of its own"),
        ({"$defs": {"a": {"$id": "urn:b"}}}, "a $id of its own"),
        ({"items": {"$dynamicRef": "#meta"}}, "$dynamicRef is not supported; use $ref"),
        ({"patternProperties": {"a": {}}, "unevaluatedProperties": False}, "use additionalProperties"),
        ({"allOf": [True] * MAX_SUBSCHEMAS}, "it has 5,001 parts; at most 5,000"),
        (
            {
                "allOf": [{"$ref": f"#/x/{at}"} for at in range(2)],
                "x": [{"const": [True] * 2_499}, {"enum": [True] * 2_480}],
            },
            "",
        ),
    ],
)
def test_what_is_wrong_with_a_schema_is_said(schema: dict[str, Any], words: str) -> None:
    found = schema_problem(schema)
    assert words in found
    assert bool(words) is bool(found)


@pytest.mark.parametrize(
    "reference",
    ["#/$defs/no", "https://json-schema.org/draft/2020-12/schema", "file:///etc/passwd", "#/allOf/x", "#/allOf/7"],
)
def test_a_reference_that_leads_out_of_the_schema_is_lost(reference: str) -> None:
    with pytest.raises(UnresolvedReference, match=r"#|:"):
        schema_problem({"allOf": [{"$ref": reference}]})


def unevaluated(depth: int, word: str, under: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"properties": {"a": {}}}
    for _ in range(depth):
        schema = {under: schema if under == "not" else [schema], word: False}
    return schema


@pytest.mark.parametrize("word", ["unevaluatedProperties", "unevaluatedItems"])
@pytest.mark.parametrize("under", ["allOf", "anyOf", "oneOf", "not"])
def test_unevaluated_within_unevaluated_is_bounded(word: str, under: str) -> None:
    """The time to look for what is unevaluated grows with each one within another by a factor."""
    assert schema_problem(unevaluated(MAX_UNEVALUATED, word, under)) == ""
    assert "keep the outermost" in schema_problem(unevaluated(MAX_UNEVALUATED + 1, word, under))


def test_unevaluated_is_found_through_references_and_not_in_parts_of_the_value() -> None:
    chain: dict[str, Any] = {
        f"d{at}": {"$ref": f"#/$defs/d{at + 1}", "unevaluatedProperties": False} for at in range(MAX_UNEVALUATED)
    }
    last = f"d{MAX_UNEVALUATED}"
    assert schema_problem({"$defs": {**chain, last: {}}, "$ref": "#/$defs/d0"}) == ""
    found = schema_problem({"$defs": {**chain, last: {"unevaluatedProperties": False}}, "$ref": "#/$defs/d0"})
    assert "keep the outermost" in found
    below: dict[str, Any] = {}
    for _ in range(10):
        below = {"properties": {"a": below}, "unevaluatedProperties": False}
    assert schema_problem(below) == ""
    itself = {"$defs": {"n": {"allOf": [{"$ref": "#/$defs/n"}], "unevaluatedItems": False}}, "$ref": "#/$defs/n"}
    assert "keep the outermost" in schema_problem(itself)


def test_places_that_hold_one_another_are_not_checked_again_and_again() -> None:
    inner: dict[str, Any] = {"allOf": [True] * 2_000}
    for _ in range(4):
        inner = {"allOf": [inner]}
    pointers = ["#/x" + "/allOf/0" * depth for depth in range(4, -1, -1)]
    assert "refers to too many places outside of $defs" in schema_problem(
        {"x": inner, "anyOf": [{"$ref": pointer} for pointer in reversed(pointers)]}
    )


def test_the_patterns_of_a_schema_are_bounded_together() -> None:
    large = [f"[a-z]{{1,{3_000 + more}}}" for more in range(40)]
    properties = {pattern: {"pattern": pattern} for pattern in large}
    problem = schema_problem({"properties": properties})
    assert "patterns up to here are too large together; write fewer" in problem
    assert "at $.properties" in problem
    assert schema_problem({"properties": {str(at): {"pattern": large[0]} for at in range(40)}}) == ""
    assert schema_problem({"patternProperties": {f"^[a-z]{{1,9}}_{name}$": True for name in range(1_000)}}) == ""


def test_the_patterns_of_schemas_that_come_together_are_bounded_together() -> None:
    sizes = PatternSizes()
    problems = [schema_problem({"pattern": f"[a-z]{{1,{3_000 + more}}}"}, sizes) for more in range(100)]
    assert problems[0] == ""
    assert "are too large together" in problems[-1]


# Equal arguments have one text and one fingerprint.


numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(st.text(), values, max_size=5)


def shuffled(value: Any, draw: random.Random) -> Any:
    """The same value, its keys in another order and its whole numbers in another type."""
    match value:
        case dict():
            items = [(key, shuffled(item, draw)) for key, item in value.items()]
            draw.shuffle(items)
            return dict(items)
        case list():
            return [shuffled(item, draw) for item in value]
        case bool():
            return value
        case int() if abs(value) < 2**53:
            return float(value)
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


@given(objects, st.randoms(use_true_random=False))
def test_key_order_and_number_type_do_not_matter(arguments: dict[str, Any], draw: random.Random) -> None:
    other = shuffled(arguments, draw)

    assert canonical_json(other) == canonical_json(arguments)
    assert fingerprint("t", other) == fingerprint("t", arguments)
    assert args_hash(other) == args_hash(arguments)


@given(objects)
def test_canonical_json_says_the_same_and_stays(arguments: dict[str, Any]) -> None:
    text = canonical_json(arguments)

    assert json.loads(text) == arguments
    assert canonical_json(json.loads(text)) == text


@given(objects, objects)
def test_different_arguments_have_different_fingerprints(one: dict[str, Any], two: dict[str, Any]) -> None:
    same = canonical_json(one) == canonical_json(two)
    assert (fingerprint("t", one) == fingerprint("t", two)) is same


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"a": 1}, {"a": True}),
        ({"a": 0}, {"a": None}),
        ({"a": "1"}, {"a": 1}),
        ({}, {"a": None}),
        ({"a": []}, {"a": {}}),
    ],
)
def test_what_only_looks_alike_differs(one: dict[str, Any], two: dict[str, Any]) -> None:
    assert args_hash(one) != args_hash(two)


def test_the_text_and_the_hashes_are_fixed() -> None:
    # Fingerprints are compared with those of earlier workers: a change here is a change of format.
    arguments = {"b": [1.0, 2.5, -0.0, "\u00e9\ud800"], "a": {"y": 1e16, "x": None}}

    assert canonical_json(arguments) == ('{"a":{"x":null,"y":10000000000000000},"b":[1,2.5,0,"\\u00e9\\ud800"]}')
    assert args_hash({"a": 1}) == "015abd7f5cc57a2dd94b7590f04ad808"
    assert len(fingerprint("t", {})) == 32
    assert fingerprint("t", {}) != fingerprint("u", {})


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_json_is_refused(bad: float) -> None:
    with pytest.raises(ValueError):
        canonical_json({"a": bad})


# Reading an answer by its schema.


@pytest.mark.parametrize(
    ("schema", "text"), [({"type": "array", "items": {"$ref": "#"}}, "[" * 900 + "]" * 900), ({"$ref": "#"}, "1")]
)
def test_an_answer_that_cannot_be_checked_to_its_end_does_not_fit(schema: dict[str, Any], text: str) -> None:
    assert read_answer(schema, text) == (None, "it is nested too deeply")


def test_a_number_beyond_all_numbers_does_not_fit() -> None:
    assert read_answer({}, '{"a": 1e999}') == (None, "it is not JSON (1e999 is too large a number)")


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"properties": {"a": {"pattern": "(?P=a)"}}}, r"must be a JSON schema: .*syntax of ECMA 262.*a\.pattern"),
        ({"description": "x" * MAX_SCHEMA_CHARS}, "is 100,019 characters, .* make it 100,000 at most"),
        ({"$ref": "https://example.com/a.json"}, "refers to 'https://example.com/a.json'"),
        ({"items": {"$id": "urn:a"}}, "a \\$id of its own; take it out"),
    ],
)
def test_a_schema_that_no_answer_can_be_held_to_is_refused(schema: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as refused:
        check_answer_schema("output_schema", schema)
    assert refused.value.field == "output_schema"


def test_an_answer_in_a_code_fence_is_read() -> None:
    assert read_answer({"type": "object"}, '```json\n{"a": 1}\n```') == ({"a": 1}, "")
