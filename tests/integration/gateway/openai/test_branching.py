"""A question to a response that is not the newest of its session, asked by OpenAI's own client."""

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


def session_of(response: Any) -> str:
    return response.conversation.id


@pytest.mark.parametrize("kept_in", ["redis", "sql"])
def test_a_question_to_an_older_response_begins_a_branch(client: OpenAI, pump: Pump, kept_in: str) -> None:
    first = client.responses.create(model="shop", input="look")
    second = client.responses.create(model="shop", input="two", previous_response_id=first.id)
    if kept_in == "sql":
        for one in (first, second):
            handle = pump.client.handle(one.id.removeprefix("resp_"))
            wait_until(lambda handle=handle: is_over(handle), "its chain is finished")
        forget(pump)
    branch = client.responses.create(model="shop", input="everything", previous_response_id=first.id)
    told = "user: look | assistant:  | tool: pears | assistant: Seen pears."
    assert branch.output_text == f"{told} | user: everything"
    assert session_of(branch).startswith("acme:")
    assert session_of(branch) != session_of(first) == session_of(second)
    later = client.responses.create(model="shop", input="everything", previous_response_id=branch.id)
    assert session_of(later) == session_of(branch)
    newest = client.responses.create(model="shop", input="everything", previous_response_id=second.id)
    assert session_of(newest) == session_of(first)


def is_over(handle: Any) -> bool:
    seen = handle.snapshot()
    return seen is not None and seen.awaits == "nobody"


def test_the_same_request_again_is_the_same_turn_on_either_way(client: OpenAI) -> None:
    first = client.responses.create(model="shop", input="one")
    on, branch = (
        [
            client.responses.create(
                model="shop",
                input="everything",
                previous_response_id=first.id,
                extra_headers={"Idempotency-Key": key},
            ).id
            for _ in range(2)
        ]
        for key in ("on-1", "branch-1")
    )
    assert on[0] == on[1] != branch[0] == branch[1]


def test_a_branch_has_what_the_session_began_with_and_its_files(client: OpenAI, pump: Pump) -> None:
    seen: Any = [
        {"type": "input_text", "text": "hello"},
        {"type": "input_image", "image_url": URL, "detail": "auto"},
    ]
    said: Any = [
        {"role": "user", "content": "before"},
        {"role": "assistant", "content": "it"},
        {"role": "user", "content": seen},
    ]
    first = client.responses.create(model="shop", input=said)
    client.responses.create(model="shop", input="two", previous_response_id=first.id)
    branch = client.responses.create(model="shop", input="everything", previous_response_id=first.id)
    assert branch.output_text.startswith("user: before | assistant: it | user: hello")
    request = pump.client.handle(branch.id.removeprefix("resp_")).request()
    (image,) = [one for message in request.history for one in message.attachments]
    assert pump.client.handle(request.turn_id).file(image.sha256).data == png()


def test_a_response_without_an_end_is_not_branched_from(client: OpenAI) -> None:
    first = client.responses.create(model="shop", input="refund", background=True)
    second = client.responses.create(model="shop", input="two", previous_response_id=first.id, background=True)
    assert session_of(second) == session_of(first)
    with pytest.raises(openai.BadRequestError, match="wait for it, or send the conversation") as refusal:
        client.responses.create(model="shop", input="three", previous_response_id=first.id)
    assert refusal.value.param == "previous_response_id"
    for one in (second, first):
        client.responses.cancel(one.id)
