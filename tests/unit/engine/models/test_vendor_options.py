"""ModelOptions on both vendors' wires, and what is left out once a model has refused it. Pure."""

from __future__ import annotations

from typing import Any

import pytest

from brainq.adapters.models.anthropic.provider import option_parameters, refused_option
from brainq.adapters.models.anthropic.thinking import max_tokens
from brainq.adapters.models.openai.provider import chat_parameters, responses_parameters
from brainq.adapters.models.vendor_provider import with_extra_parameters
from brainq.contracts.model_options import ModelOptions
from tests.unit.engine.models.requests import WEATHER, request

ALL: dict[str, Any] = {"temperature": 0.5, "top_p": 0.9, "stop": ("END",), "seed": 7, "parallel_tool_calls": False}


def openai(*, cache_key: bool = False, **options: Any) -> dict[str, Any]:
    asked = request(options=ModelOptions(**options), tools=(WEATHER,), session_id="acme:1")
    return chat_parameters(asked, cache_key=cache_key)


def anthropic(*refused: str, tools: bool = True, most: int | None = None, **options: Any) -> dict[str, Any]:
    asked = request(options=ModelOptions(**options), tools=(WEATHER,) if tools else (), max_output_tokens=most)
    return option_parameters(asked, {f"{what}: m" for what in refused})


def test_nothing_said_is_nothing_sent() -> None:
    assert openai() == anthropic() == {}


def test_all_of_it_on_openais_wire() -> None:
    assert openai(**ALL, tool_choice="required", reasoning_effort="low") == ALL | {
        "stop": ["END"],
        "tool_choice": "required",
        "reasoning_effort": "low",
    }
    assert openai(tool_choice="weather") == {"tool_choice": {"type": "function", "function": {"name": "weather"}}}


def test_all_of_it_in_openais_responses() -> None:
    options = ModelOptions(**ALL, tool_choice="weather", reasoning_effort="low")
    asked = request(options=options, tools=(WEATHER,))
    assert responses_parameters(asked, cache_key=False) == {
        "temperature": 0.5,
        "top_p": 0.9,
        "tool_choice": {"type": "function", "name": "weather"},
        "parallel_tool_calls": False,
        "reasoning": {"effort": "low"},
    }
    words = ModelOptions(tool_choice="required")
    asked = request(options=words, tools=(WEATHER,), session_id="acme:1")
    sent = responses_parameters(asked, cache_key=True)
    assert (sent["tool_choice"], len(sent["prompt_cache_key"])) == ("required", 32)


def test_all_of_it_on_anthropics_wire() -> None:
    assert anthropic(**ALL, tool_choice="required") == {
        "temperature": 0.5,
        "top_p": 0.9,
        "stop_sequences": ["END"],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
    }
    assert anthropic(tool_choice="weather") == {"tool_choice": {"type": "tool", "name": "weather"}}
    assert anthropic(tool_choice="none", parallel_tool_calls=False) == {"tool_choice": {"type": "none"}}
    assert anthropic(parallel_tool_calls=True) == {"tool_choice": {"type": "auto", "disable_parallel_tool_use": False}}


def test_a_request_without_tools_speaks_of_none() -> None:
    asked = request(options=ModelOptions(tool_choice="required", parallel_tool_calls=True))
    assert chat_parameters(asked, cache_key=False) == {}
    assert anthropic(tools=False, tool_choice="required", parallel_tool_calls=True) == {}


def test_a_sessions_cache_key_does_not_name_it() -> None:
    key = openai(cache_key=True)["prompt_cache_key"]
    assert len(key) == 32
    assert key == openai(cache_key=True)["prompt_cache_key"]
    assert "acme" not in key
    assert openai(cache_key=True, prompt_cache=False) == {}


ADAPTIVE = {"thinking": {"type": "adaptive"}}


@pytest.mark.parametrize(
    ("effort", "refused", "sent"),
    [
        ("high", (), ADAPTIVE | {"output_config": {"effort": "high"}}),
        ("minimal", (), ADAPTIVE | {"output_config": {"effort": "low"}}),
        ("xhigh", ("effort xhigh",), ADAPTIVE | {"output_config": {"effort": "high"}}),
        ("max", ("effort max", "effort high"), ADAPTIVE),
        ("low", ("effort low",), ADAPTIVE),
        ("high", ("thinking adaptive",), {"thinking": {"type": "enabled", "budget_tokens": 15_360}}),
        ("low", ("thinking adaptive",), {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
        ("high", ("thinking adaptive", "thinking enabled"), {}),
        ("none", (), {"thinking": {"type": "disabled"}}),
        ("none", ("thinking disabled",), {"thinking": {"type": "between_tools"}}),
        ("none", ("thinking disabled", "thinking between_tools"), {}),
    ],
)
def test_thinking_in_the_newest_form_that_a_model_takes(
    effort: str, refused: tuple[str, ...], sent: dict[str, Any]
) -> None:
    assert anthropic(*refused, reasoning_effort=effort) == sent


def test_a_budget_leaves_room_for_the_answer() -> None:
    old = "thinking adaptive"
    for most in (2048, 3000, 8000, 30_000):
        sent = anthropic(old, most=most, reasoning_effort="high")["thinking"]
        assert 1024 <= sent["budget_tokens"] <= most - 1024
    assert anthropic(old, most=2000, reasoning_effort="high") == {}
    assert "thinking" not in anthropic(old, reasoning_effort="high", tool_choice="required")
    assert max_tokens(request()) == 4096
    assert max_tokens(request(max_output_tokens=7, options=ModelOptions(reasoning_effort="high"))) == 7
    assert max_tokens(request(options=ModelOptions(reasoning_effort="low"))) == 4096 + 2048


@pytest.mark.parametrize(
    ("words", "refused", "named"),
    [
        ("`temperature` is deprecated for this model.", (), "temperature"),
        ("`temperature` and `top_p` cannot both be specified for this model.", (), "temperature"),
        ("adaptive thinking is not supported on this model", (), "thinking adaptive"),
        (
            "thinking.type: Input tag 'adaptive' found using 'type' does not match any of the expected tags",
            (),
            "thinking adaptive",
        ),
        ("This model does not support the effort parameter.", (), "effort xhigh"),
        ("This model does not support effort level 'high'.", ("effort xhigh",), "effort high"),
        (
            '"thinking.type.enabled" is not supported for this model. Use adaptive and "output_config.effort".',
            ("thinking adaptive",),
            "thinking enabled",
        ),
        ("tool_choice: 'none' is not supported by this model", (), "tool_choice"),
        ("messages: text content blocks must be non-empty", (), None),
        ("prompt is too long", (), None),
    ],
)
def test_what_a_refusal_is_about(words: str, refused: tuple[str, ...], named: str | None) -> None:
    options = ModelOptions(temperature=1, top_p=1, tool_choice="none", reasoning_effort="xhigh")
    asked = request(options=options, tools=(WEATHER,))
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": words}}
    found = refused_option(asked, 400, body, {f"{what}: m" for what in refused})
    assert found == (None if named is None else f"{named}: m")
    assert refused_option(asked, 500, body, ()) is None


def test_the_services_own_parameters_are_merged_into_the_body() -> None:
    options = ModelOptions(
        extra_headers={"x-team": "blue"}, extra_body={"top_k": 5, "output_config": {"task_budget": 9}}
    )
    body = {"model": "m", "extra_body": {"output_config": {"effort": "low"}, "temperature": 0}}
    assert with_extra_parameters(body, options) == {
        "model": "m",
        "extra_headers": {"x-team": "blue"},
        "extra_body": {"output_config": {"effort": "low", "task_budget": 9}, "temperature": 0, "top_k": 5},
    }
    assert with_extra_parameters(body, ModelOptions()) is body
