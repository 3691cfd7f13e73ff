"""Whole turns of models that think, over the vendors' own SDKs: servers that refuse a request without its reasoning."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from brainq import Brain, Effect, ModelOptions
from brainq.adapters.models.anthropic.provider import AnthropicProvider
from brainq.adapters.models.openai.provider import OpenAIProvider
from brainq.adapters.models.vendor_provider import VendorProvider
from brainq.contracts.status import Ending
from tests.integration.engine.models.thinking_services import Claude, DeepSeek, beginning_read_again
from tests.integration.engine.models.wire_server import Exchange, WireServer
from tests.support.pump import Pump
from tests.unit.engine.models.requests import request
from tests.unit.engine.models.test_reasoning import THOUGHT


@pytest.fixture
def anthropic(wire: WireServer) -> Iterator[AnthropicProvider]:
    made = AnthropicProvider(base_url=wire.url, api_key="k")
    made.warm_up()
    yield made
    made.close()


@pytest.fixture
def openai(wire: WireServer) -> Iterator[OpenAIProvider]:
    made = OpenAIProvider(base_url=f"{wire.url}/v1", api_key="k")
    made.warm_up()
    yield made
    made.close()


def thinking_brain(provider: VendorProvider, **fields: Any) -> Brain:
    brain = Brain("thinks", provider, options=ModelOptions(reasoning_effort="high"), **fields)

    @brain.tool(effect=Effect.READ_ONLY)
    def weather(n: int) -> str:
        return f"rain {n}"

    return brain


def ask(pump: Pump, session: str = "s1") -> Any:
    handle = pump.submit(session, "Does it rain?")
    result = pump.finish(handle)
    assert (result.ending, result.text) == (Ending.COMPLETED, "It rains."), result.error
    return handle


def test_claudes_thinking_goes_back_with_the_result_and_not_with_the_next_turn(
    wire: WireServer, anthropic: AnthropicProvider, pumps: Callable[..., Pump]
) -> None:
    wire.otherwise = claude = Claude(wire)
    pump = pumps(thinking_brain(anthropic))
    handle = ask(pump)
    ask(pump)
    assert claude.wrong == []
    assert len(wire.bodies) == 4
    (said,) = [message for message in handle.transcript() if message.calls]
    assert [one.text for one in said.reasoning if one.text] == [THOUGHT["thinking"]]
    assert said.content == "Let me look. "
    events = list(handle.events())
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    deltas = [event for event in events if event.kind.endswith(".delta")]
    words = {
        (kind, step): "".join(str(one.data["text"]) for one in deltas if (one.kind, one.data["step"]) == (kind, step))
        for kind, step in dict.fromkeys((one.kind.value, one.data["step"]) for one in deltas)
    }
    assert list(words.items()) == [
        (("reasoning.delta", 1), THOUGHT["thinking"]),
        (("text.delta", 1), "Let me look. "),
        (("text.delta", 2), "It rains."),
    ]


def test_thinking_that_is_not_taken_back_is_left_out_of_that_request(
    wire: WireServer, anthropic: AnthropicProvider, pumps: Callable[..., Pump]
) -> None:
    wire.otherwise = claude = Claude(wire)
    claude.refuses = 1
    pump = pumps(thinking_brain(anthropic))
    ask(pump)
    assert len(wire.bodies) == 3
    assert [json.loads(wrong)[0]["type"] for wrong in claude.wrong] == ["text"], "sent again without"
    claude.wrong.clear()
    ask(pump, "s2")
    assert claude.wrong == [], "the next one is sent with it"


def test_a_server_that_wants_all_its_reasoning_back_gets_it_turns_later(
    wire: WireServer, openai: OpenAIProvider, pumps: Callable[..., Pump]
) -> None:
    wire.otherwise = DeepSeek(wire)
    pump = pumps(thinking_brain(openai))
    ask(pump)
    ask(pump)
    sent = [[one for one in body["messages"] if one["role"] == "assistant"] for body in wire.bodies]
    assert [len(replies) for replies in sent] == [0, 1, 2, 3]
    answer = sent[-1][1]
    assert answer == {"role": "assistant", "content": "It rains."}, "what led to an answer stays here"


def test_reasoning_is_not_in_the_sql_of_a_brain_that_keeps_content_out(
    wire: WireServer, openai: OpenAIProvider, pumps: Callable[..., Pump]
) -> None:
    wire.otherwise = DeepSeek(wire)
    pump = pumps(thinking_brain(openai, redact_logs=True))
    turn_id = ask(pump).turn_id
    path = Path(pump.settings.sql_url.get_secret_value().removeprefix("sqlite:///"))
    kept = b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))
    assert turn_id.encode() in kept
    assert b"I look first" not in kept


def test_a_template_that_opens_the_tag_is_learned(wire: WireServer, openai: OpenAIProvider) -> None:
    def thinks(exchange: Exchange) -> None:
        exchange.begin()
        for word in ("Hm.\n</th", "ink>\n\nIt ", "rains."):
            exchange.event({"choices": [{"delta": {"content": word}}]})
        exchange.event({"choices": [{"delta": {}, "finish_reason": "stop"}]})
        exchange.event("[DONE]")
        exchange.finish()

    wire.answers = [thinks, thinks]
    told: list[tuple[str, str]] = []
    for _ in range(2):
        *chunks, last = openai.generate_stream(request())
        assert last.reply is not None
        assert (last.reply.text, last.reply.reasoning[0].text.strip()) == ("It rains.", "Hm.")
        told.append(("".join(c.text for c in chunks), "".join(c.reasoning for c in chunks).strip()))
    assert told == [("Hm.\n</think>\n\nIt rains.", ""), ("It rains.", "Hm.")]


def test_a_turns_steps_read_what_the_step_before_left(
    wire: WireServer, anthropic: AnthropicProvider, pumps: Callable[..., Pump]
) -> None:
    wire.otherwise = Claude(wire)
    ask(pumps(thinking_brain(anthropic)))
    beginning_read_again(*wire.bodies)


def test_a_server_that_knows_no_breakpoints_is_asked_without(
    wire: WireServer, anthropic: AnthropicProvider, pumps: Callable[..., Pump]
) -> None:
    claude = Claude(wire)

    def old(exchange: Exchange) -> None:
        if "cache_control" in json.dumps(wire.bodies[-1]):
            return claude.refuse(exchange, "tools.0.custom.cache_control: Extra inputs are not permitted")
        return claude(exchange)

    wire.otherwise = old
    ask(pumps(thinking_brain(anthropic)))
    assert ["cache_control" in json.dumps(body) for body in wire.bodies] == [True, False, False]
