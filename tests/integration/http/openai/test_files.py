"""Images over both of OpenAI's wires, sent by OpenAI's own client."""

from __future__ import annotations

import base64

import pytest
from openai import BadRequestError, OpenAI

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
                "content": [
                    {"type": "text", "text": "hello"},
                    {"type": "image_url", "image_url": {"url": URL}},
                ],
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
                {
                    "role": "user",
                    "content": [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}],
                }
            ],
        )
