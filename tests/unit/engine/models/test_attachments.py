"""What models' services are sent of images and files."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from brainq.adapters.models.anthropic import wire
from brainq.adapters.models.attachments import AttachmentBlocks, is_unreadable, refused_attachment_kind
from brainq.adapters.models.openai import chat_wire, responses_wire
from brainq.contracts.file import File
from brainq.contracts.message import Message
from tests.support.blobs import pdf, png
from tests.unit.engine.models.requests import assistant, call, request, result, user

PICTURE = File(png(), name="plan.png")
CHART = File(png(9), name="chart.png")
PAPER = File(pdf(), name="terms.pdf")
NOTES = File(b"a,b\n1,2", name="t.csv")
SOUND = File(b"\0\1", name="a.bin")
BLOBS = {file.attachment.sha256: file.data for file in (PICTURE, CHART, PAPER, NOTES, SOUND)}


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def with_files(message: Message, *files: File) -> Message:
    return message.model_copy(update={"attachments": tuple(file.attachment for file in files)})


def image(data: bytes) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": b64(data)}}


def url(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{b64(data)}"


ASKED = with_files(user("What is on it?"), PICTURE, PAPER, NOTES, SOUND)
CALLED = [
    user("Draw."),
    assistant("", call("c1-0", {}), call("c1-1", {})),
    with_files(result("c1-0", "drawn"), CHART, NOTES),
    result("c1-1", "rain"),
]


def test_a_users_message_over_anthropics_wire() -> None:
    _, [message] = wire.to_messages([ASKED], AttachmentBlocks(BLOBS))
    assert message["content"] == [
        image(png()),
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": b64(pdf())},
            "title": "terms.pdf",
        },
        {"type": "text", "text": "[t.csv (text/csv, 7 bytes)]\na,b\n1,2"},
        {"type": "text", "text": "[a.bin (application/octet-stream, 2 bytes): it cannot be shown to this model]"},
        {"type": "text", "text": "What is on it?"},
    ]


def test_a_users_message_over_chat_completions() -> None:
    [message] = chat_wire.to_messages([ASKED], "all", AttachmentBlocks(BLOBS))
    assert message["content"] == [
        {"type": "text", "text": "What is on it?"},
        {"type": "image_url", "image_url": {"url": url("image/png", png())}},
        {"type": "file", "file": {"filename": "terms.pdf", "file_data": url("application/pdf", pdf())}},
        {"type": "text", "text": "[t.csv (text/csv, 7 bytes)]\na,b\n1,2"},
        {"type": "text", "text": "[a.bin (application/octet-stream, 2 bytes): it cannot be shown to this model]"},
    ]


def test_a_tools_image_is_in_its_result_over_anthropics_wire() -> None:
    _, [*_, results] = wire.to_messages(CALLED, AttachmentBlocks(BLOBS))
    drawn, rain = results["content"]
    assert drawn["content"] == [
        {"type": "text", "text": "drawn"},
        image(png(9)),
        {"type": "text", "text": "[t.csv (text/csv, 7 bytes)]\na,b\n1,2"},
    ]
    assert rain["content"] == "rain"


def test_a_tools_image_stands_behind_all_results_in_chat_completions() -> None:
    sent = chat_wire.to_messages(CALLED, "all", AttachmentBlocks(BLOBS))
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "tool", "user"]
    assert sent[2]["content"] == "drawn\n[t.csv (text/csv, 7 bytes)]\na,b\n1,2"
    assert sent[4]["content"] == [
        {"type": "text", "text": f"[chart.png (image/png, {len(png(9))} bytes), returned by the tool weather]"},
        {"type": "image_url", "image_url": {"url": url("image/png", png(9))}},
    ]


def test_what_the_user_says_next_joins_the_tools_image() -> None:
    sent = chat_wire.to_messages([*CALLED, with_files(user("And this?"), PICTURE)], "all", AttachmentBlocks(BLOBS))
    assert [message["role"] for message in sent][-2:] == ["tool", "user"]
    assert sent[-1]["content"][0]["text"].endswith("And this?")
    assert [part["image_url"]["url"] for part in sent[-1]["content"][1:]] == [
        url("image/png", png(9)),
        url("image/png", png()),
    ]


def test_templates_that_want_turns_get_an_answer_before_the_tools_image() -> None:
    sent = chat_wire.to_messages(CALLED, "alternating", AttachmentBlocks(BLOBS))
    assert [message["role"] for message in sent][-3:] == ["tool", "assistant", "user"]
    assert sent[-1]["content"][1]["type"] == "image_url"


def test_responses_take_files_in_messages_and_in_calls_outputs() -> None:
    _, items = responses_wire.to_items([ASKED, *CALLED], None, AttachmentBlocks(BLOBS))
    assert items[0]["content"][:3] == [
        {"type": "input_text", "text": "What is on it?"},
        {"type": "input_image", "image_url": url("image/png", png()), "detail": "auto"},
        {"type": "input_file", "filename": "terms.pdf", "file_data": url("application/pdf", pdf())},
    ]
    outputs = [item["output"] for item in items if item["type"] == "function_call_output"]
    assert [part["type"] for part in outputs[0]] == ["input_text", "input_image", "input_text"]
    assert outputs[1] == "rain"


def test_a_picture_without_words_is_a_message() -> None:
    alone = with_files(user(""), PICTURE)
    [chat] = chat_wire.to_messages([alone], "all", AttachmentBlocks(BLOBS))
    assert [part["type"] for part in chat["content"]] == ["image_url"]
    _, [message] = wire.to_messages([alone], AttachmentBlocks(BLOBS))
    assert message["content"] == [image(png())]


def test_what_is_gone_is_a_line_of_text() -> None:
    line = {"type": "text", "text": f"[plan.png (image/png, {len(png())} bytes): it is no longer kept]"}
    asked = with_files(user("And now?"), PICTURE)
    [chat] = chat_wire.to_messages([asked])
    assert chat["content"][1] == line
    _, [message] = wire.to_messages([asked])
    assert message["content"][0] == line


def test_what_a_model_does_not_take_is_said_in_words() -> None:
    blocks = AttachmentBlocks(BLOBS, frozenset({"image"}))
    [chat] = chat_wire.to_messages([ASKED], "all", blocks)
    assert "cannot be shown to this model" in chat["content"][1]["text"]
    assert chat["content"][2]["type"] == "file", "the other kinds are shown"


@pytest.mark.parametrize(
    ("status", "said", "kind"),
    [
        (500, "image input is not supported - hint: you may need to provide the mmproj", "image"),
        (400, "At most 0 image(s) may be provided in one prompt.", "image"),
        (400, "Invalid content type. image_url is only supported by certain models.", "image"),
        (404, "No endpoints found that support image input", "image"),
        (400, "messages[0]: unknown variant `image_url`, expected `text`", "image"),
        (400, "Unknown part type: file", "document"),
        (400, "messages: content must be a string", "image"),
        (400, "You uploaded an unsupported image. Please make sure your image is valid.", None),
        (400, "Could not process image", None),
        (400, "image exceeds 5 MB maximum", None),
        (401, "image input is not supported", None),
    ],
)
def test_refusals_are_told_apart_from_bad_pictures(status: int, said: str, kind: str | None) -> None:
    asked = request(with_files(user("?"), PICTURE, PAPER))
    assert refused_attachment_kind(asked, status, {"error": {"message": said}}) == kind
    assert refused_attachment_kind(request(user("?")), status, {"error": {"message": said}}) is None, "none was sent"


@pytest.mark.parametrize(
    ("status", "said", "unreadable"),
    [
        (400, "Could not process image", True),
        (400, "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum", True),
        (400, "You uploaded an unsupported image. Please make sure your image is valid.", True),
        (400, "A maximum of 100 PDF pages may be provided.", True),
        (400, "The PDF specified is password protected.", True),
        (400, "max_tokens exceeds the model's maximum", False),
        (400, "image input is not supported", False),
        (429, "Could not process image", False),
    ],
)
def test_a_bad_picture_is_told_from_other_refusals(status: int, said: str, unreadable: bool) -> None:
    body = {"error": {"message": said}}
    assert is_unreadable(request(with_files(user("?"), PICTURE)), status, body) is unreadable
    assert not is_unreadable(request(user("?")), status, body)
