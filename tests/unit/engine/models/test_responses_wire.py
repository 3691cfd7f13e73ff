"""The Responses API: what is sent, and what is made of its answers, whole and streamed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brainq.adapters.models.openai.responses_wire import ResponsesStream, from_response, to_body, to_items
from brainq.contracts.message import Message, Reasoning, ToolCall
from brainq.contracts.model import FinishKind, ModelReply, TokenUsage
from brainq.errors import ProviderError
from tests.unit.engine.models.requests import WEATHER, assistant, call, request, result, system, user

THOUGHT: dict[str, Any] = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "Oslo, then."}],
    "encrypted_content": "gAAAA",
}
CALL: dict[str, Any] = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_a",
    "name": "weather",
    "arguments": '{"city": "Oslo"}',
    "status": "completed",
}


def said(text: str, kind: str = "output_text") -> dict[str, Any]:
    key = "refusal" if kind == "refusal" else "text"
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": kind, key: text}]}


def response(*output: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"object": "response", "model": "gpt-x", "status": "completed", "output": list(output)} | rest


def cut(why: str) -> dict[str, Any]:
    return {"status": "incomplete", "incomplete_details": {"reason": why}}


def thought(block: dict[str, Any] = THOUGHT, **rest: Any) -> Reasoning:
    fields: dict[str, Any] = {"wire": "openai-responses", "block": block, "model": "m"}
    return Reasoning(**(fields | rest))


def thinking(*thoughts: Reasoning, text: str = "", calls: tuple[ToolCall, ...] = ()) -> Message:
    return Message(role="assistant", content=text, calls=calls, reasoning=thoughts)


def streamed(answer: dict[str, Any], *, pieces: int = 3) -> list[dict[str, Any]]:
    """The events by which the service sends that response."""
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {"status": "in_progress"}}]

    def deltas(kind: str, text: str, index: int) -> None:
        for at in range(0, len(text), pieces):
            events.append({"type": kind, "output_index": index, "delta": text[at : at + pieces]})

    for index, item in enumerate(answer["output"]):
        empty = {key: value for key, value in item.items() if key not in ("content", "encrypted_content")}
        begun = empty | ({"arguments": ""} if "arguments" in item else {})
        events.append({"type": "response.output_item.added", "output_index": index, "item": begun})
        for part in item.get("summary") or ():
            deltas("response.reasoning_summary_text.delta", part["text"], index)
        for part in item.get("content") or ():
            kind = "refusal" if "refusal" in part else "output_text"
            deltas(f"response.{kind}.delta", part.get("text", part.get("refusal")), index)
        if "arguments" in item:
            deltas("response.function_call_arguments.delta", item["arguments"], index)
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": f"response.{answer['status']}", "response": answer})
    return events


def read(events: list[dict[str, Any]]) -> ResponsesStream:
    stream = ResponsesStream()
    for event in events:
        stream.feed(event)
    return stream


def test_a_whole_request() -> None:
    asked = request(
        system("Be kind."), user("hi"), tools=(WEATHER,), output_schema={"type": "object"}, max_output_tokens=99
    )
    assert to_body(asked, stream=True) == {
        "model": "m",
        "instructions": "Be kind.",
        "input": [{"type": "message", "role": "user", "content": "hi"}],
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "tools": [
            {
                "type": "function",
                "name": "weather",
                "description": "The weather in a city",
                "parameters": WEATHER.parameters,
                "strict": False,
            }
        ],
        "text": {"format": {"type": "json_schema", "name": "reply", "schema": {"type": "object"}, "strict": False}},
        "max_output_tokens": 99,
        "stream": True,
    }
    assert to_body(request(), stream=False, encrypted=False).keys() == {"model", "input", "store"}


def test_a_late_system_message_keeps_its_place_and_ids_are_told_apart() -> None:
    turn = [assistant("", call("c1-0", {})), result("c1-0", "rain \ud83d")]
    instructions, items = to_items([user("a"), *turn, system("late"), *turn], None)
    assert instructions == ""
    assert [item.get("role") or item["type"] for item in items] == [
        "user",
        *("function_call", "function_call_output"),
        "developer",
        *("function_call", "function_call_output"),
    ]
    assert [item["call_id"] for item in items if "call_id" in item] == ["c1-0", "c1-0", "c1-0_2", "c1-0_2"]
    json.dumps(items, ensure_ascii=False).encode()


A, B = call("c1-0", {"city": "Oslo"}), call("c1-1", {"city": "Bern"})
PLACE = thought({"type": "message"}, before=2)
OTHER = THOUGHT | {"id": "rs_2"}


@pytest.mark.parametrize(
    ("message", "order"),
    [
        pytest.param(thinking(thought(), calls=(A, B)), ["rs_1", "c1-0", "c1-1"], id="before the calls"),
        pytest.param(
            thinking(thought(), thought(OTHER, before=1), text="So.", calls=(A, B)),
            ["rs_1", "So.", "c1-0", "rs_2", "c1-1"],
            id="between text and calls",
        ),
        pytest.param(
            thinking(thought(), thought(OTHER, before=2), PLACE, text="So.", calls=(A, B)),
            ["rs_1", "c1-0", "c1-1", "rs_2", "So."],
            id="after the calls, about the text",
        ),
        pytest.param(thinking(thought(), PLACE, text=" ", calls=(A,)), ["rs_1", "c1-0"], id="a text that is gone"),
        pytest.param(thinking(thought(), text="So."), ["rs_1", "So."], id="a text alone"),
        pytest.param(thinking(thought()), [], id="nothing follows"),
        pytest.param(
            thinking(thought(), thought(OTHER, before=1), calls=(A,)), ["rs_1", "c1-0"], id="nothing follows the last"
        ),
        pytest.param(thinking(thought(model="other"), calls=(A,)), ["c1-0"], id="another model's"),
        pytest.param(thinking(thought(wire="anthropic"), calls=(A,)), ["c1-0"], id="another service's"),
        pytest.param(
            thinking(thought({"type": "reasoning", "id": "rs_3", "summary": []}), calls=(A,)),
            ["c1-0"],
            id="kept by the service only",
        ),
    ],
)
def test_reasoning_goes_back_in_its_place(message: Message, order: list[str]) -> None:
    _, items = to_items([message], "m")
    assert [item.get("content") or item.get("call_id") or item["id"] for item in items] == order
    blocks = [item for item in items if item["type"] == "reasoning"]
    assert all(block in (THOUGHT, OTHER) for block in blocks)


def test_a_whole_answer() -> None:
    usage = {
        "input_tokens": 10,
        "output_tokens": 7,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
        "output_tokens_details": {"reasoning_tokens": 5},
    }
    item = THOUGHT | {"status": None}
    reply = from_response(response(item, said("Let me see."), CALL, usage=usage))
    assert reply.calls == (ToolCall(id="call_a", name="weather", arguments={"city": "Oslo"}, provider_id="call_a"),)
    assert reply.usage == TokenUsage(input_tokens=10, output_tokens=7, cache_read_tokens=4, cache_creation_tokens=2)
    assert (reply.text, reply.model, reply.finish_reason) == ("Let me see.", "gpt-x", "tool_calls")
    assert reply.reasoning == (thought(text="Oslo, then.", model=""), thought({"type": "message"}, model=""))
    assert from_response(response(said("hi"), CALL)).reasoning == ()


@pytest.mark.parametrize(
    ("answer", "finish", "text"),
    [
        (response(said("hi")), FinishKind.WHOLE, "hi"),
        (response(CALL), FinishKind.WHOLE, ""),
        (response(said("half an ans"), **cut("max_output_tokens")), FinishKind.LENGTH, "half an ans"),
        (response(CALL | {"arguments": '{"ci'}, **cut("max_output_tokens")), FinishKind.LENGTH, ""),
        (response(said("I"), **cut("content_filter")), FinishKind.FILTERED, "I"),
        (response(said("I cannot help.", "refusal")), FinishKind.FILTERED, "I cannot help."),
        (response(said("hm"), **cut("never heard of")), FinishKind.BROKEN, "hm"),
        (response(said("hm"), status="incomplete"), FinishKind.BROKEN, "hm"),
    ],
)
def test_whether_a_reply_is_whole(answer: dict[str, Any], finish: FinishKind, text: str) -> None:
    for reply in (from_response(answer), read(streamed(answer)).reply()):
        assert (reply.finish, reply.text) == (finish, text)


@pytest.mark.parametrize("kind", ["custom_tool_call", "computer_call", "mcp_approval_request"])
def test_a_call_of_a_kind_that_was_not_offered_is_not_lost(kind: str) -> None:
    answer = response(said("I pay."), {"type": kind, "id": "c_1", "call_id": "a", "name": "pay", "input": "ann"})
    for ask in (lambda: from_response(answer), lambda: read(streamed(answer)).reply()):
        with pytest.raises(ProviderError, match=f"it has a {kind}"):
            ask()


@pytest.mark.parametrize("status", ["in_progress", "queued", "cancelled"])
def test_what_is_not_done_is_no_reply(status: str) -> None:
    with pytest.raises(ValueError, match=status):
        from_response(response(said("hi"), status=status))
    with pytest.raises(ValueError, match="no output"):
        from_response({"status": "completed"})


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        ({"code": "server_error", "message": "sorry"}, "server", True),
        ({"code": "rate_limit_exceeded", "message": "slow down"}, "rate_limited", True),
        ({"code": "insufficient_quota", "message": "pay"}, "quota", False),
        ({"code": "invalid_image_format", "message": "no"}, "refused", False),
        ({"code": "context_length_exceeded", "message": "long"}, "too_long", False),
        (None, "server", True),
    ],
)
def test_a_response_that_failed(error: Any, kind: str, retryable: bool) -> None:
    answer = response(status="failed", error=error)
    for ask in (
        lambda: from_response(answer),
        lambda: read(streamed(answer)),
        lambda: read([{"type": "error"} | (error or {"message": "?"})]),
    ):
        with pytest.raises(ProviderError) as caught:
            ask()
        assert (caught.value.kind, caught.value.retryable) == (kind, retryable)


def test_a_stream_is_shown_as_it_comes() -> None:
    stream = ResponsesStream()
    events = streamed(response(THOUGHT, said("Hi \ud83d\ude00"), CALL), pieces=4)
    shown = [chunk for event in events if (chunk := stream.feed(event)) is not None]
    assert [chunk.text for chunk in shown if chunk.text] == ["Hi ", "😀"]
    assert "".join(chunk.reasoning for chunk in shown) == "Oslo, then."
    assert any(not chunk.text and not chunk.reasoning for chunk in shown), "a part of a call is output, too"
    assert stream.complete
    assert stream.reply() == from_response(response(THOUGHT, said("Hi 😀"), CALL))


@pytest.mark.parametrize("without", ["output", "done"])
def test_a_stream_whose_items_are_told_in_one_place_only(without: str) -> None:
    answer = response(THOUGHT, said("So."), CALL)
    events = streamed(answer)
    if without == "done":
        events = [event for event in events if event["type"] != "response.output_item.done"]
    else:
        events[-1] = events[-1] | {"response": answer | {"output": []}}
    assert read(events).reply() == from_response(answer)


def test_calls_of_a_server_that_sends_their_pieces_only() -> None:
    answer = response(CALL)
    events = [event for event in streamed(answer) if event["type"] != "response.output_item.done"]
    events[-1] = {"type": "response.completed", "response": {}}
    assert read(events).reply().calls == from_response(answer).calls


texts = st.text(st.characters(codec=None), max_size=8)


def called(number: int, city: str) -> dict[str, Any]:
    return CALL | {"call_id": f"call_{number}", "arguments": json.dumps({"city": city})}


def thought_of(text: str) -> dict[str, Any]:
    return THOUGHT | {"summary": [{"type": "summary_text", "text": text}]}


outputs = st.lists(
    st.one_of(st.builds(called, st.integers(0, 9), texts), st.builds(thought_of, texts), st.builds(said, texts)),
    max_size=4,
    unique_by=lambda item: item.get("call_id") or object(),
)


@settings(max_examples=150, deadline=None)
@given(outputs, st.integers(1, 5), st.data())
def test_a_stream_says_what_a_whole_answer_says_and_a_cut_one_is_never_whole(
    output: list[dict[str, Any]], pieces: int, data: st.DataObject
) -> None:
    answer = response(*output)
    events = json.loads(json.dumps(streamed(answer, pieces=pieces)))
    stream = read(events)
    assert stream.complete
    reply: ModelReply = stream.reply()
    assert reply == from_response(answer)
    reply.model_dump_json().encode()
    at = data.draw(st.integers(0, len(events) - 1))
    assert not read(events[:at]).complete
