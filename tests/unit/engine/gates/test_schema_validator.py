"""Holding a value to a schema that somebody else wrote."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from brainq.contracts.call import ToolDenied
from brainq.contracts.status import Effect
from brainq.contracts.tool import ToolSpec
from brainq.engine.gates import schema_validator
from brainq.engine.gates.arguments import ToolArgValidator, ValidArguments
from brainq.engine.gates.schema_check import schema_problem
from brainq.engine.gates.schema_validator import SLICE_S, UNCHECKED, SchemaValidator
from tests.support.module_time import replace_time

DOUBLED = {f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(60)} | {"d60": {}}
NESTED: Any = json.loads("[" * 60 + "]" * 60)

STALLING = """
from brainq.engine.gates.answer_schema import read_answer
from brainq.engine.gates.schema_validator import SchemaValidator
for schema, text in (
    ({"pattern": "^(a+)+$"}, '"' + "a" * 60 + '!"'),
    ({"patternProperties": {"^(a|aa)+$": False}}, '{"' + "a" * 100 + '!": 1}'),
    ({"patternProperties": {"^(a|aa)+$": {}}, "additionalProperties": False}, '{"' + "a" * 100 + '!": 1}'),
    ({"propertyNames": {"pattern": "^(a|aa)+$"}}, '{"' + "a" * 100 + '!": 1}'),
    ({"$schema": "http://json-schema.org/draft-07/schema#", "pattern": "^(a+)+$", "items": {"$ref": "#"}},
     '["' + "a" * 60 + '!"]'),
):
    print(read_answer(schema, text)[1])
"""


def words(schema: dict[str, Any], value: Any, most_s: float = 0.05) -> list[tuple[str, str]]:
    return [(str(error.validator), error.message) for error in SchemaValidator(schema).errors(value, most_s)]


@pytest.mark.timeout(120)
def test_a_pattern_that_goes_back_for_ever_does_not_stop_the_process() -> None:
    ran = subprocess.run([sys.executable, "-c", STALLING], capture_output=True, text=True, timeout=100, check=True)
    assert ran.stdout.splitlines() == [
        '$: wants pattern "^(a+)+$"',
        "",
        f"$: Additional properties are not allowed ('{'a' * 100}!' was unexpected)",
        '$: wants pattern "^(a|aa)+$"',
        '$[0]: wants pattern "^(a+)+$"',
    ]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (
            {
                "unevaluatedProperties": False,
                "$ref": "#/$defs/d0",
                "$defs": {
                    f"d{at}": {"dependentSchemas": {key: {"$ref": f"#/$defs/d{at + 1}"} for key in "ab"}}
                    for at in range(60)
                }
                | {"d60": {}},
            },
            {"a": 1, "b": 1},
        ),
        ({"items": {"enum": [[0] * 300 + [at] for at in range(300)]}}, [[0] * 300 + [-1]] * 3_000),
    ],
)
def test_checks_that_multiply_are_not_made_to_their_end(schema: dict[str, Any], value: Any) -> None:
    assert not schema_problem(schema)
    assert words(schema, value) == [(UNCHECKED, "it takes too long to validate this by its schema")]
    assert words({"type": "integer"}, "x") == [("type", "'x' is not of type 'integer'")], "the next has its own time"


def deep(value: dict[str, Any], depth: int = 30) -> dict[str, Any]:
    for _ in range(depth):
        value = {**value, "child": value}
    return value


KINDS = {
    f"k{at}": {"properties": {"kind": {"const": at}, "child": {"$ref": "#"}}, "required": ["kind"]} for at in range(50)
}
CHOICES: dict[str, Any] = {"$defs": KINDS, "anyOf": [{"$ref": f"#/$defs/{name}"} for name in KINDS]}


@pytest.mark.parametrize(
    ("schema", "value", "found"),
    [
        ({"$defs": DOUBLED, "$ref": "#/$defs/d0"}, 1, ""),
        ({"anyOf": [{"items": {"$ref": "#"}, "maxItems": 0}] * 2}, NESTED, "anyOf"),
        (CHOICES, deep({"kind": 49}), ""),
        (CHOICES, deep({"kind": 99}), "anyOf"),
        ({**CHOICES, "anyOf": CHOICES["anyOf"] * 2}, deep({"kind": 99}, 10), "anyOf"),
    ],
)
def test_references_that_choose_between_one_another_do_not_multiply(
    monkeypatch: pytest.MonkeyPatch, schema: dict[str, Any], value: Any, found: str
) -> None:
    """How many checks are made stands for the time: 50 choices at each of 30 levels would be 50 ** 30."""
    looks: list[object] = []
    clock: Any = schema_validator._TIME_LIMIT  # pyright: ignore[reportPrivateUsage]

    def look(clock: object) -> None:
        looks.append(clock)

    monkeypatch.setattr(type(clock), "check", look)
    told = words(schema, value)
    assert [word for word, _ in told] == ([found] if found else [])
    assert len(looks) < 100_000


def test_a_choice_that_was_tried_before_is_still_explained() -> None:
    schema: dict[str, Any] = {
        "$defs": {"age": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
        "properties": {name: {"$ref": "#/$defs/age"} for name in "ab"},
        "additionalProperties": {"anyOf": [{"required": ["x"]}, CHOICES]},
    }
    spec = ToolSpec(name="look", parameters={**schema, "$defs": {**schema["$defs"], **KINDS}}, effect=Effect.READ_ONLY)
    judged = ToolArgValidator().judge(spec, {"a": "5", "b": "5"})
    assert isinstance(judged, ValidArguments)
    assert judged.arguments == {"a": 5, "b": 5}, "a text that stands twice, as one object, is mended twice"
    denied = ToolArgValidator().judge(spec, {"c": {"kind": 99}})
    assert isinstance(denied, ToolDenied)
    assert "$.c.kind: wants 0; $.c.kind: wants 1" in denied.message


def test_a_long_check_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    rests: list[float] = []
    replace_time(monkeypatch, schema_validator, sleep=rests.append)
    schema = {"items": {"items": {"type": "integer", "minimum": 0}}}
    assert words(schema, [[0] * 100] * 300, most_s=0.1) == [
        (UNCHECKED, "it takes too long to validate this by its schema")
    ]
    assert 1 <= len(rests) <= 0.1 / SLICE_S


def test_what_goes_round_in_circles_is_not_checked() -> None:
    assert words({"$ref": "#"}, 1) == [(UNCHECKED, "it is nested too deeply")]
    spec = ToolSpec(name="look", parameters={"$ref": "#"}, effect=Effect.NETWORK)
    denied = ToolArgValidator().judge(spec, {})
    assert isinstance(denied, ToolDenied)
    assert denied.message == (
        "The arguments of look were refused: it is nested too deeply. Correct them and call again."
    )


def test_a_reference_is_never_fetched() -> None:
    [(word, message)] = words({"$ref": "http://localhost:1/a.json"}, 1)
    assert word == UNCHECKED
    assert "refers to what is not in it" in message


def test_a_text_too_long_for_its_pattern_is_said_to_be_so_also_where_none_must_match() -> None:
    long = "a" * 3_000
    for schema in ({"pattern": "^.{0,1000}$"}, {"not": {"pattern": "^.{0,1000}$"}}):
        [(word, message)] = words(schema, long, most_s=3)
        assert word == UNCHECKED
        assert message.startswith("a text of 3,000 characters is too long for the pattern '^.{0,1000}$'")


@pytest.mark.parametrize("items", [[{"a": at} for at in range(30_000)], [[at] for at in range(30_000)], [1, True, "1"]])
def test_items_that_differ_are_unique_however_many(items: list[Any]) -> None:
    assert words({"uniqueItems": True}, items, most_s=30) == []
    assert words({"uniqueItems": True}, [*items, items[0]], most_s=30)[0][0] == "uniqueItems"


def test_errors_do_not_hold_the_value_as_often_as_there_are_errors() -> None:
    found = words({"allOf": [{"type": "integer"}] * 1_500}, "x" * 50_000, most_s=60)
    assert len(found) == 1_000
    assert max(len(message) for _, message in found) == 1_000


def test_a_draft_that_a_schema_names_does_not_change_how_it_is_read() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"child": {"$ref": "#"}, "name": {"pattern": "^(a+)+$"}},
    }
    assert not schema_problem(schema)
    assert words(schema, {"child": {"name": "a" * 60 + "!"}}, most_s=3)[0][0] == "pattern"


SCHEMAS: list[dict[str, Any]] = [
    {"$defs": {"a": {"type": "integer"}}, "additionalProperties": {"$ref": "#/$defs/a"}},
    {"additionalProperties": {"anyOf": [{"type": "string"}, {"items": {"$ref": "#/additionalProperties"}}]}},
    {
        "additionalProperties": {"oneOf": [{"type": "array", "items": {"$ref": "#/$defs/n"}}, {"$ref": "#/$defs/n"}]},
        "$defs": {"n": {"type": "integer", "maximum": 1}},
    },
    {"patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": False},
    {"patternProperties": {"^a": True}, "properties": {"b": {}}, "additionalProperties": {"type": "string"}},
    {"patternProperties": {"a$": {"type": "string"}, "^b": False}},
    {"propertyNames": {"pattern": "^[ab]+$"}},
    {"additionalProperties": {"pattern": "^a*$"}},
    {"additionalProperties": {"uniqueItems": True}},
]
_VALUES = st.recursive(
    st.booleans() | st.integers(0, 2) | st.floats(0, 2) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@given(st.sampled_from(SCHEMAS), st.dictionaries(st.text("ab", max_size=2), _VALUES, max_size=3))
def test_it_finds_what_the_library_finds(schema: dict[str, Any], value: dict[str, Any]) -> None:
    ours = SchemaValidator(schema).errors(value)
    stock = list(Draft202012Validator(schema).iter_errors(value))
    assert {(error.json_path, error.validator) for error in ours} == {
        (error.json_path, error.validator) for error in stock
    }


def test_arguments_are_told_what_they_were_told_before() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string", "pattern": "^/"}}}
    spec = ToolSpec(name="look", parameters=schema, effect=Effect.READ_ONLY)
    denied = ToolArgValidator().judge(spec, {"path": "a"})
    assert isinstance(denied, ToolDenied)
    assert '$.path: wants pattern "^/"' in denied.message
    assert isinstance(ToolArgValidator().judge(spec, {"path": "/a"}), ValidArguments)
