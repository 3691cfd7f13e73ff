"""Images over both of OpenAI's wires, sent by OpenAI's own client."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from openai import BadRequestError, OpenAI

from tests.integration.gateway.openai.conftest import PLACE
from tests.support.blobs import png
from tests.support.pump import Pump

pytestmark = pytest.mark.usefixtures("pools")
URL = f"data:image/png;base64,{base64.b64encode(png()).decode()}"


def test_an_image_reaches_the_turn_and_comes_again_with_its_conversation(client: OpenAI, pump: Pump) -> None:
    done = client.chat.completions.create(
        model="shop",
        messages=[
            {
                "role": "user",
                "content": [{"type": "text", "text": "hello"}, {"type": "image_url", "image_url": {"url": URL}}],
            },
            {"role": "assistant", "content": "A hull."},
            {"role": "user", "content": "hello"},
        ],
    )
    handle = pump.client.handle(done.id.removeprefix("chatcmpl-"))
    request = pump.wiring.store.turns.request(handle.turn_id)
    assert request is not None
    (brought,) = request.history[0].attachments
    assert handle.file(brought.sha256).data == png()

    again = client.responses.create(
        model="shop",
        input=[
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "hello"},
                    {"type": "input_image", "image_url": URL, "detail": "auto"},
                ],
            }
        ],
    )
    asked = pump.client.handle(again.id.removeprefix("resp_")).transcript()[0]
    assert [one.sha256 for one in asked.attachments] == [brought.sha256]


def test_an_address_is_refused(client: OpenAI) -> None:
    with pytest.raises(BadRequestError, match="fetches nothing that a request names"):
        client.chat.completions.create(
            model="shop",
            messages=[
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]}
            ],
        )


def test_an_image_is_a_result_of_the_clients_tool(client: OpenAI, pump: Pump) -> None:
    tool: Any = {"type": "function", "name": "weather", "parameters": PLACE, "strict": False}
    first: Any = client.responses.create(model="shop", input="weather", tools=[tool])
    calls = [item.to_dict() for item in first.output if item.type == "function_call"]
    shown = [{"type": "input_text", "text": "seen"}, {"type": "input_image", "image_url": URL}]
    outputs: Any = [{"type": "function_call_output", "call_id": call["call_id"], "output": shown} for call in calls]
    client.responses.create(model="shop", input=outputs, previous_response_id=first.id)
    handle = pump.client.handle(first.id.removeprefix("resp_"))
    results = [message for message in handle.transcript() if message.role == "tool"]
    assert len(results) == 2
    for result in results:
        (image,) = result.attachments
        assert handle.file(image.sha256).data == png()
    whole: Any = [{"role": "user", "content": "weather"}, *calls, *outputs, {"role": "user", "content": "hello"}]
    again = client.responses.create(model="shop", input=whole)
    request = pump.wiring.store.turns.request(again.id.removeprefix("resp_"))
    assert request is not None
    assert [len(message.attachments) for message in request.history if message.role == "tool"] == [1, 1]
