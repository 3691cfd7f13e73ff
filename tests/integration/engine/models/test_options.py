"""ModelOptions over the vendors' own SDKs: what is sent, and what is left out once a model has refused it."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from brainq.adapters.models.anthropic.provider import AnthropicProvider
from brainq.adapters.models.openai.provider import OpenAIProvider
from brainq.contracts.model_options import ModelOptions
from brainq.errors import ProviderError
from tests.integration.engine.models.asking import ask, streamed_or_not
from tests.integration.engine.models.wire_server import Exchange, WireServer
from tests.unit.engine.models.requests import WEATHER, request

ASKED = ModelOptions(
    temperature=0,
    top_p=0.9,
    stop=("END",),
    tool_choice="required",
    parallel_tool_calls=False,
    reasoning_effort="low",
    extra_headers={"x-team": "blue"},
    extra_body={"top_k": 5},
)


def openai_answer(exchange: Exchange) -> None:
    exchange.send_json(200, {"choices": [{"message": {"content": "Hi."}, "finish_reason": "stop"}]})


def anthropic_answer(exchange: Exchange) -> None:
    exchange.send_json(200, {"content": [{"type": "text", "text": "Hi."}], "stop_reason": "end_turn"})


def refuses(words: str) -> Any:
    def refuse(exchange: Exchange) -> None:
        exchange.send_json(400, {"error": {"type": "invalid_request_error", "message": words}})

    return refuse


@streamed_or_not
def test_openai_is_asked_so(wire: WireServer, openai: OpenAIProvider, streamed: bool) -> None:
    wire.answers = [openai_answer]
    ask(openai, request(options=ASKED, tools=(WEATHER,), session_id="s1"), streamed=streamed)
    (body,) = wire.bodies
    assert {name: body.get(name) for name in (*ASKED.explicit(), "top_k", "prompt_cache_key")} == {
        **ASKED.explicit(),
        "stop": ["END"],
        "top_k": 5,
        "extra_headers": None,
        "extra_body": None,
        "prompt_cache_key": None,  # it is OpenAI's own, and a server of another may refuse it
    }
    assert wire.headers[0]["x-team"] == "blue"


@streamed_or_not
def test_anthropic_is_asked_so(wire: WireServer, anthropic: AnthropicProvider, streamed: bool) -> None:
    wire.answers = [anthropic_answer]
    ask(anthropic, request(options=ASKED, tools=(WEATHER,)), streamed=streamed)
    (body,) = wire.bodies
    assert {name: body[name] for name in ("temperature", "top_p", "stop_sequences", "top_k")} == {
        "temperature": 0,
        "top_p": 0.9,
        "stop_sequences": ["END"],
        "top_k": 5,
    }
    assert body["tool_choice"] == {"type": "any", "disable_parallel_tool_use": True}
    assert (body["thinking"], body["output_config"]) == ({"type": "adaptive"}, {"effort": "low"})
    assert wire.headers[0]["x-team"] == "blue"


def test_what_a_model_refuses_is_left_out_for_it_alone(
    wire: WireServer, openai: OpenAIProvider, caplog: pytest.LogCaptureFixture
) -> None:
    told = "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1)."
    wire.answers = [refuses(told), *[openai_answer] * 3]
    options = ModelOptions(temperature=0, seed=7)
    with caplog.at_level(logging.WARNING, logger="brainq"):
        for model in ("o", "o", "p"):
            openai.generate(request(options=options, model=model))
    assert [(body["model"], "temperature" in body) for body in wire.bodies] == [
        ("o", True),
        ("o", False),
        ("o", False),
        ("p", True),
    ]
    assert all(body["seed"] == 7 for body in wire.bodies)
    assert len([record for record in caplog.records if "refuses" in record.getMessage()]) == 1


def test_an_older_claude_is_given_a_budget(wire: WireServer, anthropic: AnthropicProvider) -> None:
    wire.answers = [
        refuses("adaptive thinking is not supported on this model"),
        refuses("`temperature` may only be set to 1 when thinking is enabled."),
        anthropic_answer,
        anthropic_answer,
    ]
    options = ModelOptions(reasoning_effort="medium", temperature=0)
    for _ in range(2):
        anthropic.generate(request(options=options))
    sent = [(body.get("thinking"), "output_config" in body, "temperature" in body) for body in wire.bodies]
    budget = {"type": "enabled", "budget_tokens": 8192}
    assert sent == [
        ({"type": "adaptive"}, True, True),
        (budget, False, True),
        (budget, False, False),
        (budget, False, False),
    ]
    assert {body["max_tokens"] for body in wire.bodies} == {4096 + 8192}


def test_what_only_code_said_is_the_services_to_refuse(wire: WireServer, openai: OpenAIProvider) -> None:
    wire.answers = [refuses("Unknown parameter: 'sampler'.")]
    with pytest.raises(ProviderError, match="sampler"):
        openai.generate(request(options=ModelOptions(extra_body={"sampler": 1})))
    assert wire.bodies[0]["sampler"] == 1


def test_an_option_that_a_wire_does_not_have_is_told_once(
    wire: WireServer, anthropic: AnthropicProvider, caplog: pytest.LogCaptureFixture
) -> None:
    wire.answers = [anthropic_answer, anthropic_answer]
    with caplog.at_level(logging.WARNING, logger="brainq"):
        for _ in range(2):
            anthropic.generate(request(options=ModelOptions(seed=7)))
    assert all("seed" not in body for body in wire.bodies)
    assert len([record for record in caplog.records if "no such option" in record.getMessage()]) == 1
