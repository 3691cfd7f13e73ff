"""None"""

from __future__ import annotations

import json
from typing import Any

import pytest

from brainq.adapters.models.anthropic.provider import is_cache_worthwhile, with_breakpoints
from brainq.adapters.models.anthropic.wire import AnthropicStream, from_body, to_body, to_messages
from brainq.contracts.message import Message, ToolCall
from brainq.contracts.model import FinishKind, TokenUsage
from brainq.contracts.model_options import ModelOptions
from tests.unit.engine.models.requests import WEATHER, assistant, call, request, result, system, user


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(call_id: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "weather", "input": arguments}


def answer(call_id: str, words: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": words}


@pytest.mark.parametrize(
    ("messages", "prompt", "turns"),
    [
        pytest.param(
            [system("one"), system("two"), user("hi")], "one\n\ntwo", [("user", [text("hi")])], id="system apart"
        ),
        pytest.param(
            [user("hi"), assistant("yes"), system("hurry")],
            "",
            [("user", [text("hi")]), ("assistant", [text("yes")]), ("user", [text("hurry")])],
            id="a later system message keeps its place",
        ),
        pytest.param(
            [
                user("hi"),
                assistant("so", call("c1-0", {"a": 1}), call("c1-1", "oops")),
                result("c1-0", "r0"),
                result("c1-1", "r1", is_error=True),
                user("and?"),
            ],
            "",
            [
                ("user", [text("hi")]),
                ("assistant", [text("so"), use("c1-0", {"a": 1}), use("c1-1", {"_unparsed": "oops"})]),
                ("user", [answer("c1-0", "r0"), answer("c1-1", "r1") | {"is_error": True}, text("and?")]),
            ],
            id="results merged",
        ),
        pytest.param(
            [user("hi"), assistant("", call("c1-0", {})), user("quick"), result("c1-0", "r0")],
            "",
            [("user", [text("hi")]), ("assistant", [use("c1-0", {})]), ("user", [answer("c1-0", "r0"), text("quick")])],
            id="results first",
        ),
        pytest.param(
            [user("hi"), assistant(" "), user("there")],
            "",
            [("user", [text("hi"), text("there")])],
            id="blank messages left out",
        ),
        pytest.param([user("\ud83d\ude00 \ude00")], "", [("user", [text("😀 \ufffd")])], id="surrogates"),
    ],
)
def test_messages(messages: list[Message], prompt: str, turns: list[tuple[str, list[dict[str, Any]]]]) -> None:
    assert to_messages(messages) == (prompt, [{"role": role, "content": content} for role, content in turns])


def test_ids_that_repeat_over_turns_are_told_apart() -> None:
    turn = [assistant("", call("c1-0", {})), result("c1-0", "a")]
    _, turns = to_messages([user("hi"), *turn, user("again"), *turn])
    blocks = [block for message in turns for block in message["content"]]
    assert [block["id"] for block in blocks if block["type"] == "tool_use"] == ["c1-0", "c1-0_2"]
    assert [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"] == ["c1-0", "c1-0_2"]


def test_a_whole_request() -> None:
    assert to_body(request(system("s"), user("hi"), tools=(WEATHER,)), stream=True) == {
        "model": "m",
        "max_tokens": 4096,
        "system": "s",
        "messages": [{"role": "user", "content": [text("hi")]}],
        "tools": [{"name": "weather", "description": "The weather in a city", "input_schema": WEATHER.parameters}],
        "stream": True,
    }
    assert to_body(request(max_output_tokens=7), stream=False)["max_tokens"] == 7


USAGE = {"input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 1000, "output_tokens": 5}
COUNTED = TokenUsage(input_tokens=1110, output_tokens=5, cache_read_tokens=100, cache_creation_tokens=1000)


def test_a_whole_answer() -> None:
    reply = from_body(
        {
            "model": "claude-x",
            "stop_reason": "tool_use",
            "content": [{"type": "thinking"}, text("so "), text("be it"), use("t1", {"city": "Oslo"})],
            "usage": USAGE,
        }
    )
    assert (reply.text, reply.model, reply.finish_reason) == ("so be it", "claude-x", "tool_calls")
    assert reply.calls == (ToolCall(id="t1", name="weather", arguments={"city": "Oslo"}, provider_id="t1"),)
    assert reply.usage == COUNTED


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "tool_calls"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
        ("pause_turn", "pause_turn"),
        ("new", "new"),
        (None, ""),
    ],
)
def test_finish_reasons(theirs: str | None, ours: str) -> None:
    assert from_body({"content": [], "stop_reason": theirs}).finish_reason == ours
    stream = AnthropicStream()
    stream.feed({"type": "message_delta", "delta": {"stop_reason": theirs}})
    stream.feed({"type": "message_stop"})
    assert stream.reply().finish_reason == ours


@pytest.mark.parametrize(
    ("theirs", "finish"),
    [
        ("end_turn", FinishKind.WHOLE),
        ("tool_use", FinishKind.WHOLE),
        ("max_tokens", FinishKind.LENGTH),
        ("model_context_window_exceeded", FinishKind.LENGTH),
        ("refusal", FinishKind.FILTERED),
        ("pause_turn", FinishKind.BROKEN),
    ],
)
def test_whether_a_reply_is_whole(theirs: str, finish: FinishKind) -> None:
    assert from_body({"content": [], "stop_reason": theirs}).finish is finish


def test_a_streamed_call_that_was_cut_keeps_its_text_as_it_came() -> None:
    stream = AnthropicStream()
    for event in (
        start(0, {"type": "tool_use", "id": "t1", "name": "write", "input": {}}),
        piece(0, "input_json_delta", '{"text": "alice,10'),
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ):
        stream.feed(event)
    reply = stream.reply()
    assert (reply.finish, reply.calls[0].arguments) == (FinishKind.LENGTH, '{"text": "alice,10')


def start(index: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def piece(index: int, kind: str, words: str) -> dict[str, Any]:
    key = "text" if kind == "text_delta" else "partial_json"
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, key: words}}


def test_a_stream() -> None:
    stream = AnthropicStream()
    shown = [
        stream.feed(event)
        for event in (
            {"type": "message_start", "message": {"model": "claude-x", "usage": USAGE | {"output_tokens": 1}}},
            start(0, text("")),
            piece(0, "text_delta", "Hi \ud83d"),
            piece(0, "text_delta", "\ude00"),
            {"type": "content_block_stop", "index": 0},
            start(1, use("t1", {})),
            piece(1, "input_json_delta", '{"ci'),
            piece(1, "input_json_delta", 'ty": "Oslo"}'),
            start(2, use("t2", {})),
            start(3, use("t3", {})),
            piece(3, "input_json_delta", '{"ci'),
            {
                "type": "message_delta",
                "delta": {"stop_reason": "tool_use"},
                "usage": {"output_tokens": 5, "input_tokens": None},
            },
        )
    ]
    assert [chunk.text for chunk in shown if chunk] == ["Hi ", "😀", "", "", "", "", "", ""]
    assert not stream.complete
    stream.feed({"type": "message_stop"})
    assert stream.complete
    reply = stream.reply()
    assert [(call.id, call.arguments) for call in reply.calls] == [("t1", {"city": "Oslo"}), ("t2", {}), ("t3", '{"ci')]
    assert (reply.text, reply.finish_reason, reply.usage) == ("Hi 😀", "tool_calls", COUNTED)


# Cache breakpoints: four at most, on blocks that can have one, and a step finds what the one before left. Pure.


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
