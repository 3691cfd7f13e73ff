"""What a model reads of a result."""

from __future__ import annotations

from typing import Any

import pytest

from brainq.tools.mcp.result import read_result
from brainq.tools.mcp.session import LONGEST_WAIT_S, wait_s


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


@pytest.mark.parametrize(
    ("result", "read"),
    [
        ({"content": []}, ""),
        ({"content": [text("a"), text("b")]}, "a\nb"),
        ({"content": [text("12")], "structuredContent": {"result": "12"}}, "12"),
        ({"content": [text("12")], "structuredContent": {"result": 12}}, {"result": 12}),
        ({"content": [text('{"a": 1}')], "structuredContent": {"a": 1}}, {"a": 1}),
        ({"content": [], "structuredContent": {"a": 1}}, {"a": 1}),
        (
            {"content": [text("one apple")], "structuredContent": {"a": 1}},
            {"text": "one apple", "structured": {"a": 1}},
        ),
        (
            {"content": [text("see"), {"type": "image", "mimeType": "image/png", "data": "QUJDRA=="}]},
            "see\n[image: image/png, 4 bytes]",
        ),
        ({"content": [{"type": "audio", "data": ""}]}, "[audio: of an unknown type, 0 bytes]"),
        (
            {
                "content": [
                    {
                        "type": "resource",
                        "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "hi"},
                    }
                ]
            },
            "[resource: file:///a, text/plain]\nhi",
        ),
        (
            {"content": [{"type": "resource", "resource": {"uri": "file:///a", "blob": "QUJD"}}]},
            "[resource: file:///a, of an unknown type, 3 bytes]",
        ),
        (
            {"content": [{"type": "resource_link", "uri": "file:///a", "name": "a", "size": 1200}]},
            "[link: a, file:///a, 1,200 bytes]",
        ),
        ({"content": [{"type": "hologram"}]}, "[content of type 'hologram']"),
    ],
)
def test_a_result_is_text_or_what_was_structured(result: dict[str, Any], read: Any) -> None:
    assert read_result(result) == read


def test_a_server_that_fails_again_and_again_is_tried_less_and_less() -> None:
    waits = [wait_s(failures) for failures in range(8)]
    assert waits == [0, 0, 0, 0.5, 1, 2, 4, 8]
    assert wait_s(1000) == LONGEST_WAIT_S
