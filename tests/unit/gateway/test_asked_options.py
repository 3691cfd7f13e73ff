"""What OpenAI's clients may say of how the model is asked, and who may. Pure."""

from __future__ import annotations

from typing import Any

import pytest

from brainq.app.access import Caller, Verb
from brainq.errors import InvalidInput
from brainq.gateway.edge.problems import RequestRejected
from brainq.gateway.wires.openai.parameters import forced_choice, model_options

FREE = Caller("free", ("acme:",), frozenset({Verb.SUBMIT, Verb.CONFIGURE}))
PLAIN = Caller("plain", ("acme:",), frozenset({Verb.SUBMIT}))
GIVEN: dict[str, Any] = {
    "temperature": 0,
    "top_p": 0.5,
    "seed": 7,
    "parallel_tool_calls": False,
    "reasoning_effort": "low",
}
NAMED = {"type": "function", "function": {"name": "weather"}}


def test_who_may_configure_says_how_the_model_is_asked() -> None:
    sent = {**GIVEN, "stop": "END", "user": "ann", "messages": []}
    assert model_options(FREE, sent, "required") == {**GIVEN, "stop": ["END"], "tool_choice": "required"}
    assert model_options(FREE, {"temperature": None, "stop": ["", "END"]}, None) == {"stop": ["END"]}
    assert model_options(FREE, {}, None, effort="high") == {"reasoning_effort": "high"}
    with pytest.raises(InvalidInput, match=r"reasoning\.effort"):
        model_options(FREE, {}, None, effort="huge")


def test_what_clients_send_by_themselves_is_of_no_effect_for_others() -> None:
    assert model_options(PLAIN, GIVEN, None, effort="high") == {}
    assert model_options(PLAIN, {**GIVEN, "stop": []}, "weather") == {"tool_choice": "weather"}
    with pytest.raises(RequestRejected, match="stop: this needs the verb 'configure'"):
        model_options(PLAIN, {"stop": "END"}, None)


@pytest.mark.parametrize("stop", [["a", "b", "c", "d", "e"], [1], {"a": 1}])
def test_stops_that_make_no_sense_are_named(stop: object) -> None:
    with pytest.raises(InvalidInput, match="stop"):
        model_options(FREE, {"stop": stop}, None)


@pytest.mark.parametrize(
    ("choice", "forced"),
    [
        (None, None),
        ("auto", None),
        ("none", None),
        ("required", "required"),
        (NAMED, "weather"),
        ({"type": "function", "name": "weather"}, "weather"),
    ],
)
def test_a_call_may_be_forced_on_both_wires(choice: object, forced: str | None) -> None:
    assert forced_choice(choice, {"weather"}) == forced


@pytest.mark.parametrize(
    ("choice", "tools", "words"),
    [
        ("required", set[str](), "needs `tools`"),
        (NAMED, {"look"}, "not one of the request's `tools`"),
        ("any", {"look"}, "use auto"),
        ({"type": "allowed_tools", "name": "look"}, {"look"}, "use auto"),
        ({"type": "function"}, {"look"}, "use auto"),
    ],
)
def test_a_choice_that_cannot_be_made_is_named(choice: object, tools: set[str], words: str) -> None:
    with pytest.raises(InvalidInput, match="tool_choice") as refusal:
        forced_choice(choice, tools)
    assert words in refusal.value.problem
