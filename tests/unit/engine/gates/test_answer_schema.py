"""Reading an answer by its schema."""

from __future__ import annotations

from typing import Any

import pytest

from brainq.engine.gates.answer_schema import MAX_SCHEMA_CHARS, check_answer_schema, read_answer
from brainq.errors import InvalidInput


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
