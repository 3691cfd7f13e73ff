"""Cache breakpoints: four at most, on blocks that can have one, and a step finds what the one before left. Pure."""

from __future__ import annotations

import json
from typing import Any

import pytest

from brainq.contracts.message import Message
from brainq.contracts.model_options import ModelOptions
from brainq.models.vendors.anthropic.provider import is_cache_worthwhile, with_breakpoints
from brainq.models.vendors.anthropic.wire import to_body
from tests.unit.models.requests import WEATHER, assistant, call, request, result, system, user

HERE = {"type": "ephemeral"}


def turn_at(step: int, calls: int = 2) -> list[Message]:
    """The messages of a turn's step, with an earlier turn before it."""
    said = [system("Be brief."), user("hi"), assistant("Hello."), user("Does it rain?")]
    for number in range(1, step):
        made = [call(f"c{number}-{index}", {"n": index}) for index in range(calls)]
        said += [assistant("Let me see.", *made), *(result(one.id, "rain " * 50) for one in made)]
    return said


def sent(step: int, calls: int = 2) -> dict[str, Any]:
    return with_breakpoints(to_body(request(*turn_at(step, calls), tools=(WEATHER, WEATHER)), stream=False))


def read(body: dict[str, Any]) -> list[tuple[bytes, bool]]:
    """The request as the service reads it: tools, system, then each block of each message; whether it is kept there."""
    blocks = [("tools", block) for block in body.get("tools", ())]
    blocks += [("system", block) for block in body.get("system", ())]
    blocks += [(message["role"], block) for message in body["messages"] for block in message["content"]]
    return [
        (
            json.dumps([where, {name: value for name, value in block.items() if name != "cache_control"}]).encode(),
            block.get("cache_control") == HERE,
        )
        for where, block in blocks
    ]


@pytest.mark.parametrize("calls", [1, 2, 40])
@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_a_step_finds_all_that_the_one_before_it_read(step: int, calls: int) -> None:
    before, now = read(sent(step, calls)), read(sent(step + 1, calls))
    kept = max(place for place, (_, is_kept) in enumerate(before) if is_kept)
    assert kept == len(before) - 1, "to its end"
    assert [text for text, _ in now[: kept + 1]] == [text for text, _ in before], "byte for byte"
    assert now[kept][1], "and looks for it right there: the service looks back over 20 blocks only"


def test_four_at_most_and_where() -> None:
    for step in (1, 2, 5):
        body = sent(step)
        assert sum(is_kept for _, is_kept in read(body)) <= 4
        assert body["tools"][-1]["cache_control"] == body["system"][-1]["cache_control"] == HERE
        assert "cache_control" not in body["tools"][0]


def test_what_is_marked_is_the_same_request_otherwise() -> None:
    plain = to_body(request(*turn_at(3), tools=(WEATHER,)), stream=False)
    before = json.dumps(plain)
    marked = with_breakpoints(plain)
    assert json.dumps(plain) == before, "what was given is not changed"
    assert marked["system"][0]["text"] == plain["system"]
    assert (
        json.loads(json.dumps(marked["messages"]).replace(', "cache_control": {"type": "ephemeral"}', ""))
        == (plain["messages"])
    )
    bare = with_breakpoints(to_body(request(user("hi")), stream=False))
    assert set(bare) == {"model", "max_tokens", "messages"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"tools": (WEATHER,)}, True),
        ({}, False),
        ({"goes_on": True}, True),
        ({"tools": (WEATHER,), "purpose": "judge"}, False),
        ({"options": ModelOptions(prompt_cache=True)}, True),
        ({"tools": (WEATHER,), "options": ModelOptions(prompt_cache=False)}, False),
    ],
)
def test_where_it_pays(given: dict[str, Any], expected: bool) -> None:
    said = turn_at(1) if given.pop("goes_on", False) else [user("hi")]
    assert is_cache_worthwhile(request(*said, **given)) is expected
