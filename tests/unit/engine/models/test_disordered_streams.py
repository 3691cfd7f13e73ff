"""Whatever disorder a stream of known calls has, its reply holds these calls, or is refused."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brainq.adapters.models.anthropic.provider import AnthropicProvider
from brainq.adapters.models.anthropic.wire import AnthropicStream
from brainq.adapters.models.open_answer import sse_events
from brainq.adapters.models.openai.chat_wire import OpenAIStream
from brainq.adapters.models.openai.provider import OpenAIProvider, OpenAIResponsesProvider
from brainq.adapters.models.openai.responses_wire import ResponsesStream
from brainq.adapters.models.stream_reader import StreamReader
from brainq.adapters.models.vendor_provider import VendorProvider
from brainq.contracts.model import ModelReply
from brainq.engine.models.asking.retry import RetryPolicy
from brainq.errors import ProviderError
from tests.unit.engine.models.disordered_streams import STREAMS, Disordered, MadeCall
from tests.unit.engine.models.requests import request

READERS: dict[str, type[StreamReader]] = {
    "openai": OpenAIStream,
    "openai-responses": ResponsesStream,
    "anthropic": AnthropicStream,
}
every_wire = pytest.mark.parametrize("wire", READERS)
SEEDS = st.integers(0, 2**32)


def read(wire: str, body: bytes) -> ModelReply | None:
    """The reply in the bytes of a stream; None if it is refused, as the provider refuses it."""
    reader = READERS[wire]()
    try:
        for event in sse_events([body]):
            if event is None:
                reader.end_marked()
                break
            reader.feed(event)
            if reader.ended:
                break
        return reader.reply() if reader.complete else None
    except (ProviderError, ValueError, AttributeError, LookupError, TypeError):
        return None


def check(made: Disordered, reply: ModelReply | None) -> None:
    """`reply` has the calls that were made, in their order, or was refused where that is allowed."""
    if made.must_refuse:
        assert reply is None, "a second reply began, and it was taken"
    elif reply is None:
        assert not made.must_equal, "it was refused, and its calls can be told apart"
    elif any(isinstance(call.arguments, str) for call in reply.calls):
        assert not made.must_equal, "the gate refuses a call that was made well"
    else:
        assert [(call.name, call.arguments) for call in reply.calls] == [
            (call.name, call.arguments) for call in made.calls
        ]


def check_disorder(wire: str, seed: int) -> None:
    chance = random.Random(seed)
    made = STREAMS[wire](chance)
    body = made.body
    check(made, read(wire, body))
    for at in {chance.randrange(len(body)) for _ in range(3)}:
        cut = read(wire, body[:at])
        made.must_equal = False
        if cut is not None:
            check(made, cut)


@every_wire
@settings(max_examples=700, deadline=None)
@given(SEEDS)
def test_a_disordered_stream_has_the_calls_that_were_made_or_is_refused(wire: str, seed: int) -> None:
    check_disorder(wire, seed)


@pytest.mark.full
@every_wire
def test_many_disordered_streams(wire: str) -> None:
    for seed in range(34_000):
        try:
            check_disorder(wire, seed)
        except AssertionError as wrong:
            raise AssertionError(f"seed {seed}: {wrong}") from wrong


@every_wire
def test_a_stream_that_is_cut_at_any_byte_has_all_calls_or_none(wire: str) -> None:
    for seed in range(4):
        made = STREAMS[wire](random.Random(seed))
        made.must_equal = False
        for at in range(len(made.body)):
            cut = read(wire, made.body[:at])
            if cut is not None:
                check(made, cut)


def _through_sdk(wire: str, body: bytes) -> VendorProvider:
    """The provider of that wire, on its vendor's SDK, whose HTTP library answers with `body` in pieces of 7 bytes."""
    kinds: dict[str, type[VendorProvider]] = {
        "openai": OpenAIProvider,
        "openai-responses": OpenAIResponsesProvider,
        "anthropic": AnthropicProvider,
    }
    provider = kinds[wire](base_url="http://model.test", api_key="k", retry=RetryPolicy(max_attempts=1))
    provider._make_client = lambda sdk: _client(sdk, body)  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue, reportUnknownLambdaType, reportUnknownArgumentType]
    return provider


def _client(sdk: Any, body: bytes) -> Any:
    library = __import__(sdk.DefaultHttpxClient.__mro__[1].__module__.partition(".")[0])

    def answer(_: Any) -> Any:
        stream: Iterator[bytes] = (body[at : at + 7] for at in range(0, len(body), 7))
        return library.Response(200, headers={"content-type": "text/event-stream"}, content=stream)

    make = sdk.OpenAI if hasattr(sdk, "OpenAI") else sdk.Anthropic
    http = library.Client(transport=library.MockTransport(answer))
    return make(api_key="k", base_url="http://model.test", max_retries=0, http_client=http)


@every_wire
def test_streams_read_through_the_sdk_of_their_vendor(wire: str) -> None:
    for seed in range(40):
        made = STREAMS[wire](random.Random(seed))
        provider, reply, kind = _through_sdk(wire, made.body), None, "stream"
        try:
            *_, last = provider.generate_stream(request())
            reply = last.reply
        except ProviderError as error:
            kind = error.kind
        finally:
            provider.close()
        assert kind in ("stream", "malformed")
        check(made, reply)


def test_the_streams_hold_every_kind() -> None:
    """The builders build what the other tests are about."""
    made = [STREAMS[wire](random.Random(seed)) for wire in READERS for seed in range(200)]
    assert sum(one.must_refuse for one in made) > 30
    assert sum(one.must_equal for one in made) > 150
    assert any(MadeCall(call.id, call.name, {}) == call for one in made for call in one.calls)
    taken = [read(wire, STREAMS[wire](random.Random(seed)).body) for wire in READERS for seed in range(200)]
    assert sum(reply is not None for reply in taken) > 300
