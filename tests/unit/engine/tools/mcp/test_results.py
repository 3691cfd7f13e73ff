"""What a model reads of a result."""

from __future__ import annotations

from typing import Any

import pytest

from brainq.contracts.file import MAX_FILES
from brainq.engine.tools.mcp.results import read_result, result_files
from brainq.engine.tools.mcp.session import LONGEST_WAIT_S, backoff_s


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


@pytest.mark.parametrize(
    ("result", "read"),
    [
        ({"content": []}, ""),
        ({"content": [text("a"), text("b")]}, "a\nb"),
        ({"content": [text("12")], "structuredContent": {"result": "12"}}, "12"),
        ({"content": [text("12")], "structuredContent": {"result": 12}}, {"result": 12}),
        ({"content": [text("a\nb")], "structuredContent": {"content": "a\nb"}}, "a\nb"),
        ({"content": [text("a")], "structuredContent": {"content": "a", "lines": 1}}, {"content": "a", "lines": 1}),
        (
            {
                "content": [{"type": "image", "mimeType": "image/png", "data": "QUJDRA=="}],
                "structuredContent": {"content": [{"type": "image", "mimeType": "image/png", "data": "QUJDRA=="}]},
            },
            "[image: image/png, 4 bytes]",
        ),
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
                    {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "hi"}}
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


def test_only_what_is_what_it_says_is_a_file_and_no_more_than_a_result_may_bring() -> None:
    sound = {"type": "audio", "mimeType": "audio/wav", "data": "QUJD"}
    report = {"type": "resource", "resource": {"uri": "file:///a/report.bin", "blob": "QUJDAA=="}}
    wrong = {"type": "image", "mimeType": "image/png", "data": "QUJD"}
    broken = {"type": "image", "mimeType": "image/png", "data": "Q"}
    link = {"type": "resource_link", "uri": "file:///a", "name": "a"}
    files = result_files([text("a"), sound, wrong, broken, link, report])
    assert [(file.media_type, file.name, file.data) for file in files] == [
        ("audio/wav", "", b"ABC"),
        ("application/octet-stream", "report.bin", b"ABC\0"),
    ]
    assert len(result_files([sound] * (MAX_FILES + 5))) == MAX_FILES


def test_a_server_that_fails_again_and_again_is_tried_less_and_less() -> None:
    waits = [backoff_s(failures) for failures in range(8)]
    assert waits == [0, 0, 0, 0.5, 1, 2, 4, 8]
    assert backoff_s(1000) == LONGEST_WAIT_S
