"""What a response was made from, listed by OpenAI's own client."""

from __future__ import annotations

import base64
from typing import Any

import openai
import pytest
from openai import OpenAI

from tests.integration.gateway.openai.conftest import PLACE
from tests.support.blobs import png
from tests.support.parts import forget
from tests.support.pump import Pump
from tests.support.wait import wait_until

pytestmark = pytest.mark.usefixtures("pools")
WEATHER: Any = {"type": "function", "name": "weather", "parameters": PLACE, "strict": False}
URL = f"data:image/png;base64,{base64.b64encode(png()).decode()}"


def texts(items: Any) -> list[str]:
    return [part.text for item in items for part in item.content if hasattr(part, "text")]


def test_what_the_user_said_and_the_conversation_before_it_are_listed(client: OpenAI) -> None:
    said: Any = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"},
    ]
    done = client.responses.create(model="shop", input=said)
    listed = client.responses.input_items.list(done.id, order="asc")
    assert texts(listed.data) == ["one", "two", "three"]
    assert [item.role for item in listed.data] == ["user", "assistant", "user"]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    assert texts(client.responses.input_items.list(done.id).data) == ["three", "two", "one"]
    later = client.responses.create(model="shop", input="four", previous_response_id=done.id)
    assert texts(client.responses.input_items.list(later.id)) == ["four"]


def test_the_items_come_page_by_page(client: OpenAI) -> None:
    said: Any = [{"role": role, "content": f"{n} {role}"} for n in range(3) for role in ("user", "assistant")]
    done = client.responses.create(model="shop", input=[*said, {"role": "user", "content": "last"}])
    for order in ("asc", "desc"):
        whole = list(client.responses.input_items.list(done.id, order=order, limit=100))
        assert len(whole) == 7
        assert list(client.responses.input_items.list(done.id, order=order, limit=2)) == whole
    first: Any = client.responses.input_items.list(done.id, limit=3)
    assert (first.object, first.has_more, first.first_id, first.last_id) == (
        "list",
        True,
        first.data[0].id,
        first.data[2].id,
    )
    last: Any = client.responses.input_items.list(done.id, limit=3, after=whole[3].id)
    assert (len(last.data), last.has_more) == (3, False)
    with pytest.raises(openai.BadRequestError) as refusal:
        client.responses.input_items.list(done.id, after="msg_nobodys")
    assert refusal.value.param == "after"
    for many in (0, 101):
        with pytest.raises(openai.BadRequestError):
            client.responses.input_items.list(done.id, limit=many)


def test_files_are_named_and_images_brought_where_they_are_asked_for(client: OpenAI) -> None:
    note = {"type": "input_file", "filename": "a.txt", "file_data": "data:text/plain;base64,aGk="}
    content = [
        {"type": "input_text", "text": "hello"},
        {"type": "input_image", "image_url": URL, "detail": "auto"},
        note,
    ]
    asked: Any = [{"role": "user", "content": content}]
    done = client.responses.create(model="shop", input=asked)
    (item,) = list[Any](client.responses.input_items.list(done.id))
    assert [part.type for part in item.content] == ["input_text", "input_image", "input_file"]
    assert (item.content[1].image_url, item.content[2].filename) == (None, "a.txt")
    (item,) = list[Any](client.responses.input_items.list(done.id, include=["message.input_image.image_url"]))
    assert item.content[1].image_url == URL


def test_behind_the_clients_calls_their_results_are_listed(client: OpenAI, pump: Pump) -> None:
    first: Any = client.responses.create(model="shop", input="weather", tools=[WEATHER])
    with pytest.raises(openai.NotFoundError):
        client.responses.input_items.list(f"{first.id}.2")
    calls = [item.call_id for item in first.output if item.type == "function_call"]
    given: Any = [
        {"type": "function_call_output", "call_id": call, "output": said}
        for call, said in zip(calls, ("rain", "snow"), strict=True)
    ]
    second = client.responses.create(model="shop", input=[*given, {"role": "user", "content": "and in Rome?"}])
    items: Any = list(client.responses.input_items.list(second.id, order="asc"))
    outputs = [item for item in items if item.type == "function_call_output"]
    assert [(item.call_id, item.output) for item in outputs] == list(zip(calls, ("rain", "snow"), strict=True))
    assert texts([item for item in items if item.type == "message"]) == ["and in Rome?"]
    assert len({item.id for item in items}) == 3
    assert texts(client.responses.input_items.list(first.id)) == ["weather"]
    with pytest.raises(openai.NotFoundError):
        client.responses.input_items.list(f"{first.id}.3")

    handle = pump.client.handle(first.id.removeprefix("resp_"))
    wait_until(lambda: (seen := handle.snapshot()) is not None and seen.awaits == "nobody", "it is finished")
    forget(pump)
    assert texts(client.responses.input_items.list(first.id)) == ["weather"]
    with pytest.raises(openai.APIStatusError) as gone:
        client.responses.input_items.list(second.id)
    assert gone.value.status_code == 410
