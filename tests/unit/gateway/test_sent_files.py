"""Files in what each chat wire's clients send; and that an address is refused by all of them."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, cast

import pytest
from a2a.types.a2a_pb2 import Message as A2aMessage
from a2a.types.a2a_pb2 import Part
from a2a.utils.errors import ContentTypeNotSupportedError

from brainq.contracts.file import File
from brainq.contrib.a2a.requests import message_files, message_text, read_task_message
from brainq.contrib.ag_ui import routes as ag_ui
from brainq.contrib.ai_sdk import routes as ai_sdk
from brainq.errors import InvalidInput
from brainq.gateway.wires.chat.requests import embed_files, read_history
from brainq.gateway.wires.openai.chat_completions import read_message
from brainq.gateway.wires.openai.messages import InputMessage, ToolResults, TurnInput, read_items, read_messages
from tests.support.blobs import pdf, png

URL = f"data:image/png;base64,{base64.b64encode(png()).decode()}"
PAPER = base64.b64encode(pdf()).decode()
PICTURE, TERMS = File(png()), File(pdf(), name="terms.pdf")
ELSEWHERE = "http://169.254.169.254/latest/meta-data"


def chat(*contents: Any) -> TurnInput | ToolResults:
    messages = [{"role": "user", "content": content} for content in contents]
    return read_messages("messages", [read_message(at, message) for at, message in enumerate(messages)])


def responses(content: Any) -> TurnInput | ToolResults:
    return read_messages("input", read_items([{"role": "user", "content": content}]))


def of_ai_sdk(*parts: Any) -> Any:
    said = [{"id": f"m{at}", "role": "user", "parts": [part]} for at, part in enumerate(parts)]
    return ai_sdk.ChatBody.model_validate({"id": "s1", "messages": said})


def of_ag_ui(*contents: Any) -> Any:
    said = [{"id": f"m{at}", "role": "user", "content": content} for at, content in enumerate(contents)]
    return ag_ui.read_messages(ag_ui.RunBody.model_validate({"threadId": "s1", "runId": "r", "messages": said}))


def test_chat_completions_take_images_and_files() -> None:
    asked = chat(
        [
            {"type": "text", "text": "What is on it?"},
            {"type": "image_url", "image_url": {"url": URL, "detail": "low"}},
            {"type": "file", "file": {"file_data": PAPER, "filename": "terms.pdf"}},
        ]
    )
    assert isinstance(asked, TurnInput)
    assert (asked.text, asked.files) == ("What is on it?", (PICTURE, TERMS))


def test_responses_take_images_and_files() -> None:
    asked = responses(
        [
            {"type": "input_image", "image_url": URL},
            {"type": "input_file", "file_data": f"data:application/pdf;base64,{PAPER}", "filename": "terms.pdf"},
        ]
    )
    assert isinstance(asked, TurnInput)
    assert (asked.text, asked.files) == ("", (PICTURE, TERMS))


def test_a_conversation_sent_again_brings_its_files() -> None:
    told = [
        InputMessage("messages[0]", "user", "", files=(PICTURE,)),
        InputMessage("messages[1]", "assistant", "A hull."),
        InputMessage("messages[2]", "user", "And now?"),
    ]
    asked = read_messages("messages", told)
    assert isinstance(asked, TurnInput)
    first, second = cast("list[Any]", embed_files(asked.history, asked.brought))
    assert (first["role"], first["content"], first["attachments"]) == ("user", "", [PICTURE])
    assert getattr(second, "content", "") == "A hull."
    asked_again: list[Any] = [{"role": "user", "content": "Look.", "attachments": (PICTURE,)}]
    again = cast("list[Any]", read_history(asked_again))
    assert [(each["role"], each["content"], each["attachments"]) for each in again] == [("user", "Look.", [PICTURE])]


def test_what_comes_with_results_may_be_a_file() -> None:
    call_id = "01m83bx7j96yqe4t4bpe9f2x5b-c1-0"
    told = [InputMessage("m0", "tool", "done", call_id=call_id), InputMessage("m1", "user", "", files=(PICTURE,))]
    given = read_messages("messages", told)
    assert isinstance(given, ToolResults)
    assert given.files == (PICTURE,)


def test_the_ai_sdk_sends_file_parts() -> None:
    part = {"type": "file", "mediaType": "image/png", "url": URL, "filename": "plan.png"}
    body = of_ai_sdk(part, part)
    asked = ai_sdk.read_question(body, None)
    assert asked is not None
    assert asked.files == (File(png(), name="plan.png"),)
    (before,) = ai_sdk.read_chat_history(body)
    assert before["attachments"] == asked.files


def test_ag_ui_sends_sources() -> None:
    image = {"type": "image", "source": {"type": "data", "value": URL.partition(",")[2], "mimeType": "image/png"}}
    paper = {"type": "document", "source": {"type": "data", "value": PAPER, "mimeType": "application/pdf"}}
    messages = of_ag_ui([image], [{"type": "text", "text": "Look."}, paper])
    asked = ag_ui.read_question(messages)
    assert (asked.text, asked.files) == ("Look.", (File(pdf()),))
    (before,) = ag_ui.read_run_history(messages, asked)
    assert before == {"role": "user", "content": "", "attachments": (PICTURE,)}


def test_a2a_sends_raw_bytes() -> None:
    message = A2aMessage(parts=[Part(text="Look."), Part(raw=pdf(), filename="terms.pdf")])
    assert (message_text(message), message_files(message)) == ("Look.", (TERMS,))
    assert read_task_message(message).files == (TERMS,)


@pytest.mark.parametrize(
    "read",
    [
        lambda: chat([{"type": "image_url", "image_url": {"url": ELSEWHERE}}]),
        lambda: responses([{"type": "input_image", "image_url": ELSEWHERE}]),
        lambda: ai_sdk.read_question(of_ai_sdk({"type": "file", "url": ELSEWHERE}), None),
        lambda: ag_ui.read_question(of_ag_ui([{"type": "image", "source": {"type": "url", "value": ELSEWHERE}}])),
    ],
)
def test_an_address_is_refused_with_the_remedy(read: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput, match=r"fetches nothing that a request names; send the bytes"):
        read()


def test_a2a_refuses_an_address_too() -> None:
    with pytest.raises(ContentTypeNotSupportedError):
        message_text(A2aMessage(parts=[Part(url=ELSEWHERE)]))


@pytest.mark.parametrize(
    "part",
    [
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "input_file", "file_id": "file-1"},
        {"type": "input_file", "file_url": ELSEWHERE},
        {"type": "input_image", "file_id": "file-1"},
    ],
)
def test_files_kept_elsewhere_are_refused_with_the_remedy(part: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="send the bytes"):
        chat([part])


def test_only_users_send_files() -> None:
    with pytest.raises(InvalidInput, match="parts of the type 'image_url' are not supported"):
        read_message(0, {"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": URL}}]})
