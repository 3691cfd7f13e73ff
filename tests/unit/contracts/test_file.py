"""Files on their way in: what they are, and what is refused."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from brainq.contracts.file import File, FileLimits, read_files
from brainq.errors import InvalidInput
from tests.support.blobs import pdf, png


@pytest.mark.parametrize(
    ("file", "media_type"),
    [
        (File(png()), "image/png"),
        (File(png(), name="photo.jpg"), "image/png"),
        (File(b"\xff\xd8\xff\xe0", media_type="image/jpg"), "image/jpeg"),
        (File(pdf()), "application/pdf"),
        (File(b"a,b\n1,2\n", name="t.csv"), "text/csv"),
        (File(b"hello"), "text/plain"),
        (File(b"hello", media_type="Text/Markdown; charset=utf-8"), "text/markdown"),
        (File(b"\0\xff"), "application/octet-stream"),
        (File(b"<svg/>", name="a.png"), "text/plain"),
    ],
)
def test_the_type_is_what_the_bytes_say_else_the_name(file: File, media_type: str) -> None:
    assert file.media_type == media_type
    assert file.attachment.media_type == media_type


def test_a_file_is_read_under_its_own_name(tmp_path: Path) -> None:
    path = tmp_path / "plan.png"
    path.write_bytes(png())
    attachment = File.of(path).attachment
    assert (attachment.name, attachment.size, attachment.is_image) == ("plan.png", len(png()), True)
    assert attachment.label == f"plan.png (image/png, {len(png())} bytes)"
    with pytest.raises(InvalidInput, match=r"path: cannot read .*gone"):
        File.of(tmp_path / "gone")


def test_names_are_one_line_without_a_path() -> None:
    assert File(b"x", name="../../etc/pass\nwd").name == "pass wd"


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"data": b""}, "data: the file is empty"),
        ({"data": "text"}, r"data: use bytes, not str; File.of\(path\)"),
        ({"data": b"x", "media_type": "png"}, "media_type: 'png' is not a media type"),
        ({"data": b"x", "media_type": "image/png"}, "it is image/png, but the bytes are not"),
        ({"data": png(), "media_type": "image/jpeg"}, "it is image/jpeg, but the bytes are image/png"),
    ],
)
def test_what_is_no_file_is_refused(fields: dict[str, Any], refusal: str) -> None:
    with pytest.raises(InvalidInput, match=refusal):
        File(**fields)


def test_json_carries_base64_or_a_data_url() -> None:
    text = base64.b64encode(png()).decode()
    read = read_files("attachments", [{"data": text, "name": "a.png"}, {"data": f"data:image/png;base64,{text}"}])
    assert [file.data for file in read] == [png(), png()]
    assert [file.name for file in read] == ["a.png", ""]


@pytest.mark.parametrize(
    ("item", "refusal"),
    [
        ({"data": "https://example.org/a.png"}, r"attachments\[0\].data: .* fetches nothing .* send the bytes"),
        ({"data": "file:///etc/passwd"}, "fetches nothing"),
        ({"data": "data:text/plain,hi"}, "must be `data:<type>;base64,<bytes>`"),
        ({"data": "$$$"}, r"attachments\[0\].data: it is not base64"),
        ({"data": "aGk=", "media_type": "image/png"}, r"attachments\[0\].media_type: it is image/png"),
        ({"data": f"data:{'x' * 900_000};base64,aGk="}, "media_type: 'x{60}' is not a media type"),
        ({"data": "aGk=", "url": "x"}, r"attachments\[0\].url: there is no such field"),
        ({"sha256": "0" * 64}, r"attachments\[0\].sha256: there is no such field"),
        ({}, r"attachments\[0\].data: send the bytes as base64"),
        ({"data": "aGk=", "name": 3}, r"attachments\[0\].name: it must be a text"),
        ("plan.png", r"attachments\[0\]: use a File"),
    ],
)
def test_what_json_may_not_say(item: Any, refusal: str) -> None:
    with pytest.raises(InvalidInput, match=refusal):
        read_files("attachments", [item])


def test_limits_say_which_file_and_which_setting() -> None:
    limits = FileLimits(one=10, message=15)
    assert limits.problem_with([File(b"x" * 10)]) == ""
    assert "'big.txt' has 11 bytes; a file may have 10 (BRAINQ_MAX_FILE_BYTES)" in limits.problem_with(
        [File(b"x" * 11, name="big.txt")]
    )
    assert "16 bytes together" in limits.problem_with([File(b"x" * 8), File(b"y" * 8)])
    assert "there are 21; send at most 20" in FileLimits().problem_with([File(b"x")] * 21)
