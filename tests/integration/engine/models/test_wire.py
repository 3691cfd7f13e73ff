"""What llmock does not do: servers with less of the API, drips, split emoji, connections."""

from __future__ import annotations

import json
import socket
import threading
import time

import pytest

from brainq.adapters.models.anthropic.provider import AnthropicProvider
from brainq.adapters.models.openai.provider import OpenAIProvider
from brainq.adapters.models.vendor_provider import VendorProvider
from brainq.errors import ProviderError
from brainq.runtime.observe.spans import chat_span
from brainq.runtime.observe.tracing import in_span
from tests.integration.engine.models.conftest import QUICK
from tests.integration.engine.models.wire_server import Exchange, WireServer
from tests.support.spans import recording_everybody
from tests.unit.engine.models.requests import request


def openai_words(exchange: Exchange, *words: str, end: bool = True) -> None:
    exchange.begin()
    for word in words:
        exchange.event({"choices": [{"delta": {"content": word}, "finish_reason": None}]})
    exchange.event({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    exchange.event("[DONE]")
    if end:
        exchange.finish()


def anthropic_words(exchange: Exchange, *words: str, end: bool = True) -> None:
    exchange.begin()
    exchange.event({"type": "message_start", "message": {"model": "c", "usage": {"input_tokens": 1}}})
    exchange.event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
    for word in words:
        exchange.event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}})
    exchange.event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}})
    exchange.event({"type": "message_stop"})
    if end:
        exchange.finish()


def streamed(provider: VendorProvider, timeout_s: float = 60.0) -> str:
    *_, last = provider.generate_stream(request(timeout_s=timeout_s))
    assert last.reply is not None
    return last.reply.text


def test_a_split_emoji_arrives_whole(wire: WireServer, openai: OpenAIProvider, anthropic: AnthropicProvider) -> None:
    wire.answers = [
        lambda exchange: openai_words(exchange, "Hi \ud83d", "\ude00", "!"),
        lambda exchange: anthropic_words(exchange, "Hi \ud83d", "\ude00", "!"),
        lambda exchange: openai_words(exchange, "Hi \ud83d"),
    ]
    assert streamed(openai) == "Hi 😀!"
    assert streamed(anthropic) == "Hi 😀!"
    assert [chunk.text for chunk in openai.generate_stream(request())] == ["Hi ", "\ufffd", ""]


def test_missing_usage_is_estimated(wire: WireServer, openai: OpenAIProvider) -> None:
    wire.answers = [lambda exchange: openai_words(exchange, "x" * 400)]
    *_, last = openai.generate_stream(request())
    assert last.reply is not None
    assert last.reply.usage.output_tokens == 100
    assert last.reply.usage.estimated
    assert last.reply.usage.input_tokens > 0


def test_what_the_head_of_a_stream_should_have_said_is_filled_in(
    wire: WireServer, anthropic: AnthropicProvider
) -> None:
    def headless(exchange: Exchange) -> None:  # as llama.cpp answers when an emoji comes first
        exchange.begin()
        exchange.event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "😀"}})
        exchange.event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}})
        exchange.event({"type": "message_stop"})
        exchange.finish()

    wire.answers = [headless]
    *_, last = anthropic.generate_stream(request())
    assert last.reply is not None
    assert (last.reply.text, last.reply.model) == ("😀", "m")
    assert last.reply.usage.input_tokens > 0
    assert last.reply.usage.output_tokens == 3


def test_a_parameter_that_is_refused_is_left_out_from_then_on(wire: WireServer, openai: OpenAIProvider) -> None:
    def refuse(exchange: Exchange) -> None:
        exchange.send_json(400, {"error": {"message": "Unknown parameter: 'stream_options'."}})

    wire.answers = [refuse, lambda exchange: openai_words(exchange, "a"), lambda exchange: openai_words(exchange, "b")]
    assert [streamed(openai), streamed(openai)] == ["a", "b"]
    assert ["stream_options" in body for body in wire.bodies] == [True, False, False]


def test_a_schema_that_is_refused_is_held_against_no_other(wire: WireServer, openai: OpenAIProvider) -> None:
    def answer(exchange: Exchange) -> None:
        if "patternProperties" in json.dumps(wire.bodies[-1].get("response_format")):
            said = "response_format: the schema uses 'patternProperties', which is not supported"
            exchange.send_json(400, {"error": {"message": said}})
        else:
            openai_words(exchange, "{}")

    good = {"type": "object", "properties": {"a": {"type": "string"}}}
    bad = {"type": "object", "patternProperties": {"^x": {"type": "string"}}}
    wire.answers = [answer] * 6
    for schema in (good, bad, good, bad, None):
        *_, last = openai.generate_stream(request(output_schema=schema))
        assert last.reply is not None
    assert ["response_format" in body for body in wire.bodies] == [True, True, False, True, False, False]


def test_what_one_model_refuses_another_one_is_sent(wire: WireServer, openai: OpenAIProvider) -> None:
    def answer(exchange: Exchange) -> None:
        if wire.bodies[-1]["model"] == "old" and "stream_options" in wire.bodies[-1]:
            exchange.send_json(400, {"error": {"message": "Unknown parameter: 'stream_options'."}})
        else:
            openai_words(exchange, "a")

    wire.answers = [answer] * 4
    for model in ("old", "new", "old"):
        list(openai.generate_stream(request(model=model)))
    sent = [(body["model"], "stream_options" in body) for body in wire.bodies]
    assert sent == [("old", True), ("old", False), ("new", True), ("old", False)]


def test_a_parameter_refused_twice_is_an_error(wire: WireServer, openai: OpenAIProvider) -> None:
    def refuse(exchange: Exchange) -> None:
        exchange.send_json(400, {"error": {"message": "Unknown parameter: 'stream_options'."}})

    wire.answers = [refuse, refuse]
    with pytest.raises(ProviderError, match="stream_options"):
        streamed(openai)


def test_a_server_that_does_not_stream_is_read_all_the_same(wire: WireServer, openai: OpenAIProvider) -> None:
    def whole(exchange: Exchange) -> None:
        exchange.send_json(200, {"choices": [{"message": {"content": "all of it"}, "finish_reason": "stop"}]})

    wire.answers = [whole]
    assert streamed(openai) == "all of it"


@pytest.mark.parametrize("end", [True, False], ids=["ended", "held open"])
def test_connections_are_used_again(
    wire: WireServer, openai: OpenAIProvider, anthropic: AnthropicProvider, end: bool
) -> None:
    def answers(write: object) -> None:
        assert callable(write)

        def answer(exchange: Exchange) -> None:
            write(exchange, "a", end=end)
            if not end:
                exchange.hold(30)

        wire.answers = [answer, answer, answer]

    for provider, write in ((openai, openai_words), (anthropic, anthropic_words)):
        wire.connections = 0
        answers(write)
        began = time.monotonic()
        assert [streamed(provider) for _ in range(3)] == ["a", "a", "a"]
        assert wire.connections == (1 if end else 3)
        assert time.monotonic() - began < 20


def test_a_server_that_drips_ends_at_the_deadline(
    wire: WireServer, openai: OpenAIProvider, anthropic: AnthropicProvider
) -> None:
    def drip_comments(exchange: Exchange) -> None:
        exchange.begin()
        while exchange.hold(0.05):
            exchange.piece(b": still here\n\n")

    def drip_spaces(exchange: Exchange) -> None:
        exchange.begin("application/json")
        while exchange.hold(0.05):
            exchange.piece(b" ")

    def drip_events(exchange: Exchange) -> None:
        exchange.begin()
        while exchange.hold(0.05):
            exchange.event({"type": "ping"})

    wire.answers = [drip_comments, drip_spaces, drip_events]
    for ask in (
        lambda: streamed(openai, 0.4),
        lambda: openai.generate(request(timeout_s=0.4)),
        lambda: streamed(anthropic, 0.4),
    ):
        began = time.monotonic()
        with pytest.raises(ProviderError) as caught:
            ask()
        assert caught.value.kind == "timeout"
        assert time.monotonic() - began < 20
    assert len(wire.bodies) == 3


def test_a_late_stall_does_not_get_the_whole_time_again(wire: WireServer, openai: OpenAIProvider) -> None:
    def late(exchange: Exchange) -> None:
        exchange.begin()
        exchange.hold(2.2)
        exchange.event({"choices": [{"delta": {"content": "a"}}]})
        exchange.hold(30)

    wire.answers = [late]
    began = time.monotonic()
    with pytest.raises(ProviderError) as caught:
        streamed(openai, 2.5)
    assert caught.value.kind == "timeout"
    assert time.monotonic() - began < 2.2 + 2.5


def test_an_error_inside_a_stream(wire: WireServer, anthropic: AnthropicProvider) -> None:
    def overloaded(exchange: Exchange) -> None:
        exchange.begin()
        exchange.event({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})
        exchange.finish()

    wire.answers = [overloaded, lambda exchange: anthropic_words(exchange, "a")]
    assert streamed(anthropic) == "a"


def test_an_error_with_http_200(wire: WireServer, openai: OpenAIProvider) -> None:
    error = {"error": {"type": "invalid_request_error", "message": "no such thing"}}
    wire.answers = [lambda exchange: exchange.send_json(200, error)] * 2
    for ask in (lambda: openai.generate(request()), lambda: streamed(openai)):
        with pytest.raises(ProviderError, match="no such thing") as caught:
            ask()
        assert not caught.value.retryable


@pytest.mark.parametrize("body", [["a list"], {"choices": ["words"]}, {"choices": [{"message": "words"}]}])
def test_an_answer_of_another_shape_is_malformed(wire: WireServer, openai: OpenAIProvider, body: object) -> None:
    wire.answers = [lambda exchange: exchange.send_json(200, body)] * QUICK.max_attempts
    with pytest.raises(ProviderError, match="cannot be read") as caught:
        openai.generate(request(timeout_s=60))
    assert caught.value.kind == "malformed"
    assert len(wire.bodies) == QUICK.max_attempts


def test_nobody_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        provider = OpenAIProvider(base_url=f"http://127.0.0.1:{taken.getsockname()[1]}/v1", retry=QUICK)
        with pytest.raises(ProviderError) as caught:
            provider.generate(request(timeout_s=0.5))
        provider.close()
    assert caught.value.kind in ("connection", "timeout")
    assert caught.value.retryable


def test_an_abandoned_stream_gives_its_connection_up(wire: WireServer, openai: OpenAIProvider) -> None:
    gone = threading.Event()

    def endless(exchange: Exchange) -> None:
        exchange.begin()
        try:
            while exchange.hold(0.01):
                exchange.event({"choices": [{"delta": {"content": "a "}}]})
        except OSError:
            gone.set()
            exchange.close_connection = True

    wire.answers = [endless]
    for _ in openai.generate_stream(request()):
        break
    assert gone.wait(60)


def test_threads_share_one_client(wire: WireServer, openai: OpenAIProvider) -> None:
    wire.answers = [lambda exchange: openai_words(exchange, "a", "b", "c")] * 40
    texts: list[str] = []

    def ask() -> None:
        for _ in range(5):
            texts.append(streamed(openai))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == ["abc"] * 40
    assert wire.connections < 40, "connections are used again"


def test_a_model_call_is_one_span(wire: WireServer, openai: OpenAIProvider, anthropic: AnthropicProvider) -> None:
    wire.answers = [lambda exchange: openai_words(exchange, "Hi"), lambda exchange: anthropic_words(exchange, "Hi")]
    with recording_everybody() as recorder:
        for provider in (openai, anthropic):
            asked = request()
            with in_span(chat_span(provider, asked).span):
                list(provider.generate_stream(asked))
    assert recorder.spans.names == ["chat m"] * 2
