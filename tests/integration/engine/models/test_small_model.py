"""Both vendors' providers, and a whole turn, against a real model behind llama.cpp's own server."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import pytest

from brainq import Brain, Limits
from brainq.adapters.models.vendor_provider import VendorProvider
from brainq.contracts.callbacks import StreamChunk
from brainq.contracts.event import EventKind
from brainq.contracts.model_options import ModelOptions
from brainq.contracts.status import Ending, StopReason
from brainq.errors import ProviderError
from tests.integration.engine.models.asking import WireName, ask, streamed_or_not, vendor
from tests.integration.engine.models.small_model import CONTEXT_TOKENS, MODEL, SmallModel, why_not
from tests.support.pump import Pump
from tests.support.wait import wait_until
from tests.unit.engine.models.requests import request, system, user

REASON = why_not()
pytestmark = [pytest.mark.full, pytest.mark.needs(REASON is None, REASON)]

GREETING = (system("You are a friendly assistant."), user("Say hello."))
STORY = (user("Tell me a very long story about a ship and its crew."),)
# A deadline is held within this on a machine that does much else beside. That it was held, the error says.
LATE_S = 20.0


@pytest.fixture(scope="module")
def small_model() -> Iterator[SmallModel]:
    model = SmallModel()
    yield model
    model.stop()


@pytest.fixture(params=["openai", "anthropic"])
def wire(request: pytest.FixtureRequest) -> WireName:
    return request.param


@pytest.fixture
def provider(wire: WireName, small_model: SmallModel) -> Iterator[VendorProvider]:
    wait_until(lambda: not small_model.is_busy(), "the slot is free", timeout_s=90)
    made = vendor(wire, small_model.base_url(wire))
    yield made
    made.close()


@streamed_or_not
def test_a_reply_and_what_it_cost(provider: VendorProvider, streamed: bool) -> None:
    asked = request(*GREETING, max_output_tokens=12, options=ModelOptions(temperature=0, seed=7), timeout_s=60.0)
    reply = ask(provider, asked, streamed=streamed)
    assert reply.text.strip()
    assert reply.model == MODEL
    assert reply.finish_reason in ("stop", "length")
    assert 0 < reply.usage.output_tokens <= 12
    assert 10 < reply.usage.input_tokens < 60


@streamed_or_not
def test_the_output_limit_is_kept_and_told(provider: VendorProvider, streamed: bool) -> None:
    reply = ask(provider, request(*STORY, max_output_tokens=8, timeout_s=60.0), streamed=streamed)
    assert (reply.finish_reason, reply.usage.output_tokens) == ("length", 8)


def test_a_stream_comes_in_pieces(provider: VendorProvider) -> None:
    chunks = list(provider.generate_stream(request(*STORY, max_output_tokens=30, timeout_s=60.0)))
    assert len(chunks) > 10


def test_a_stream_that_begins_with_an_emoji_is_counted(provider: VendorProvider) -> None:
    asked = request(user("Greet me with many emoji 😀🌟👍"), max_output_tokens=12, timeout_s=60.0)
    reply = ask(provider, asked, streamed=True)
    assert reply.model in (MODEL, asked.model)
    assert 0 < reply.usage.input_tokens < 60
    assert 0 < reply.usage.output_tokens <= 12


def test_an_output_schema_holds_the_model(small_model: SmallModel) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 12}},
        "required": ["city"],
        "additionalProperties": False,
    }
    provider = vendor("openai", small_model.base_url("openai"))  # its Anthropic wire knows no schema
    asked = request(user("Name a city."), output_schema=schema, max_output_tokens=60, timeout_s=60.0)
    for streamed in (True, False):
        assert list(json.loads(ask(provider, asked, streamed=streamed).text)) == ["city"]
    provider.close()


@streamed_or_not
def test_a_long_reply_ends_at_the_deadline(provider: VendorProvider, small_model: SmallModel, streamed: bool) -> None:
    began = time.monotonic()
    with pytest.raises(ProviderError) as caught:
        ask(provider, request(*STORY, max_output_tokens=500, timeout_s=0.7), streamed=streamed)
    assert 0.7 <= time.monotonic() - began < 0.7 + LATE_S
    assert (caught.value.kind, caught.value.retryable) == ("timeout", True)
    if streamed:  # a whole reply the server finishes, whoever is still there
        wait_until(lambda: not small_model.is_busy(), "the model was let off", timeout_s=2.0)


def test_an_abandoned_stream_frees_the_slot(provider: VendorProvider, small_model: SmallModel) -> None:
    stream = provider.generate_stream(request(*STORY, max_output_tokens=1000, timeout_s=60.0))
    assert next(stream).text
    assert small_model.is_busy()
    del stream
    wait_until(lambda: not small_model.is_busy(), "the model was let off")
    assert ask(provider, request(*GREETING, max_output_tokens=5, timeout_s=60.0), streamed=True).text


@streamed_or_not
def test_too_long_a_request_is_called_that(provider: VendorProvider, streamed: bool) -> None:
    with pytest.raises(ProviderError) as caught:
        ask(provider, request(user("word " * (CONTEXT_TOKENS + 100)), timeout_s=60.0), streamed=streamed)
    assert (caught.value.kind, caught.value.retryable) == ("too_long", False)


def test_a_whole_turn(provider: VendorProvider, pumps: Callable[..., Pump]) -> None:
    brain = Brain(
        "small", provider, "You are a friendly assistant.", limits=Limits(max_output_tokens=40, timeout_s=90.0)
    )
    heard: list[StreamChunk] = []
    brain.on_stream_chunk(heard.append)
    pump = pumps(brain)
    handle = pump.submit("s1", "Say hello to a sailor.")
    result = pump.finish(handle, timeout_s=90.0)
    # How long the model talks is its own affair.
    assert result.ending is Ending.COMPLETED
    assert result.stop_reason in (StopReason.ANSWERED, StopReason.LENGTH)
    assert 10 < result.input_tokens < 200
    assert 0 < result.output_tokens <= 40
    assert "".join(chunk.text for chunk in heard) == result.text
    assert {(chunk.step, chunk.attempt) for chunk in heard} == {(1, 1)}
    events = list(handle.events(timeout_s=10))
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [event.is_final for event in events].count(True) == 1
    texts = [str(event.data["text"]) for event in events if event.kind is EventKind.TEXT_DELTA]
    assert "".join(texts) == result.text
