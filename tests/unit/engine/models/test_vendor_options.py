"""What is sent to vendors: options, roles, and the words of the wire."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq.adapters.models.anthropic.provider import option_parameters, refused_option
from brainq.adapters.models.anthropic.thinking import max_tokens
from brainq.adapters.models.anthropic.wire import to_messages as to_anthropic
from brainq.adapters.models.openai.chat_wire import to_messages
from brainq.adapters.models.openai.chat_wire import to_messages as to_openai
from brainq.adapters.models.openai.provider import OpenAIProvider, chat_parameters, responses_parameters
from brainq.adapters.models.openai.roles import ROLES, Roles, require_roles, stricter_roles, to_roles
from brainq.adapters.models.vendor_provider import with_extra_parameters
from brainq.contracts.message import Message, ToolCall
from brainq.contracts.model_options import ModelOptions
from brainq.errors import InvalidInput
from tests.support.chat_templates import Template, gemma, mistral, qwen
from tests.unit.engine.models.requests import WEATHER, assistant, call, request, result, system, user
from tests.unit.engine.turn.conversations import histories, unhurried

# ModelOptions on both vendors' wires, and what is left out once a model has refused it. Pure.


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


# A conversation in the roles that chat templates take.


STEP = [assistant("Let me see.", call("c1-0", {}), call("c1-1", {})), result("c1-0", "a"), result("c1-1", "b")]
ORPHANED = (7, 8)  # the steps that `histories` tears apart, as no turn does


def plain(messages: list[Message]) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in messages]


def test_one_system_message_and_neighbours_joined() -> None:
    said = [system("Be good."), system("Today."), user("one"), user("two"), *STEP, user("three"), user("four")]
    assert plain(to_roles(said, "all")) == [
        ("system", "Be good.\n\nToday."),
        ("user", "one\n\ntwo"),
        *plain(STEP),
        ("user", "three\n\nfour"),
    ]


def test_a_later_system_message_keeps_its_place_and_says_what_it_is() -> None:
    found = plain(to_roles([system("Be good."), user("one"), system("Be quick."), user("two")], "all"))
    assert found == [("system", "Be good."), ("user", "one\n\n[System message]\nBe quick.\n\ntwo")]


def test_what_says_nothing_is_left_out() -> None:
    found = to_roles([system(""), user(" "), user("one"), assistant(), user("two"), *STEP], "all")
    assert plain(found) == [("user", "one\n\ntwo"), *plain(STEP)]
    assert found[1].calls == STEP[0].calls


def test_an_answer_and_the_calls_behind_it_are_one_message() -> None:
    found = to_roles([user("one"), assistant("So."), *STEP], "all")
    assert plain(found) == [("user", "one"), ("assistant", "So.\n\nLet me see."), *plain(STEP[1:])]
    assert found[1].calls == STEP[0].calls


def test_between_a_result_and_a_user_the_assistant_speaks() -> None:
    found = plain(to_roles([system("Be good."), user("one"), *STEP, user("two")], "alternating"))
    assert found[-2:] == [("assistant", "I have read these results."), ("user", "two")]
    assert found[0] == ("system", "Be good.")


def test_a_conversation_begins_with_a_user() -> None:
    assert plain(to_roles([assistant("Hello!"), user("one")], "alternating"))[0] == ("user", "Go on.")
    assert plain(to_roles([system("Be good."), assistant("Hello!")], "no_system"))[0] == ("user", "Be good.")


def test_the_system_message_stands_at_the_head_of_the_users() -> None:
    assert plain(to_roles([system("Be good."), user("one")], "no_system")) == [("user", "Be good.\n\none")]


@unhurried
@given(histories(), st.sampled_from([(qwen, "all"), (mistral, "alternating"), (gemma, "no_system")]))
def test_every_conversation_is_taken(history: list[Message], pair: tuple[Template, Roles]) -> None:
    template, roles = pair
    whole = [message for message in history if message.step not in ORPHANED]
    template(to_messages([system("Be good."), *whole, user("Well?")], roles))


@pytest.mark.parametrize(
    ("words", "status", "now", "wanted"),
    [
        ("System role not supported", 400, "all", "no_system"),
        ("System role not supported", 400, "alternating", "no_system"),
        ("System role not supported", 400, "no_system", None),
        ("conversation roles must alternate user/assistant/...", 500, "all", "alternating"),
        ("conversation roles must alternate user/assistant/...", 400, "no_system", None),
        ("Unexpected role 'user' after role 'tool'", 400, "all", "alternating"),
        ("Tool call IDs should be alphanumeric strings with length 9!", 400, "all", "alternating"),
        ("System role not supported", 401, "all", None),
        ("no such model", 404, "all", None),
    ],
)
def test_what_a_refusal_asks_for(words: str, status: int, now: Roles, wanted: Roles | None) -> None:
    assert stricter_roles(status, {"error": {"message": words}}, now) == wanted


def test_roles_that_are_none_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [require_roles("roles", roles) for roles in ROLES] == list(ROLES)
    monkeypatch.setenv("OPENAI_CHAT_ROLES", "sytem")
    with pytest.raises(InvalidInput, match="must be one of all, alternating, no_system, got 'sytem'"):
        OpenAIProvider(api_key="k")


# Names of calls on the wire. A service refuses the whole request over one that no tool can have.


TAKEN = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


@pytest.mark.parametrize(
    ("made_up", "sent"),
    [
        ("count", "count"),
        ("", "unnamed"),
        ("functions.count apples", "functions_count_apples"),
        ("zähle", "z_hle"),
        ("count" * 40, ("count" * 40)[:64]),
    ],
)
def test_a_name_that_a_model_made_up_can_be_sent_back(made_up: str, sent: str) -> None:
    said = [
        Message(role="user", content="Count."),
        Message(role="assistant", calls=(ToolCall(id="c1-0", name=made_up, arguments={}),)),
        Message(role="tool", call_id="c1-0", name=made_up, content="There is no such tool."),
    ]
    _, anthropic = to_anthropic(said)

    assert TAKEN.fullmatch(sent)
    assert to_openai(said)[1]["tool_calls"][0]["function"]["name"] == sent
    assert anthropic[1]["content"][0]["name"] == sent
