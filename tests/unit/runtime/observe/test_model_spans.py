"""What a `chat` span says of its service."""

from __future__ import annotations

import pytest
from opentelemetry.trace import INVALID_SPAN

from brainq.adapters.models.anthropic.provider import AnthropicProvider
from brainq.adapters.models.openai.provider import OpenAIProvider
from brainq.contracts.message import Message
from brainq.contracts.model import ModelRequest, ModelRetry
from brainq.runtime.observe.spans import chat_span
from brainq.runtime.observe.tracing import in_span
from tests.support.spans import recording

REQUEST = ModelRequest(model="m1", messages=(Message(role="user", content="hi"),), timeout_s=1.0)


@pytest.mark.parametrize(
    ("provider", "address", "port"),
    [
        (OpenAIProvider(api_key="k", base_url="http://user:pass@10.0.0.7:8000/v1"), "10.0.0.7", 8000),
        (AnthropicProvider(api_key="k"), "api.anthropic.com", 443),
        (object(), None, None),
    ],
)
def test_the_server_is_named_where_it_is_known(provider: object, address: str | None, port: int | None) -> None:
    with recording() as recorder:
        with in_span(chat_span(provider, REQUEST).span):
            pass
        span = recorder.spans.one("chat m1")
    assert (span.attributes.get("server.address"), span.attributes.get("server.port")) == (address, port)
    assert "pass" not in recorder.text()


def test_a_retry_is_an_event() -> None:
    with recording() as recorder:
        chat = chat_span(object(), REQUEST)
        with in_span(chat.span):
            chat.retry(ModelRetry(kind="rate_limit", wait_s=0.5))
            chat.chunk()
        span = recorder.spans.one("chat m1")
    assert span.events == ("brainq.model.retry",)
    assert span.attributes["gen_ai.response.time_to_first_chunk"] >= 0


def test_off_it_is_nothing() -> None:
    assert chat_span(object(), REQUEST).span is INVALID_SPAN
