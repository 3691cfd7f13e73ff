"""Whole turns whose model writes without end: what comes is read so far, and the ending says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from brainq import Brain, Effect, Limits, ScriptedProvider
from brainq.adapters.models.anthropic.provider import AnthropicProvider
from brainq.adapters.models.openai.provider import OpenAIProvider, OpenAIResponsesProvider
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import TurnResult
from brainq.engine.models.providers import Provider
from brainq.engine.models.scripted import calls
from tests.integration.engine.models.wire_server import Exchange, WireServer
from tests.support.pump import Pump

MOST = 2_000
PIECE = "so it goes on and on, \u6f6e by \u6f6e. "
SPOKEN = {
    "chat": {"choices": [{"delta": {"content": PIECE}}]},
    "responses": {"type": "response.output_text.delta", "delta": PIECE},
    "anthropic": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": PIECE}},
}
CALL = {"index": 0, "id": "c", "function": {"name": "pay", "arguments": '{"to": "ann'}}
CALLED = {
    "chat": {"choices": [{"delta": {"tool_calls": [CALL]}}]},
    "responses": {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "[" * 20},
    "anthropic": {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "input_json_delta", "partial_json": "[" * 20},
    },
}
OPENED = {
    "responses": {
        "type": "response.output_item.added",
        "output_index": 0,
        "item": {"type": "function_call", "id": "i", "call_id": "c", "name": "pay", "arguments": ""},
    },
    "anthropic": {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "tool_use", "id": "c", "name": "pay", "input": {}},
    },
}


@pytest.fixture
def server() -> Iterator[WireServer]:
    with WireServer() as made:
        yield made


def provider(server: WireServer, wire: str) -> Provider:
    if wire == "anthropic":
        return AnthropicProvider(base_url=server.url, api_key="k")
    made = OpenAIResponsesProvider if wire == "responses" else OpenAIProvider
    return made(base_url=f"{server.url}/v1", api_key="k")


def asked(pumps: Callable[..., Pump], model: Provider, **limits: Any) -> tuple[TurnResult, list[str]]:
    """The result, and what ran."""
    brain, ran = Brain("b", model, limits=Limits(**limits)), list[str]()

    @brain.tool(effect=Effect.NETWORK)
    def pay(to: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Pay."""
        ran.append(to)
        return "r" * 1_500

    pump = pumps(brain, max_reply_bytes=MOST)
    return pump.finish(pump.submit("s1", "Write.")), ran


@pytest.mark.parametrize("wire", ["chat", "responses", "anthropic"])
@pytest.mark.parametrize("events", [SPOKEN, CALLED], ids=["text", "arguments"])
def test_a_reply_without_end_ends_the_turn(
    server: WireServer, pumps: Callable[..., Pump], wire: str, events: dict[str, Any]
) -> None:
    def endless(exchange: Exchange) -> None:
        exchange.begin()
        if events is CALLED and wire in OPENED:
            exchange.event(OPENED[wire])
        for _ in range(100_000):
            exchange.event(events[wire])

    server.otherwise = endless
    result, ran = asked(pumps, provider(server, wire))
    assert (result.ending, result.stop_reason, ran) == (Ending.COMPLETED, StopReason.LENGTH, [])
    assert "grew larger than 2,000 bytes (BRAINQ_MAX_REPLY_BYTES)" in result.text
    assert len(server.bodies) == 1, "another try would grow as large"
    (lost,) = result.spends
    assert (lost.kind, lost.estimated) == ("lost", True)
    assert MOST // 4 <= lost.output_tokens <= MOST


def whole(exchange: Exchange) -> None:
    choice = {"message": {"content": PIECE * MOST}, "finish_reason": "stop"}
    exchange.send_json(200, {"choices": [choice]})


def one_line(exchange: Exchange) -> None:
    exchange.begin()
    exchange.piece(b'data: {"choices": [{"delta": {"content": "')
    for _ in range(1_000):
        exchange.piece(b"a" * 65_536)


@pytest.mark.parametrize("answer", [whole, one_line])
def test_what_is_not_cut_into_events_is_bounded_too(
    server: WireServer, pumps: Callable[..., Pump], answer: Callable[[Exchange], None]
) -> None:
    server.otherwise = answer
    result, _ = asked(pumps, provider(server, "chat"))
    assert (result.stop_reason, len(server.bodies)) == (StopReason.LENGTH, 1)
    assert "(BRAINQ_MAX_REPLY_BYTES)" in result.text
    assert [spend.output_tokens >= MOST // 4 for spend in result.spends] == [True]


def test_the_replies_and_results_of_a_turn_are_bounded_together(pumps: Callable[..., Pump]) -> None:
    def answer(request: ModelRequest) -> ModelReply:
        return calls(("pay", {"to": f"{request.step:04}" + "x" * 500}))

    result, ran = asked(pumps, ScriptedProvider(rules=answer), max_steps=30)
    assert (result.ending, result.stop_reason) == (Ending.COMPLETED, StopReason.LENGTH)
    assert [to[:4] for to in ran] == ["0001", "0002", "0003", "0004"], "each step leaves some 2,000 bytes"
    assert "larger than 8,000 bytes (4 times BRAINQ_MAX_REPLY_BYTES)" in result.text
