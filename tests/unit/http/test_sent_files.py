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
from brainq.errors import InvalidInput
from brainq.http.a2a.said import files_of, said_in, words_of
from brainq.http.ag_ui import bodies as ag_ui
from brainq.http.ai_sdk import bodies as ai_sdk
from brainq.http.openai.chat import entry_of
from brainq.http.openai.conversation import Entry, Question, Results, read_conversation
from brainq.http.openai.input_items import entries_of
from brainq.http.sent_files import brought, with_bytes
from tests.support.blobs import pdf, png

URL = f"data:image/png;base64,{base64.b64encode(png()).decode()}"
PAPER = base64.b64encode(pdf()).decode()
PICTURE, TERMS = File(png()), File(pdf(), name="terms.pdf")
ELSEWHERE = "http://169.254.169.254/latest/meta-data"


def chat(*contents: Any) -> Question | Results:
    messages = [{"role": "user", "content": content} for content in contents]
    return read_conversation("messages", [entry_of(at, message) for at, message in enumerate(messages)])


def responses(content: Any) -> Question | Results:
    return read_conversation("input", entries_of([{"role": "user", "content": content}]))


def of_ai_sdk(*parts: Any) -> Any:
    said = [{"id": f"m{at}", "role": "user", "parts": [part]} for at, part in enumerate(parts)]
    return ai_sdk.ChatBody.model_validate({"id": "s1", "messages": said})


def of_ag_ui(*contents: Any) -> Any:
    said = [{"id": f"m{at}", "role": "user", "content": content} for at, content in enumerate(contents)]
    return ag_ui.messages_of(ag_ui.RunBody.model_validate({"threadId": "s1", "runId": "r", "messages": said}))


def test_chat_completions_take_images_and_files() -> None:
    asked = chat(
        [
            {"type": "text", "text": "What is on it?"},
            {"type": "image_url", "image_url": {"url": URL, "detail": "low"}},
            {"type": "file", "file": {"file_data": PAPER, "filename": "terms.pdf"}},
        ]
    )
    assert isinstance(asked, Question)
    assert (asked.text, asked.files) == ("What is on it?", (PICTURE, TERMS))


def test_responses_take_images_and_files() -> None:
    asked = responses(
        [
            {"type": "input_image", "image_url": URL},
            {
                "type": "input_file",
                "file_data": f"data:application/pdf;base64,{PAPER}",
                "filename": "terms.pdf",
            },
        ]
    )
    assert isinstance(asked, Question)
    assert (asked.text, asked.files) == ("", (PICTURE, TERMS))


def test_a_conversation_sent_again_brings_its_files() -> None:
    told = [
        Entry("messages[0]", "user", "", files=(PICTURE,)),
        Entry("messages[1]", "assistant", "A hull."),
        Entry("messages[2]", "user", "And now?"),
    ]
    asked = read_conversation("messages", told)
    assert isinstance(asked, Question)
    first, second = cast("list[Any]", with_bytes(asked.history, asked.brought))
    assert (first["role"], first["content"], first["attachments"]) == ("user", "", [PICTURE])
    assert getattr(second, "content", "") == "A hull."
    asked_again: list[Any] = [{"role": "user", "content": "Look.", "attachments": (PICTURE,)}]
    again = cast("list[Any]", brought(asked_again))
    assert [(each["role"], each["content"], each["attachments"]) for each in again] == [
        ("user", "Look.", [PICTURE])
    ]


def test_what_comes_with_results_may_be_a_file() -> None:
    call_id = "01m83bx7j96yqe4t4bpe9f2x5b-c1-0"
    told = [Entry("m0", "tool", "done", call_id=call_id), Entry("m1", "user", "", files=(PICTURE,))]
    given = read_conversation("messages", told)
    assert isinstance(given, Results)
    assert given.files == (PICTURE,)


def test_the_ai_sdk_sends_file_parts() -> None:
    part = {"type": "file", "mediaType": "image/png", "url": URL, "filename": "plan.png"}
    body = of_ai_sdk(part, part)
    asked = ai_sdk.question_of(body, None)
    assert asked is not None
    assert asked.files == (File(png(), name="plan.png"),)
    (before,) = ai_sdk.history_of(body)
    assert before["attachments"] == asked.files


def test_ag_ui_sends_sources() -> None:
    image = {
        "type": "image",
        "source": {"type": "data", "value": URL.partition(",")[2], "mimeType": "image/png"},
    }
    paper = {"type": "document", "source": {"type": "data", "value": PAPER, "mimeType": "application/pdf"}}
    messages = of_ag_ui([image], [{"type": "text", "text": "Look."}, paper])
    asked = ag_ui.question_of(messages)
    assert (asked.text, asked.files) == ("Look.", (File(pdf()),))
    (before,) = ag_ui.history_of(messages, asked)
    assert before == {"role": "user", "content": "", "attachments": (PICTURE,)}


def test_a2a_sends_raw_bytes() -> None:
    message = A2aMessage(parts=[Part(text="Look."), Part(raw=pdf(), filename="terms.pdf")])
    assert (words_of(message), files_of(message)) == ("Look.", (TERMS,))
    assert said_in(message).files == (TERMS,)


@pytest.mark.parametrize(
    "read",
    [
        lambda: chat([{"type": "image_url", "image_url": {"url": ELSEWHERE}}]),
        lambda: responses([{"type": "input_image", "image_url": ELSEWHERE}]),
        lambda: ai_sdk.question_of(of_ai_sdk({"type": "file", "url": ELSEWHERE}), None),
        lambda: ag_ui.question_of(
            of_ag_ui([{"type": "image", "source": {"type": "url", "value": ELSEWHERE}}])
        ),
    ],
)
def test_an_address_is_refused_with_the_remedy(read: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput, match=r"fetches nothing that a request names; send the bytes"):
        read()


def test_a2a_refuses_an_address_too() -> None:
    with pytest.raises(ContentTypeNotSupportedError):
        words_of(A2aMessage(parts=[Part(url=ELSEWHERE)]))


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
    with pytest.raises(InvalidInput, match="parts of the type 'image_url' are not taken"):
        entry_of(0, {"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": URL}}]})
