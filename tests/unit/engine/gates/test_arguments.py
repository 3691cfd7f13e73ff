"""Holding arguments to a schema, and mending them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from brainq.contracts.call import ToolDenied
from brainq.contracts.status import Effect
from brainq.contracts.tool import ToolSpec
from brainq.engine.gates.arguments import MAX_ARGUMENTS_CHARS, ToolArgValidator, ValidArguments, simple_schema
from brainq.errors import ToolSchemaError

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["path"],
    "properties": {
        "path": {"type": "string"},
        "n": {"type": "integer", "minimum": 0},
        "ratio": {"type": "number"},
        "deep": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "integer"}},
        "filter": {"type": "object", "properties": {"k": {"type": "boolean"}}},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "mode": {"enum": ["a", "b"]},
        "any": {},
    },
}


def spec(effect: Effect = Effect.READ_ONLY, schema: dict[str, Any] = SCHEMA) -> ToolSpec:
    return ToolSpec(name="look", parameters=schema, effect=effect)


def judge(arguments: dict[str, Any] | str, effect: Effect = Effect.READ_ONLY) -> ValidArguments | ToolDenied:
    return ToolArgValidator().judge(spec(effect), arguments)


@pytest.mark.parametrize(
    ("given", "final", "repairs"),
    [
        ({"path": "a"}, {"path": "a"}, 0),
        ('{"path":"a"}', {"path": "a"}, 0),
        ({"path": "a", "n": 3.0}, {"path": "a", "n": 3.0}, 0),
        ({"path": "a", "n": "3"}, {"path": "a", "n": 3}, 1),
        ({"path": "a", "n": " 3 "}, {"path": "a", "n": 3}, 1),
        ({"path": "a", "n": "3.0"}, {"path": "a", "n": 3.0}, 1),
        ({"path": "a", "ratio": "2.5"}, {"path": "a", "ratio": 2.5}, 1),
        ({"path": "a", "ratio": "2e1"}, {"path": "a", "ratio": 20}, 1),
        ({"path": "a", "deep": "True"}, {"path": "a", "deep": True}, 1),
        ({"path": "a", "maybe": "7"}, {"path": "a", "maybe": 7}, 1),
        ({"path": "a", "maybe": "null"}, {"path": "a", "maybe": None}, 1),
        ({"path": 3}, {"path": "3"}, 1),
        ({"path": True}, {"path": "true"}, 1),
        ({"path": "a", "tags": "[1, 2]"}, {"path": "a", "tags": [1, 2]}, 1),
        ({"path": "a", "filter": '{"k": "true"}'}, {"path": "a", "filter": {"k": True}}, 2),
        ({"path": "a", "tags": '["1"]', "odd": 1}, {"path": "a", "tags": [1]}, 3),
        ({"path": "a", "odd": 1}, {"path": "a"}, 1),
        ("{'path': 'a', }", {"path": "a"}, 1),
        ('{"path": "a", "n": 3', {"path": "a", "n": 3}, 1),
        ('```json\n{"path": "a"}\n```', {"path": "a"}, 1),
        ({"path": "a", "any": {"deep": [1]}}, {"path": "a", "any": {"deep": [1]}}, 0),
        ({"path": "3"}, {"path": "3"}, 0),
    ],
)
def test_arguments_are_mended(given: Any, final: dict[str, Any], repairs: int) -> None:
    before = json.dumps(given)
    found = judge(given)

    assert isinstance(found, ValidArguments), found
    assert (found.arguments, found.repairs) == (final, repairs)
    assert json.dumps(given) == before, "what was given must stay as it was"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, ["$", "'path' is a required property"]),
        ("", ["'path' is a required property"]),
        ({"path": ["a"]}, ["$.path: wants string, got array"]),
        ({"path": "a", "n": "x"}, ["$.n: wants integer, got string"]),
        ({"path": "a", "n": "1e999"}, ["$.n"]),
        ({"path": "a", "n": "1.5"}, ["$.n"]),
        ({"path": "a", "n": "007"}, ["$.n"]),
        ({"path": "a", "n": "1_000"}, ["$.n"]),
        ({"path": "a", "n": "12345678901234567890123.0"}, ["$.n"]),
        ({"path": "a", "ratio": "+2"}, ["$.ratio"]),
        ({"path": 1.5}, ["$.path: wants string, got number"]),
        ({"path": "a", "maybe": ""}, ["$.maybe"]),
        ({"path": "a", "maybe": "none"}, ["$.maybe"]),
        ({"path": "a", "n": True}, ["$.n: wants integer, got boolean"]),
        ({"path": "a", "n": -1}, ["$.n: wants minimum 0"]),
        ({"path": "a", "deep": "yes"}, ["$.deep: wants boolean, got string"]),
        ({"path": "a", "tags": [1, "x"]}, ["$.tags[1]"]),
        ({"path": "a", "mode": "c"}, ['$.mode: wants one of ["a", "b"]']),
        ({"path": "a", "maybe": []}, ["$.maybe: wants integer", "$.maybe: wants null"]),
        ({"path": "a", "ratio": float("nan")}, ["NaN"]),
        ({"path": "a", "any": [float("inf")]}, ["Infinity"]),
        ('{"path": "a", "ratio": NaN}', ["refused"]),
        ("[1]", ["JSON object, not array"]),
        ('"path"', ["JSON object, not string"]),
        ("just words", ["not JSON"]),
        ({"path": "x" * MAX_ARGUMENTS_CHARS}, [str(MAX_ARGUMENTS_CHARS)]),
        ("x" * (MAX_ARGUMENTS_CHARS + 1), [str(MAX_ARGUMENTS_CHARS)]),
    ],
)
def test_a_denial_says_where_and_what_is_wanted(given: Any, words: list[str]) -> None:
    found = judge(given)

    assert isinstance(found, ToolDenied), found
    assert found.reason == "validation"
    for word in ["look", *words]:
        assert word in found.message


@pytest.mark.parametrize("effect", [Effect.LOCAL_WRITE, Effect.NETWORK, Effect.DESTRUCTIVE])
def test_a_write_never_loses_an_unknown_property(effect: Effect) -> None:
    found = judge({"path": "a", "dry_run": True}, effect)

    assert isinstance(found, ToolDenied)
    assert "dry_run" in found.message


@pytest.mark.parametrize("effect", [Effect.LOCAL_WRITE, Effect.NETWORK, Effect.DESTRUCTIVE])
@pytest.mark.parametrize(
    "text",
    [
        '{"path": "pay.csv", "any": "alice,100\\nbob,10',
        '{"path": "pay.csv", "n": 1',
        "{'path': 'a'}",
        '```json\n{"path": "a"}\n```',
    ],
)
def test_the_arguments_of_a_write_are_never_mended_as_text(effect: Effect, text: str) -> None:
    found = judge(text, effect)

    assert isinstance(found, ToolDenied)
    assert "they are not JSON (" in found.message
    assert "line 1 column" in found.message, "the model is told where"
    assert isinstance(judge(text), ValidArguments), "those of a read are"


NOTHING_NEEDED: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}}


@pytest.mark.parametrize("effect", [Effect.READ_ONLY, Effect.NETWORK])
@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("", {}),
        (" \n", {}),
        ("null", {}),
        ("{}", {}),
        ("{}{}", {}),
        ('{}{"path": "a"}', {"path": "a"}),
        (' { }\n{} null {"path": "a"} ', {"path": "a"}),
        ('{"path": "a"}{"path":"a"}', {"path": "a"}),
        ('{"path": "}{"}', {"path": "}{"}),
    ],
)
def test_texts_that_stand_for_an_object_do_so_for_every_effect(
    text: str, arguments: dict[str, Any], effect: Effect
) -> None:
    found = ToolArgValidator().judge(spec(effect, NOTHING_NEEDED), text)
    assert isinstance(found, ValidArguments)
    assert (found.arguments, found.repairs) == (arguments, 0)
    needed = judge(text, effect)
    assert isinstance(needed, ValidArguments if arguments else ToolDenied)
    if isinstance(needed, ToolDenied):
        assert "'path' is a required property" in needed.message


@pytest.mark.parametrize("effect", [Effect.READ_ONLY, Effect.NETWORK])
@pytest.mark.parametrize(
    "text",
    [
        '{"path": "a"}{"path": "b"}',
        '{"path": "a"}{}',
        '{}{"path": "a"} {"path": "b"}',
        '{"path": "a"}{"path": "b',
        '{"path": "a"}, {"path": "b"}',
        "{'path': 'a'}{'path': 'b'}",
        'So: {"path": "a"} and {"path": "b"}',
        '{"path": 1}{"path": true}',
        '{"path": "a", "n": 1}{"path": "a", "n": 1.0}',
    ],
)
def test_two_objects_that_differ_are_refused_for_every_effect(text: str, effect: Effect) -> None:
    found = judge(text, effect)
    assert isinstance(found, ToolDenied)
    assert effect.is_read is False or "two JSON objects that differ" in found.message


@pytest.mark.parametrize("effect", [Effect.READ_ONLY, Effect.NETWORK])
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"path": ' + "[" * 5000 + "]" * 5000 + "}", "nested deeper than 64 levels"),
        ("[" * 5000 + "]" * 5000, "nested deeper than 64 levels"),
        ('{"n": ' + "7" * 5000 + "}", "a number of more than 4300 digits; give it as text"),
        ('{"n": NaN}', "NaN is not JSON"),
        ('{"path": "a", "path": "b"}', "'path' twice, with different values"),
        ('{"path": "a", "any": {"k": 1, "k": true}}', "'k' twice, with different values"),
        ("[1]", "must be a JSON object, not array"),
        ('"null"', "must be a JSON object, not string"),
    ],
)
def test_what_cannot_be_read_is_said_to_be_what_it_is(text: str, why: str, effect: Effect) -> None:
    found = judge(text, effect)
    if effect.is_read and "NaN" in text:
        return  # mended
    assert isinstance(found, ToolDenied)
    assert why in found.message


def test_a_value_of_a_writes_becomes_another_type_where_nothing_is_lost() -> None:
    found = judge({"path": "a", "n": "5", "tags": "[1]"}, Effect.DESTRUCTIVE)

    assert isinstance(found, ValidArguments)
    assert found.arguments == {"path": "a", "n": 5, "tags": [1]}


def nested(levels: int, wrap: Any) -> dict[str, Any]:
    value: Any = 1
    for _ in range(levels - 1):
        value = wrap(value)
    return {"path": "a", "any": value}


def in_list(value: Any) -> list[Any]:
    return [value]


def in_object(value: Any) -> dict[str, Any]:
    return {"k": value}


@pytest.mark.parametrize("wrap", [in_list, in_object])
def test_depth_is_bounded(wrap: Any) -> None:
    assert isinstance(judge(nested(64, wrap)), ValidArguments)
    for levels in (65, 500, 5_000):
        found = judge(nested(levels, wrap))
        assert isinstance(found, ToolDenied)
        assert "64" in found.message
    assert isinstance(judge('{"path":' + "[" * 100_000 + "]" * 100_000 + "}"), ToolDenied)


def test_a_wide_but_flat_value_is_not_deep() -> None:
    assert isinstance(judge({"path": "a", "any": [[i] for i in range(200)]}), ValidArguments)


def test_at_most_five_errors_are_listed() -> None:
    found = judge({"path": "a", "tags": ["x"] * 9})

    assert isinstance(found, ToolDenied)
    assert found.message.count("wants") == 5
    assert "and 4 more" in found.message


def test_a_broken_schema_names_its_tool() -> None:
    broken = spec(schema={"type": "object", "properties": {"a": {"type": "nonsense"}}})
    with pytest.raises(ToolSchemaError, match="look"):
        ToolArgValidator().judge(broken, {"a": 1})


def test_a_schema_is_compiled_anew_when_the_spec_changes() -> None:
    validator = ToolArgValidator()
    assert isinstance(validator.judge(spec(), {"path": "a"}), ValidArguments)
    other = spec(schema={"type": "object", "required": ["url"]})
    assert isinstance(validator.judge(other, {"path": "a"}), ToolDenied)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=3,
)
simple = json_values | st.integers(0, 9) | st.text(max_size=2)


@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"], "odd"]), simple, max_size=4))
def test_the_quick_check_never_says_yes_to_what_the_full_one_refuses(arguments: dict[str, Any]) -> None:
    quick = simple_schema(SCHEMA)
    assert quick is not None
    if quick.fits(arguments):
        assert Draft202012Validator(SCHEMA).is_valid(arguments)


@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"], "odd"]), simple, max_size=4), st.sampled_from(Effect))
def test_what_is_allowed_is_always_valid(arguments: dict[str, Any], effect: Effect) -> None:
    found = judge(arguments, effect)
    if isinstance(found, ValidArguments):
        assert Draft202012Validator(SCHEMA).is_valid(found.arguments)
    else:
        assert not Draft202012Validator(SCHEMA).is_valid(arguments)
