"""Reading an answer by its schema."""

from __future__ import annotations

from typing import Any

import pytest

from brainq.tools.output import read_output


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "array", "items": {"$ref": "#"}}, "[" * 900 + "]" * 900),
        ({"$ref": "#"}, "1"),
    ],
)
def test_an_answer_that_cannot_be_checked_to_its_end_does_not_fit(schema: dict[str, Any], text: str) -> None:
    assert read_output(schema, text) == (None, "it is nested too deeply")


def test_an_answer_in_a_code_fence_is_read() -> None:
    assert read_output({"type": "object"}, '```json\n{"a": 1}\n```') == ({"a": 1}, "")
