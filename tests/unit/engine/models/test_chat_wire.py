from __future__ import annotations

import json
from typing import Any

import pytest

from brainq.adapters.models.openai.chat_wire import OpenAIStream, from_body, is_strict, to_body, to_messages
from brainq.adapters.models.wire import parse_arguments
from brainq.contracts.message import Message, ToolCall
from brainq.contracts.model import FinishKind, TokenUsage
from brainq.errors import ProviderError
from tests.unit.engine.models.requests import WEATHER, assistant, call, request, result, system, user


def wire_call(call_id: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "weather", "arguments": arguments}}


@pytest.mark.parametrize(
    ("message", "wire"),
    [
        (system("be kind"), {"role": "system", "content": "be kind"}),
        (user("hi"), {"role": "user", "content": "hi"}),
        (user("\ud83d\ude00 \ud83d"), {"role": "user", "content": "😀 \ufffd"}),
        (assistant("hello"), {"role": "assistant", "content": "hello"}),
        (
            assistant("", call("c1-0", {"city": "Oslo"})),
            {"role": "assistant", "content": None, "tool_calls": [wire_call("c1-0", '{"city": "Oslo"}')]},
        ),
        (
            assistant("so", call("c1-0", '{"city": "Oslo"')),
            {
                "role": "assistant",
                "content": "so",
                "tool_calls": [wire_call("c1-0", json.dumps({"_unparsed": '{"city": "Oslo"'}))],
            },
        ),
        (result("c1-0", "rain"), {"role": "tool", "tool_call_id": "c1-0", "content": "rain"}),
    ],
)
def test_messages(message: Message, wire: dict[str, Any]) -> None:
    assert to_messages([message]) == [wire]
    json.dumps(wire, ensure_ascii=False).encode()


def test_ids_that_repeat_over_turns_are_told_apart() -> None:
    turn = [assistant("", call("c1-0", {}), call("c1-1", {})), result("c1-0", "a"), result("c1-1", "b")]
    wire = to_messages([*turn, user("again"), *turn])
    ids = [part["id"] for message in wire for part in message.get("tool_calls", ())]
    answered = [message["tool_call_id"] for message in wire if message["role"] == "tool"]
    assert ids == answered == ["c1-0", "c1-1", "c1-0_2", "c1-1_2"]


def test_a_whole_request() -> None:
    body = to_body(
        request(tools=(WEATHER,), output_schema={"type": "object"}, max_output_tokens=9, model="gpt"),
        stream=True,
        max_tokens_key="max_tokens",
    )
    assert body == {
        "model": "gpt",
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "weather",
                    "description": "The weather in a city",
                    "parameters": WEATHER.parameters,
                },
            }
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "reply", "schema": {"type": "object"}, "strict": False},
        },
        "max_tokens": 9,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert to_body(request(), stream=False, max_tokens_key="max_tokens").keys() == {"model", "messages"}


def test_strict_schemas() -> None:
    inner = {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False}
    assert is_strict(inner)
    assert not is_strict(inner | {"required": []})
    assert not is_strict({"type": "array", "items": inner | {"additionalProperties": True}})


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        ("  ", {}),
        ('{"a": ', '{"a": '),
        ("[1]", "[1]"),
        ("null", {}),
        ('{"a": "\\ud83d"}', {"a": "\ufffd"}),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_arguments(text: str, arguments: dict[str, Any] | str) -> None:
    assert parse_arguments(text) == arguments


def test_a_whole_answer() -> None:
    reply = from_body(
        {
            "model": "gpt-x",
            "choices": [
                {
                    "finish_reason": "tool_calls",
                    "message": {"content": None, "tool_calls": [wire_call("w1", '{"city": "Oslo"}')]},
                }
            ],
            "usage": {
                "prompt_tokens": 10,
                "completion_tokens": 3,
                "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
            },
        }
    )
    assert reply.calls == (ToolCall(id="w1", name="weather", arguments={"city": "Oslo"}, provider_id="w1"),)
    assert reply.usage == TokenUsage(input_tokens=10, output_tokens=3, cache_read_tokens=4, cache_creation_tokens=2)
    assert (reply.text, reply.model, reply.finish_reason) == ("", "gpt-x", "tool_calls")


def test_an_answer_without_what_may_be_missing() -> None:
    reply = from_body({"choices": [{"message": {"refusal": "no", "tool_calls": [{"function": {"name": "t"}}]}}]})
    assert reply.text == "no"
    assert reply.calls == (ToolCall(id="call_0", name="t", arguments={}, provider_id="call_0"),)
    assert reply.usage == TokenUsage()


@pytest.mark.parametrize(
    ("message", "word", "finish"),
    [
        ({"content": "hi"}, "stop", FinishKind.WHOLE),
        ({"tool_calls": [{"function": {"name": "x", "arguments": "{}"}}]}, "function_call", FinishKind.WHOLE),
        ({"content": "hi"}, None, FinishKind.WHOLE),
        ({"content": "half an ans"}, "length", FinishKind.LENGTH),
        ({"content": ""}, "content_filter", FinishKind.FILTERED),
        ({"refusal": "I cannot help with that."}, "stop", FinishKind.FILTERED),
        ({"content": "hm"}, "never heard of", FinishKind.BROKEN),
    ],
)
def test_whether_a_reply_is_whole(message: dict[str, Any], word: str | None, finish: FinishKind) -> None:
    assert from_body({"choices": [{"message": message, "finish_reason": word}]}).finish is finish
    assert read(delta(**message), delta(word)).reply().finish is finish


def test_a_streamed_call_that_was_cut_keeps_its_text_as_it_came() -> None:
    reply = read(delta(tool_calls=[part('{"text": "alice,10', index=0, id="a", name="write")]), delta("length")).reply()
    assert (reply.finish, reply.calls[0].arguments) == (FinishKind.LENGTH, '{"text": "alice,10')


@pytest.mark.parametrize("body", [{}, {"choices": []}, {"choices": None}])
def test_an_answer_without_a_choice_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="no choices"):
        from_body(body)


def delta(finish: str | None = None, **parts: Any) -> dict[str, Any]:
    return {"model": "gpt-x", "choices": [{"index": 0, "delta": parts, "finish_reason": finish}]}


def part(arguments: Any = "", **rest: Any) -> dict[str, Any]:
    name = rest.pop("name", None)
    return rest | {"function": {"arguments": arguments} | ({"name": name} if name else {})}


def read(*chunks: dict[str, Any]) -> OpenAIStream:
    stream = OpenAIStream()
    for chunk in chunks:
        stream.feed(chunk)
    return stream


def test_streamed_text() -> None:
    stream = OpenAIStream()
    shown = [
        stream.feed(delta(role="assistant", content="")),
        stream.feed(delta(content="Hi \ud83d")),
        stream.feed(delta(content="\ude00")),
    ]
    assert [chunk and chunk.text for chunk in shown] == [None, "Hi ", "😀"]
    assert not stream.complete
    stream.feed(delta("stop"))
    stream.feed({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}})
    assert stream.complete
    assert stream.reply().text == "Hi 😀"
    assert stream.reply().usage == TokenUsage(input_tokens=5, output_tokens=2)


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(
            [
                part(index=0, id="a", name="x"),
                part('{"n"', index=0),
                part(index=1, id="b", name="y"),
                part(": 1}", index=0),
                part('{"n": 2}', index=1),
            ],
            id="interleaved by index",
        ),
        pytest.param(
            [part('{"n": 1}', index=0, id="a", name="x"), part('{"n": 2}', index=0, id="b", name="y")],
            id="one index for all",
        ),
        pytest.param([part('{"n"', id="a", name="x"), part(": 1}"), part('{"n": 2}', id="b", name="y")], id="no index"),
        pytest.param(
            [
                part('{"n"', index=0, id="a", name="x"),
                part(": 1}", index=0, id="a", name="x"),
                part('{"n": 2}', index=1, id="b", name="y"),
            ],
            id="id and name repeated",
        ),
    ],
)
def test_streamed_calls(parts: list[dict[str, Any]]) -> None:
    reply = read(*(delta(tool_calls=[item]) for item in parts), delta("tool_calls")).reply()
    assert [(call.id, call.name, call.arguments) for call in reply.calls] == [
        ("a", "x", {"n": 1}),
        ("b", "y", {"n": 2}),
    ]


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([part('{"n": 1}', name="x"), part('{"n": 2}', name="x")], id="neither id nor index"),
        pytest.param(
            [part('{"n"', index=0, name="x"), part(": 1}", index=0, name="x"), part('{"n": 2}', index=0, name="x")],
            id="no id, one index, the name repeated",
        ),
        pytest.param([part({"n": 1}, index=0, name="x"), part({"n": 2}, index=1, name="x")], id="objects"),
    ],
)
def test_streamed_calls_without_ids(parts: list[dict[str, Any]]) -> None:
    reply = read(*(delta(tool_calls=[item]) for item in parts), delta("stop")).reply()
    assert [(call.id, call.name, call.arguments) for call in reply.calls] == [
        ("call_0", "x", {"n": 1}),
        ("call_1", "x", {"n": 2}),
    ]


def test_calls_without_arguments_are_told_apart_by_name() -> None:
    reply = read(delta(tool_calls=[part(name="x"), part(name="y")]), delta("stop")).reply()
    assert [(call.name, call.arguments) for call in reply.calls] == [("x", {}), ("y", {})]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("tool_calls", "tool_calls"),
        ("content_filter", "content_filter"),
        ("STOP", "stop"),
        ("eos", "stop"),
        ("function_call", "tool_calls"),
        ("model_length", "length"),
        ("prohibited_content", "content_filter"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("something new", "something new"),
    ],
)
def test_finish_reasons(said: str, reason: str) -> None:
    message: dict[str, Any] = {"content": "x"}
    if reason == "tool_calls":
        message["tool_calls"] = [part("{}", name="x")]
    assert read(delta(**message), delta(said)).reply().finish_reason == reason
    body = {"choices": [{"message": message, "finish_reason": said}]}
    assert from_body(body).finish_reason == reason


def test_a_call_in_the_retired_form_is_refused() -> None:
    retired: dict[str, Any] = {"function_call": {"name": "pay", "arguments": "{}"}}
    with pytest.raises(ProviderError, match="`function_call`, which OpenAI has retired"):
        read(delta(**retired), delta("function_call"))
    with pytest.raises(ProviderError, match="has retired"):
        from_body({"choices": [{"message": retired, "finish_reason": "function_call"}]})


ANN, BOB = '{"to": "ann"}', '{"to": "bob"}'


@pytest.mark.parametrize(
    ("chunks", "is_second"),
    [
        ([delta(tool_calls=[part(ANN, index=0, id="a", name="pay")]), delta("tool_calls")], True),
        ([delta(role="assistant"), delta(tool_calls=[part(ANN, index=0, id="a", name="pay")])], True),
        ([delta(role="assistant", tool_calls=[part(ANN, index=0, id="a", name="pay")])], False),
    ],
    ids=["after its end", "after its role", "a role with each call"],
)
def test_a_call_that_is_made_again_after_the_reply_ended_or_began_is_of_a_second_reply(
    chunks: list[dict[str, Any]], is_second: bool
) -> None:
    again = [{**chunk, "choices": [dict(choice) for choice in chunk["choices"]]} for chunk in chunks]
    other = json.loads(json.dumps(again).replace('"a"', '"b"'))
    both = (*chunks, *other, delta("tool_calls"))
    if is_second:
        with pytest.raises(ProviderError, match="a second reply began"):
            read(*both).reply()
        different = json.loads(json.dumps(other).replace("ann", "bob"))
        assert len(read(*chunks, *different, delta("tool_calls")).reply().calls) == 2
    else:
        assert len(read(*both).reply().calls) == 2


@pytest.mark.parametrize("said", ["error", "abort", "insufficient_system_resource"])
def test_a_reply_that_broke_off_is_not_whole(said: str) -> None:
    assert not read(delta(content="x"), delta(said)).complete
    with pytest.raises(ValueError, match=said):
        from_body({"choices": [{"message": {"content": "x"}, "finish_reason": said}]})


def test_text_in_parts() -> None:
    parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "Hi"}, {"type": "text", "text": "!"}]
    assert from_body({"choices": [{"message": {"content": parts}}]}).text == "Hi!"
    assert read(delta(content=parts), delta("stop")).reply().text == "Hi!"


def test_a_part_of_a_call_is_output_too() -> None:
    chunk = OpenAIStream().feed(delta(tool_calls=[part(index=0, id="a", name="x")]))
    assert chunk is not None
    assert chunk.text == ""
