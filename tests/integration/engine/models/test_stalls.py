"""Streams that say nothing: cut, and begun again while the turn has time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice, repeat
from typing import Any

import pytest

from brainq import Brain, Limits
from brainq.adapters.models.vendor_provider import VendorProvider
from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest
from brainq.contracts.status import Ending, StopReason
from brainq.engine.models.asking.stall_clock import stream_within_limits
from brainq.engine.models.scripted import ScriptedProvider, fails, says
from brainq.errors import ProviderError
from tests.integration.engine.models.asking import WireName, vendor
from tests.integration.engine.models.wire_server import Answer, Exchange, WireServer
from tests.support.pump import Pump
from tests.unit.engine.models.requests import request

LONG_S = 60.0
SHORT_S = 0.3

HELLO: dict[str, list[dict[str, Any]]] = {
    "openai": [{"choices": [{"delta": {"content": "Hello"}}]}, {"choices": [{"finish_reason": "stop"}]}],
    "anthropic": [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ],
}


@pytest.fixture
def server() -> Iterator[WireServer]:
    with WireServer() as made:
        yield made


@pytest.fixture(params=["openai", "anthropic"])
def wire(request: pytest.FixtureRequest) -> WireName:
    return request.param


@pytest.fixture
def provider(wire: WireName, server: WireServer) -> Iterator[VendorProvider]:
    made = vendor(wire, f"{server.url}/v1" if wire == "openai" else server.url)
    yield made
    made.close()


def says_hello(wire: WireName) -> Answer:
    def answer(exchange: Exchange) -> None:
        exchange.begin()
        for event in HELLO[wire]:
            exchange.event(event)
        if wire == "openai":
            exchange.event("[DONE]")
        exchange.finish()

    return answer


def says_no_word(exchange: Exchange) -> None:
    exchange.hold(LONG_S)


def begins_and_stalls(exchange: Exchange) -> None:
    exchange.begin()
    exchange.hold(LONG_S)


def only_pings(exchange: Exchange) -> None:
    exchange.begin()
    while exchange.hold(0.05):
        exchange.piece(b": ping\n\n")


@pytest.mark.parametrize("silent", [says_no_word, begins_and_stalls, only_pings])
def test_no_first_output(server: WireServer, provider: VendorProvider, silent: Answer) -> None:
    server.answers = [silent]
    began = time.monotonic()
    with pytest.raises(ProviderError, match=r"nothing of the reply came within 0\.3 s") as caught:
        list(provider.generate_stream(request(timeout_s=LONG_S, first_token_s=SHORT_S, idle_s=LONG_S)))
    assert (caught.value.kind, caught.value.retryable) == ("stalled", True)
    assert time.monotonic() - began < LONG_S / 2
    assert len(server.bodies) == 1, "the caller counts another attempt, not the provider"


def test_a_pause_that_is_too_long(server: WireServer, provider: VendorProvider, wire: WireName) -> None:
    def stalls_later(exchange: Exchange) -> None:
        exchange.begin()
        exchange.event(HELLO[wire][0])
        exchange.hold(LONG_S)

    server.answers = [stalls_later]
    stream = provider.generate_stream(request(timeout_s=LONG_S, first_token_s=LONG_S, idle_s=SHORT_S))
    assert next(stream).text == "Hello"
    with pytest.raises(ProviderError, match=r"no more of the reply came within 0\.3 s") as caught:
        next(stream)
    assert caught.value.kind == "stalled"


def test_a_reader_that_takes_its_time_is_no_stall(server: WireServer, provider: VendorProvider, wire: WireName) -> None:
    read = threading.Event()

    def waits_for_the_reader(exchange: Exchange) -> None:
        exchange.begin()
        exchange.event(HELLO[wire][0])
        read.wait(LONG_S)
        for event in HELLO[wire][1:]:
            exchange.event(event)
        exchange.finish()

    server.answers = [waits_for_the_reader]
    stream = provider.generate_stream(request(timeout_s=LONG_S, first_token_s=LONG_S, idle_s=SHORT_S))
    assert next(stream).text == "Hello"
    read.wait(SHORT_S * 2)  # busy with something else
    read.set()
    *_, last = stream
    assert last.reply is not None
    assert last.reply.text == "Hello"


def test_a_turn_asks_again(
    server: WireServer, provider: VendorProvider, wire: WireName, pumps: Callable[..., Pump]
) -> None:
    server.answers = [begins_and_stalls, says_hello(wire)]
    pump = pumps(Brain("patient", provider, limits=Limits(first_token_s=2.0, timeout_s=LONG_S)))
    result = pump.finish(pump.submit("s1", "Hello?"), timeout_s=LONG_S)
    assert (result.text, result.stop_reason) == ("Hello", StopReason.ANSWERED)
    assert [spend.kind for spend in result.spends] == ["lost", "step"], "the first attempt may be billed"
    assert result.spends[0].input_tokens > 0


class Foreign:
    """A provider of a user's own, which looks at no limit. `stream` makes the chunks of the n-th request."""

    name = "foreign"

    def __init__(self, stream: Callable[[int], Iterator[ModelChunk]]) -> None:
        self.asked = 0
        self._stream = stream

    def generate(self, request: ModelRequest) -> ModelReply:
        raise NotImplementedError

    def generate_stream(self, request: ModelRequest) -> Iterator[ModelChunk]:
        self.asked += 1
        return self._stream(self.asked)


def hello(_: int) -> Iterator[ModelChunk]:
    yield ModelChunk(text="Hello")
    yield ModelChunk(reply=says("Hello"))


@pytest.fixture
def hang() -> Iterator[Callable[[], object]]:
    """Waits until the test is over."""
    over = threading.Event()
    yield lambda: over.wait(LONG_S)
    over.set()


@pytest.mark.parametrize("shown", [False, True])
def test_a_foreign_stream_that_hangs_is_left_and_asked_again(
    pumps: Callable[..., Pump], hang: Callable[[], object], shown: bool
) -> None:
    def first_hangs(asked: int) -> Iterator[ModelChunk]:
        if asked == 1:
            if shown:
                yield ModelChunk(text="He")
            hang()
        yield from hello(asked)

    provider = Foreign(first_hangs)
    pump = pumps(Brain("patient", provider, limits=Limits(first_token_s=1.0, idle_s=SHORT_S, timeout_s=LONG_S)))
    result = pump.finish(pump.submit("s1", "Hello?"), timeout_s=LONG_S)
    assert (result.text, result.stop_reason) == ("Hello", StopReason.ANSWERED)
    assert provider.asked == 2


def test_a_stream_that_always_stalls_fails_the_turn(pumps: Callable[..., Pump]) -> None:
    model = ScriptedProvider([fails("stalled", message="the stream stalled")])
    pump = pumps(Brain("patient", model))
    result = pump.finish(pump.submit("s1", "Hello?"))
    assert (result.ending, result.stop_reason) == (Ending.FAILED, StopReason.MODEL_ERROR)
    assert result.error == "the stream stalled"


def test_an_endless_foreign_stream_is_cut() -> None:
    stream = stream_within_limits(Foreign(lambda _: repeat(ModelChunk(text="x"))), request(timeout_s=0.2))
    with pytest.raises(ProviderError) as caught:
        list(islice(stream, 500_000))
    assert caught.value.kind == "timeout"


# One character, so that a fast machine does not reach the largest reply before the deadline.
@pytest.mark.parametrize("text", ["m", ""])
def test_an_endless_foreign_stream_is_cut_at_the_deadline(pumps: Callable[..., Pump], text: str) -> None:
    closed = threading.Event()

    def endless(_: int) -> Iterator[ModelChunk]:
        try:
            while True:
                yield ModelChunk(text=text)
        finally:
            closed.set()

    # A busy machine takes no lease from it, and it is asked within its time.
    brain = Brain("patient", Foreign(endless), limits=Limits(timeout_s=3.0))
    pump = pumps(brain, lease_s=LONG_S, beat_s=1.0)
    result = pump.finish(pump.submit("s1", "Hello?"), timeout_s=LONG_S)
    assert (result.ending, result.stop_reason) == (Ending.TIMED_OUT, StopReason.DEADLINE)
    assert closed.wait(10), "and nobody goes on reading it"


def test_what_a_foreign_stream_raises_comes_through() -> None:
    def broken(_: int) -> Iterator[ModelChunk]:
        yield ModelChunk(text="He")
        raise ZeroDivisionError("oh")

    stream = stream_within_limits(Foreign(broken), request())
    assert next(stream).text == "He"
    with pytest.raises(ZeroDivisionError, match="oh"):
        next(stream)


def test_a_scripted_stream_stalls_as_its_latency_says() -> None:
    slow = ScriptedProvider([says("one two")], latency_s=LONG_S)
    with pytest.raises(ProviderError) as caught:
        list(slow.generate_stream(request(timeout_s=LONG_S, first_token_s=0.01)))
    assert caught.value.kind == "stalled"
