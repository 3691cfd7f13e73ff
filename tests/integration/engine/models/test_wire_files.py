"""Images over the vendors' own SDKs: what servers are sent, and what is made of their refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from brainq.adapters.models.anthropic.provider import AnthropicProvider
from brainq.adapters.models.openai.provider import OpenAIProvider
from brainq.adapters.models.vendor_provider import VendorProvider
from brainq.contracts.file import File
from brainq.contracts.message import Message
from brainq.contracts.model import ModelRequest
from tests.integration.engine.models.wire_server import Exchange, WireServer
from tests.support.blobs import png
from tests.unit.engine.models.requests import request

PICTURE = File(png(), name="plan.png")
ASKED: ModelRequest = request(
    Message(role="user", content="What is on it?", attachments=(PICTURE.attachment,)),
    blobs={PICTURE.attachment.sha256: PICTURE.data},
    timeout_s=60.0,
)
OPENAI = {"choices": [{"message": {"content": "A hull."}, "finish_reason": "stop"}]}
ANTHROPIC = {"content": [{"type": "text", "text": "A hull."}], "stop_reason": "end_turn"}


def refusal(status: int, said: str) -> Callable[[Exchange], None]:
    return lambda exchange: exchange.send_json(status, {"error": {"message": said}})


def answer(body: Any) -> Callable[[Exchange], None]:
    return lambda exchange: exchange.send_json(200, body)


def types(body: dict[str, Any]) -> list[str]:
    return [part["type"] for part in body["messages"][-1]["content"]]


@pytest.fixture(params=["openai", "anthropic"])
def vendor(request: pytest.FixtureRequest, wire: WireServer) -> Any:
    made: VendorProvider
    if request.param == "openai":
        made, shown, body = OpenAIProvider(base_url=f"{wire.url}/v1", api_key="k"), "image_url", OPENAI
    else:
        made, shown, body = AnthropicProvider(base_url=wire.url, api_key="k"), "image", ANTHROPIC
    yield made, shown, body
    made.close()


def ask(provider: VendorProvider, *, stream: bool) -> str:
    if not stream:
        return provider.generate(ASKED).text
    *_, last = provider.generate_stream(ASKED)  # a server that does not stream answers whole
    assert last.reply is not None
    return last.reply.text


@pytest.mark.parametrize("stream", [False, True])
def test_a_model_without_eyes_is_told_in_words_from_then_on(wire: WireServer, vendor: Any, stream: bool) -> None:
    provider, shown, body = vendor
    wire.answers = [refusal(400, "image input is not supported"), answer(body), answer(body)]
    assert [ask(provider, stream=stream) for _ in range(2)] == ["A hull.", "A hull."]
    assert [shown in types(sent) for sent in wire.bodies] == [True, False, False]
    assert "cannot be shown to this model" in str(wire.bodies[-1])


def test_a_picture_that_cannot_be_read_costs_one_request_and_no_session(wire: WireServer, vendor: Any) -> None:
    provider, shown, body = vendor
    wire.answers = [refusal(400, "Could not process image"), answer(body), answer(body)]
    assert [ask(provider, stream=False) for _ in range(2)] == ["A hull.", "A hull."]
    assert [shown in types(sent) for sent in wire.bodies] == [True, False, True]
