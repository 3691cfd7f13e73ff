"""Both vendors' providers against aimock: replies, faults, cut and slow streams, halves of emoji."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from brainq.adapters.models.vendor_provider import VendorProvider
from brainq.contracts.model import TokenUsage
from brainq.engine.models.asking.retry import RetryPolicy
from brainq.errors import ProviderError
from examples.airline.aimock import Fixture, why_not
from tests.integration.engine.models.aimock import AimockServer, fails, says
from tests.integration.engine.models.asking import WireName, ask, streamed_or_not, vendor
from tests.support.wait import wait_until
from tests.unit.engine.models.requests import WEATHER, assistant, call, request, result, system, user

REASON = why_not()
pytestmark = [pytest.mark.full, pytest.mark.needs(REASON is None, REASON)]

PATHS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}
LATE_S = 1.0  # a deadline is held within this


@pytest.fixture(scope="module")
def aimock_process() -> Iterator[AimockServer]:
    with AimockServer() as server:
        yield server


@pytest.fixture
def aimock(aimock_process: AimockServer) -> AimockServer:
    aimock_process.reset()
    return aimock_process


@pytest.fixture(params=["openai", "anthropic"])
def wire(request: pytest.FixtureRequest) -> WireName:
    return request.param


@pytest.fixture
def provider(wire: WireName, aimock: AimockServer) -> Iterator[VendorProvider]:
    made = vendor(wire, aimock.wire(wire).url)
    yield made
    made.close()


@streamed_or_not
def test_text(provider: VendorProvider, aimock: AimockServer, wire: WireName, streamed: bool) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
    text = "One two three.\n\nFour, five, six — and that is all there is."
    aimock.hold({"match": {"model": "m"}, "response": {"content": text, "usage": usage}})
    reply = ask(provider, request(system("be brief"), user("count")), streamed=streamed)
    assert (reply.text, reply.finish_reason, reply.model) == (text, "stop", "m")
    assert reply.usage == TokenUsage(input_tokens=9, output_tokens=3)
    (entry,) = aimock.journal()
    assert (entry["path"], entry["body"].get("stream") is True) == (PATHS[wire], streamed)
    assert [message["role"] for message in entry["body"]["messages"]] == ["system", "user"]


@streamed_or_not
def test_calls_and_their_results(provider: VendorProvider, aimock: AimockServer, streamed: bool) -> None:
    aimock.hold(
        {
            "match": {"turnIndex": 0, "toolName": "weather"},
            "chunkSize": 1,  # every emoji in the arguments comes in halves
            "response": {
                "content": "Let me see.",
                "toolCalls": [
                    {"id": "a", "name": "weather", "arguments": '{"city":"Oslo"}'},
                    {"id": "b", "name": "weather", "arguments": '{"city":"Málaga 😀"}'},
                ],
            },
        },
        {
            "match": {"turnIndex": 1, "toolCallId": "c1-1", "toolResultContains": "no such city"},
            "response": {"content": "Rain."},
        },
    )
    reply = ask(provider, request(user("weather?"), tools=(WEATHER,)), streamed=streamed)
    assert [(made.provider_id, made.name, made.arguments) for made in reply.calls] == [
        ("a", "weather", {"city": "Oslo"}),
        ("b", "weather", {"city": "Málaga 😀"}),
    ]
    assert (reply.text, reply.finish_reason) == ("Let me see.", "tool_calls")
    history = (
        user("weather?"),
        assistant("Let me see.", call("c1-0", {"city": "Oslo"}), call("c1-1", {"city": "Málaga 😀"})),
        result("c1-0", "rain"),
        result("c1-1", "no such city", is_error=True),
    )
    assert ask(provider, request(*history, tools=(WEATHER,)), streamed=streamed).text == "Rain."
    sent = aimock.journal()[1]["body"]["messages"]
    assert [message.get("tool_call_id") for message in sent if message["role"] == "tool"] == ["c1-0", "c1-1"]


@streamed_or_not
def test_calls_without_text(provider: VendorProvider, aimock: AimockServer, streamed: bool) -> None:
    wanted = [{"id": f"call_{n}", "name": "weather", "arguments": "{}"} for n in range(15)]
    aimock.hold({"match": {"model": "m"}, "response": {"toolCalls": wanted}})
    reply = ask(provider, request(tools=(WEATHER,)), streamed=streamed)
    assert [made.provider_id for made in reply.calls] == [f"call_{n}" for n in range(15)]
    assert (reply.text, reply.finish_reason) == ("", "tool_calls")


@streamed_or_not
def test_a_silent_reply(wire: WireName, streamed: bool) -> None:
    with AimockServer([says("")]) as server:  # only from its file does aimock take an empty text
        provider = vendor(wire, server.wire(wire).url)
        reply = ask(provider, request(), streamed=streamed)
        provider.close()
    assert (reply.text, reply.calls, reply.finish_reason) == ("", (), "stop")


@streamed_or_not
def test_reasoning_is_not_taken_for_text(provider: VendorProvider, aimock: AimockServer, streamed: bool) -> None:
    aimock.hold(
        {"match": {"model": "claude-opus-4-6"}, "response": {"content": "Four.", "reasoning": "Two and two make four."}}
    )
    reply = ask(provider, request(model="claude-opus-4-6"), streamed=streamed)
    assert reply.text == "Four."


@streamed_or_not
def test_a_reply_that_was_cut_at_its_limit_says_so(
    provider: VendorProvider, aimock: AimockServer, streamed: bool
) -> None:
    aimock.hold({"match": {"model": "m"}, "response": {"content": "and then", "finishReason": "length"}})
    assert ask(provider, request(), streamed=streamed).finish_reason == "length"


@streamed_or_not
def test_retry_after_is_honoured(provider: VendorProvider, aimock: AimockServer, streamed: bool) -> None:
    aimock.hold(*fails(429, times=2, retryAfter=0.4), says("at last"))
    assert ask(provider, request(), streamed=streamed).text == "at last"
    assert aimock.statuses() == [429, 429, 200]
    times_ms = [entry["timestamp"] for entry in aimock.journal()]
    assert all(later - earlier >= 400 for earlier, later in pairwise(times_ms))


@streamed_or_not
def test_a_retry_after_beyond_the_time_is_not_waited_for(
    provider: VendorProvider, aimock: AimockServer, streamed: bool
) -> None:
    aimock.hold(*fails(429, times=9, retryAfter=60))
    with pytest.raises(ProviderError) as caught:
        ask(provider, request(timeout_s=30.0), streamed=streamed)
    assert (caught.value.kind, caught.value.retryable) == ("rate_limited", True)
    assert aimock.statuses() == [429]


@streamed_or_not
@pytest.mark.parametrize("status", [500, 503, 529])
def test_server_errors_are_retried(provider: VendorProvider, aimock: AimockServer, status: int, streamed: bool) -> None:
    aimock.hold(*fails(status, times=2), says("at last"))
    assert ask(provider, request(), streamed=streamed).text == "at last"
    assert aimock.statuses() == [status, status, 200]


@streamed_or_not
@pytest.mark.parametrize("status", [400, 401, 404])
def test_client_errors_are_not_retried(
    provider: VendorProvider, aimock: AimockServer, status: int, streamed: bool
) -> None:
    aimock.hold(*fails(status), says("never"))
    with pytest.raises(ProviderError, match="as told") as caught:
        ask(provider, request(), streamed=streamed)
    assert (caught.value.kind, caught.value.retryable) == ("refused", False)
    assert aimock.statuses() == [status]


@streamed_or_not
@pytest.mark.parametrize(
    ("rate", "action", "kind"),
    [
        ("dropRate", "drop", "server"),
        ("disconnectRate", "disconnect", "connection"),
        ("malformedRate", "malformed", "malformed"),
    ],
)
def test_a_fault_that_stays_is_named_after_the_retries(
    wire: WireName, aimock: AimockServer, rate: str, action: str, kind: str, streamed: bool
) -> None:
    provider = vendor(wire, aimock.wire(wire).url, RetryPolicy(first_s=0.05, max_attempts=3))
    aimock.hold(says("never"))
    aimock.break_by_chance(**{rate: 1.0})
    with pytest.raises(ProviderError) as caught:
        ask(provider, request(), streamed=streamed)
    provider.close()
    assert (caught.value.kind, caught.value.retryable) == (kind, True)
    assert [entry["response"].get("chaosAction") for entry in aimock.journal()] == [action] * 3


def test_all_is_answered_though_much_breaks(wire: WireName, aimock: AimockServer) -> None:
    provider = vendor(wire, aimock.wire(wire).url, RetryPolicy(first_s=0.02, max_attempts=30))
    aimock.hold(says("at last"))
    aimock.break_by_chance(dropRate=0.3, disconnectRate=0.3, malformedRate=0.3)

    def all_fired() -> bool:
        for streamed in (True, False):
            assert ask(provider, request(timeout_s=60), streamed=streamed).text == "at last"
        return aimock.chance_faults() == {"drop", "disconnect", "malformed"}

    wait_until(all_fired, "every fault fired", timeout_s=60)
    provider.close()


def test_chance_rate_limits_name_their_wait(provider: VendorProvider, aimock: AimockServer) -> None:
    aimock.hold(says("never"))
    aimock.break_by_chance(rateLimitRate=1.0)  # with Retry-After: 1
    with pytest.raises(ProviderError) as caught:
        ask(provider, request(timeout_s=1.9), streamed=True)
    assert caught.value.kind == "rate_limited"
    assert aimock.statuses() == [429, 429]
    first, second = (entry["timestamp"] for entry in aimock.journal())
    assert second - first >= 1000


def cut_at_first(after: int) -> list[Fixture]:
    """The first answer is cut after that many events, later ones are whole. The pauses send each by itself."""
    whole = says("one two three four", chunkSize=4, latency=20)
    return [{**whole, "match": {"model": "m", "sequenceIndex": 0}, "truncateAfterChunks": after}, whole]


def interruptions(aimock: AimockServer) -> list[str | None]:
    return [entry["response"].get("interruptReason") for entry in aimock.journal()]


@pytest.mark.parametrize("after", [4, 6])
def test_a_stream_that_is_cut_is_the_callers_to_repeat(
    provider: VendorProvider, aimock: AimockServer, after: int
) -> None:
    aimock.hold(*cut_at_first(after))
    asked = request()
    stream = provider.generate_stream(asked)
    shown = next(stream).text
    assert shown == "one "
    with pytest.raises(ProviderError) as caught:
        list(stream)
    assert (caught.value.kind, caught.value.retryable) == ("stream", True)
    assert interruptions(aimock) == ["truncateAfterChunks"]
    assert ask(provider, asked, streamed=True).text == "one two three four"


def test_a_stream_that_is_cut_before_its_first_word_is_repeated_here(
    provider: VendorProvider, aimock: AimockServer
) -> None:
    aimock.hold(*cut_at_first(1))
    assert ask(provider, request(), streamed=True).text == "one two three four"
    assert interruptions(aimock) == ["truncateAfterChunks", None]


def test_a_connection_that_drops_in_a_stream(provider: VendorProvider, aimock: AimockServer) -> None:
    slow = says("one two three four", chunkSize=1, latency=50)
    aimock.hold({**slow, "disconnectAfterMs": 500})
    with pytest.raises(ProviderError) as caught:
        list(provider.generate_stream(request(timeout_s=20)))
    assert (caught.value.kind, caught.value.retryable) == ("stream", True)
    (entry,) = aimock.journal()
    assert entry["response"]["interruptReason"] == "disconnectAfterMs"


@pytest.mark.parametrize(
    "profile", [{"ttft": 30_000}, {"ttft": 0, "tps": 5}], ids=["before the first word", "word by word"]
)
def test_a_slow_stream_ends_at_the_deadline(
    provider: VendorProvider, aimock: AimockServer, profile: dict[str, Any]
) -> None:
    aimock.hold(says("x" * 200, chunkSize=1, streamingProfile=profile))
    before = aimock.answered()["destroyed"]
    began = time.monotonic()
    with pytest.raises(ProviderError) as caught:
        list(provider.generate_stream(request(timeout_s=0.8)))
    assert (caught.value.kind, caught.value.retryable) == ("timeout", True)
    assert 0.8 <= time.monotonic() - began < 0.8 + LATE_S
    wait_until(lambda: aimock.answered()["destroyed"] == before + 1, "the server lost its client")


def test_an_abandoned_stream_is_hung_up(provider: VendorProvider, aimock: AimockServer) -> None:
    aimock.hold(says("x" * 2000, chunkSize=1, latency=20))
    before = aimock.answered()["destroyed"]
    for chunk in provider.generate_stream(request(timeout_s=60)):
        assert chunk.text == "x"
        break
    wait_until(lambda: aimock.answered()["destroyed"] == before + 1, "the server lost its client")


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        ("😀", "😀"),
        ("Hi 😀😀, 👨‍👩‍👧 and\u2028🏳️‍🌈!", "Hi 😀😀, 👨‍👩‍👧 and\u2028🏳️‍🌈!"),
        ("cut \ud83d", "cut \ufffd"),
        ("\ude00 first", "\ufffd first"),
        ("a \ud83d b", "a \ufffd b"),
    ],
    ids=["alone", "many", "first half", "second half", "half in the middle"],
)
@streamed_or_not
def test_emoji_in_halves(provider: VendorProvider, aimock: AimockServer, sent: str, text: str, streamed: bool) -> None:
    aimock.hold(says(sent, chunkSize=1))
    reply = ask(provider, request(), streamed=streamed)
    assert reply.text == text
    reply.model_dump_json().encode()
    # What was said goes back as history.
    assert ask(provider, request(user("a"), assistant(sent), user("b")), streamed=streamed).text == text


@streamed_or_not
def test_the_server_finds_no_fault_with_a_long_conversation(
    provider: VendorProvider, aimock: AimockServer, streamed: bool
) -> None:
    turns = [
        message
        for _ in range(40)
        for message in (
            user("weather?"),
            assistant("", call("c1-0", {"city": "Oslo"})),
            result("c1-0", "rain"),
            assistant("Rain."),
        )
    ]
    aimock.hold({"match": {"turnIndex": 80, "model": "m"}, "response": {"content": "Rain again."}})
    assert ask(provider, request(*turns, user("now?"), tools=(WEATHER,)), streamed=streamed).text
    sent = aimock.journal()[0]["body"]["messages"]
    asked = [made["id"] for message in sent for made in message.get("tool_calls") or ()]
    answered = [message["tool_call_id"] for message in sent if message["role"] == "tool"]
    assert asked == answered
    assert len(set(asked)) == 40
