"""A conversation in the roles that chat templates take."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq.adapters.models.openai.chat_wire import to_messages
from brainq.adapters.models.openai.provider import OpenAIProvider
from brainq.adapters.models.openai.roles import ROLES, Roles, require_roles, stricter_roles, to_roles
from brainq.contracts.message import Message
from brainq.errors import InvalidInput
from tests.support.chat_templates import Template, gemma, mistral, qwen
from tests.unit.engine.models.requests import assistant, call, result, system, user
from tests.unit.engine.turn.conversations import histories, unhurried

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
