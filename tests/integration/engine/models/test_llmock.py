"""Both vendors' providers against llmock, whose verdict on them must stay clean."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from brainq.adapters.models.openai.provider import OpenAIProvider
from brainq.adapters.models.vendor_provider import VendorProvider
from brainq.contracts.model_options import ModelOptions
from brainq.errors import ProviderError
from tests.integration.engine.models.asking import ask, streamed_or_not, vendor
from tests.integration.engine.models.llmock_server import LlmockServer
from tests.unit.engine.models.requests import WEATHER, assistant, call, request, result, system, user

ONE_TWO = {"type": "reply", "text": "one two three four five six"}


@pytest.fixture(params=["openai", "anthropic"])
def provider(request: pytest.FixtureRequest, llmock: LlmockServer) -> Iterator[VendorProvider]:
    made = vendor(request.param, llmock.base_url(request.param))
    yield made
    made.close()


@streamed_or_not
def test_text(provider: VendorProvider, llmock: LlmockServer, streamed: bool) -> None:
    llmock.behave(ONE_TWO)
    reply = ask(provider, request(system("be brief"), user("count")), streamed=streamed)
    assert (reply.text, reply.finish_reason, reply.model) == (ONE_TWO["text"], "stop", "m")
    assert reply.usage.input_tokens > 0
    assert reply.usage.output_tokens > 0
    assert llmock.findings() == []


@streamed_or_not
def test_calls_and_their_results(provider: VendorProvider, llmock: LlmockServer, streamed: bool) -> None:
    wanted: list[dict[str, Any]] = [
        {"name": "weather", "arguments": {"city": "Oslo"}},
        {"name": "weather", "arguments": {"city": "Málaga 😀"}},
    ]
    llmock.behave({"type": "reply", "text": "Let me see.", "tool_calls": wanted}, ONE_TWO)
    reply = ask(provider, request(user("weather?"), tools=(WEATHER,)), streamed=streamed)
    assert [(made.name, made.arguments) for made in reply.calls] == [
        (made["name"], made["arguments"]) for made in wanted
    ]
    assert (reply.text, reply.finish_reason) == ("Let me see.", "tool_calls")
    history = (
        user("weather?"),
        assistant("Let me see.", call("c1-0", {"city": "Oslo"}), call("c1-1", "{bad")),
        result("c1-0", "rain"),
        result("c1-1", "no such city", is_error=True),
    )
    assert ask(provider, request(*history, tools=(WEATHER,)), streamed=streamed).text == ONE_TWO["text"]
    assert llmock.findings() == []


def test_broken_arguments_stay_text(provider: VendorProvider, llmock: LlmockServer) -> None:
    llmock.behave(
        {"type": "reply", "tool_calls": [{"name": "weather", "arguments": {"city": "Oslo"}}]},
        {"type": "tool_fault", "kind": "malformed_arguments"},
    )
    reply = ask(provider, request(tools=(WEATHER,)), streamed=True)
    assert [type(made.arguments) for made in reply.calls] == [str]


@streamed_or_not
def test_retry_after_is_honoured(provider: VendorProvider, llmock: LlmockServer, streamed: bool) -> None:
    llmock.behave({"type": "fail", "status": 429, "retry_after": 0.4, "times": 2}, ONE_TWO)
    began = time.monotonic()
    assert ask(provider, request(), streamed=streamed).text == ONE_TWO["text"]
    assert time.monotonic() - began >= 0.8
    assert llmock.pending() == []
    assert llmock.findings() == []


@streamed_or_not
def test_a_retry_after_beyond_the_time_is_not_waited_for(
    provider: VendorProvider, llmock: LlmockServer, streamed: bool
) -> None:
    llmock.behave({"type": "fail", "status": 429, "retry_after": 60, "times": 1})
    began = time.monotonic()
    with pytest.raises(ProviderError) as caught:
        ask(provider, request(timeout_s=5.0), streamed=streamed)
    assert (caught.value.kind, caught.value.retryable) == ("rate_limited", True)
    assert time.monotonic() - began < 30
    assert len(llmock.requests()) == 1


@streamed_or_not
@pytest.mark.parametrize(("status", "times"), [(500, 2), (529, 1)])
def test_server_errors_are_retried(
    provider: VendorProvider, llmock: LlmockServer, status: int, times: int, streamed: bool
) -> None:
    llmock.behave({"type": "fail", "status": status, "times": times}, ONE_TWO)
    assert ask(provider, request(), streamed=streamed).text == ONE_TWO["text"]
    assert llmock.pending() == []
    assert llmock.findings() == []


@streamed_or_not
@pytest.mark.parametrize(("status", "kind"), [(400, "refused"), (401, "denied"), (404, "denied")])
def test_client_errors_are_not_retried(
    provider: VendorProvider, llmock: LlmockServer, status: int, kind: str, streamed: bool
) -> None:
    llmock.behave({"type": "fail", "status": status, "times": 1})
    with pytest.raises(ProviderError) as caught:
        ask(provider, request(), streamed=streamed)
    assert (caught.value.kind, caught.value.retryable) == (kind, False)
    assert len(llmock.requests()) == 1
    assert llmock.findings() == []


@pytest.mark.parametrize("kind", ["truncate", "disconnect", "malformed"])
def test_a_stream_that_breaks_off_is_the_callers_to_repeat(
    provider: VendorProvider, llmock: LlmockServer, kind: str
) -> None:
    llmock.behave({"type": "stream_fault", "kind": kind, "after_chunks": 5}, ONE_TWO, ONE_TWO)
    asked = request()
    stream = provider.generate_stream(asked)
    assert next(stream).text == "one "
    with pytest.raises(ProviderError) as caught:
        list(stream)
    assert (caught.value.kind, caught.value.retryable) == ("stream", True)
    assert len(llmock.requests()) == 1
    assert ask(provider, asked, streamed=True).text == ONE_TWO["text"]
    assert llmock.pending() == []
    assert set(llmock.findings()) <= {"malformed_chunk_ignored"}  # as below


@pytest.mark.parametrize("kind", ["truncate", "disconnect", "malformed"])
def test_a_stream_that_breaks_off_before_its_first_word_is_repeated_here(
    provider: VendorProvider, llmock: LlmockServer, kind: str
) -> None:
    llmock.behave({"type": "stream_fault", "kind": kind, "after_chunks": 1}, ONE_TWO, ONE_TWO)
    assert ask(provider, request(), streamed=True).text == ONE_TWO["text"]
    assert len(llmock.requests()) == 2
    # A server that is slow to see us hang up takes the second request for a call of its own, beside the first.
    assert set(llmock.findings()) <= {"malformed_chunk_ignored"}


@pytest.mark.parametrize("after_chunks", [0, 5])
def test_a_stalled_stream_ends_at_the_deadline(
    provider: VendorProvider, llmock: LlmockServer, after_chunks: int
) -> None:
    llmock.behave({"type": "stream_fault", "kind": "stall", "after_chunks": after_chunks, "stall_seconds": 30}, ONE_TWO)
    began = time.monotonic()
    with pytest.raises(ProviderError) as caught:
        list(provider.generate_stream(request(timeout_s=2.0)))
    assert (caught.value.kind, caught.value.retryable) == ("timeout", True)
    assert time.monotonic() - began < 15
    assert llmock.pending() == []
    assert llmock.findings() == []


@streamed_or_not
def test_a_silent_server_ends_at_the_deadline(provider: VendorProvider, llmock: LlmockServer, streamed: bool) -> None:
    llmock.behave({"type": "delay", "seconds": 30})
    began = time.monotonic()
    with pytest.raises(ProviderError) as caught:
        ask(provider, request(timeout_s=2.0), streamed=streamed)
    assert caught.value.kind == "timeout"
    assert time.monotonic() - began < 15
    assert llmock.pending() == []


@streamed_or_not
def test_an_output_schema_is_sent(provider: VendorProvider, llmock: LlmockServer, streamed: bool) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    }
    ask(provider, request(output_schema=schema), streamed=streamed)
    body = llmock.requests()[0]["body"]
    if isinstance(provider, OpenAIProvider):
        assert body["response_format"]["json_schema"] == {"name": "reply", "schema": schema, "strict": True}
    else:
        assert body["output_config"]["format"] == {"type": "json_schema", "schema": schema}


@streamed_or_not
def test_limits_of_the_output_are_sent(provider: VendorProvider, llmock: LlmockServer, streamed: bool) -> None:
    ask(provider, request(options=ModelOptions(temperature=0.5), max_output_tokens=77), streamed=streamed)
    body = llmock.requests()[0]["body"]
    assert (body["temperature"], body["max_tokens"]) == (0.5, 77)
