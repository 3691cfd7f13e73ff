"""How the events of a stream become calls, on each wire: the smallest streams that once became other calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from brainq.adapters.models.anthropic import wire as anthropic_wire
from brainq.adapters.models.anthropic.wire import AnthropicStream
from brainq.adapters.models.openai import chat_wire, responses_wire
from brainq.adapters.models.openai.chat_wire import OpenAIStream
from brainq.adapters.models.openai.responses_wire import ResponsesStream
from brainq.adapters.models.stream_reader import StreamReader
from brainq.contracts.message import Message, ToolCall
from brainq.contracts.model import ModelReply
from brainq.errors import ProviderError

Event = dict[str, Any]
ANN, BOB = '{"to":"ann"}', '{"to":"bob"}'
PAID = [("pay", {"to": "ann"}), ("pay", {"to": "bob"})]


def read(reader: StreamReader, events: list[Event], *, end_marker: bool = False) -> ModelReply:
    for event in events:
        reader.feed(event)
    if end_marker:
        reader.end_marked()
    assert reader.complete, "the stream was cut"
    return reader.reply()


def asked(reply: ModelReply) -> list[tuple[str, object]]:
    return [(call.name, call.arguments) for call in reply.calls]


def refused(reader: StreamReader, events: list[Event]) -> str:
    with pytest.raises(ProviderError) as caught:
        read(reader, events)
    assert (caught.value.kind, caught.value.retryable) == ("stream", True), "an attempt that is charged and made again"
    return str(caught.value)


# Responses


def item(number: int | None, arguments: str, **more: Any) -> Event:
    ids = {} if number is None else {"call_id": f"call_{number}", "id": f"fc_{number}"}
    return {"type": "function_call", "name": "pay", "arguments": arguments, **ids, **more}


def done(found: Event, index: int | None) -> Event:
    return {"type": "response.output_item.done", "item": found} | ({} if index is None else {"output_index": index})


def added(found: Event, index: int | None) -> Event:
    event = done(found | {"arguments": ""}, index)
    return event | {"type": "response.output_item.added"}


def delta(piece: str, **more: Any) -> Event:
    return {"type": "response.function_call_arguments.delta", "delta": piece} | more


def completed(*output: Event) -> Event:
    return {"type": "response.completed", "response": {"id": "r1", "status": "completed", "output": list(output)}}


A, B = item(0, ANN), item(1, BOB)


@pytest.mark.parametrize("final", [(A, B), ()], ids=["final output", "no final output"])
@pytest.mark.parametrize("indexes", [(0, 0), (None, None), (1, 2), (1, 0), (7, 3)])
@pytest.mark.parametrize("with_pieces", [False, True])
def test_an_item_of_the_responses_api_is_known_by_its_ids(
    final: tuple[Event, ...], indexes: tuple[int | None, int | None], with_pieces: bool
) -> None:
    events: list[Event] = []
    for found, index in zip((A, B), indexes, strict=True):
        if with_pieces:
            events += [added(found, index), delta(found["arguments"], item_id=found["id"], output_index=index)]
        events.append(done(found, index))
    assert asked(read(ResponsesStream(), [*events, completed(*final)])) == PAID


def test_items_without_a_done_event_are_known_by_their_ids() -> None:
    begun = [added(A, 0), added(B, 0)]
    pieces = [delta(ANN, item_id="fc_0", output_index=0), delta(BOB, item_id="fc_1", output_index=0)]
    assert asked(read(ResponsesStream(), [*begun, *pieces, completed()])) == PAID
    assert asked(read(ResponsesStream(), [*pieces[:1], *begun, *pieces[1:], completed()])) == PAID


def test_a_call_that_is_said_twice_is_one() -> None:
    twice = [done(A, 0), done(A, 1), completed(A, A)]
    assert asked(read(ResponsesStream(), twice)) == PAID[:1]
    assert asked(read(ResponsesStream(), [*twice[:2], completed()])) == PAID[:1]
    assert asked(responses_wire.from_response(completed(A, A)["response"])) == PAID[:1]


def test_two_calls_with_one_id_that_differ_are_refused() -> None:
    other = item(0, BOB)
    assert "'call_0', with different content" in refused(ResponsesStream(), [done(A, 0), done(other, 1), completed()])
    assert "'call_0', with different content" in refused(ResponsesStream(), [done(A, 0), completed(A, other)])
    with pytest.raises(ProviderError, match="differ"):
        responses_wire.from_response(completed(A, other)["response"])


def test_the_final_message_decides_and_loses_no_call() -> None:
    assert asked(read(ResponsesStream(), [done(item(0, BOB), 0), completed(A)])) == PAID[:1]
    begun = [added(A, 0), delta(ANN, item_id="fc_0")]
    for said in ([done(A, 0)], begun, [*begun, done(A, 0)]):
        assert asked(read(ResponsesStream(), [*said, completed(item(0, ""))])) == PAID[:1]
    assert "not in the final message" in refused(ResponsesStream(), [done(A, 0), done(B, 1), completed(A)])


def test_a_call_that_was_begun_and_never_ended_is_refused() -> None:
    assert "not ended" in refused(ResponsesStream(), [added(A, 0), added(B, 1), done(B, 1), completed()])


# Anthropic


def start(index: int | None, tool_id: str, name: str = "pay", **more: Any) -> Event:
    block = {"type": "tool_use", "id": tool_id, "name": name, "input": {}, **more}
    return {"type": "content_block_start", "content_block": block} | ({} if index is None else {"index": index})


def piece(index: int | None, text: str) -> Event:
    event: Event = {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": text}}
    return event if index is None else event | {"index": index}


def stop(index: int | None) -> Event:
    return {"type": "content_block_stop"} | ({} if index is None else {"index": index})


def block(index: int | None, tool_id: str, arguments: str) -> list[Event]:
    return [start(index, tool_id), piece(index, arguments[:6]), piece(index, arguments[6:]), stop(index)]


def begun(message_id: str) -> Event:
    return {"type": "message_start", "message": {"id": message_id, "model": "m", "usage": {"input_tokens": 3}}}


ENDED = [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]


@pytest.mark.parametrize("indexes", [(0, 0), (None, None), (1, 2), (1, 0)])
def test_a_block_that_begins_at_a_used_index_is_a_new_block(indexes: tuple[int | None, int | None]) -> None:
    first, second = indexes
    events = [begun("m1"), *block(first, "t1", ANN), *block(second, "t2", BOB), *ENDED]
    assert asked(read(AnthropicStream(), events)) == PAID


def test_a_block_of_one_id_is_one_call() -> None:
    twice = [begun("m1"), *block(0, "t1", ANN), *block(0, "t1", ANN), *ENDED]
    assert asked(read(AnthropicStream(), twice)) == PAID[:1]
    announced_twice = [begun("m1"), start(0, "t1"), *block(0, "t1", ANN), *ENDED]
    assert asked(read(AnthropicStream(), announced_twice)) == PAID[:1]
    assert "differ" in refused(AnthropicStream(), [begun("m1"), *block(0, "t1", ANN), *block(1, "t1", BOB), *ENDED])
    content = [{"type": "tool_use", "id": "t1", "name": "pay", "input": {"to": "ann"}}]
    assert asked(anthropic_wire.from_body({"content": content * 2, "stop_reason": "tool_use"})) == PAID[:1]


def test_arguments_at_an_index_of_no_call_are_refused() -> None:
    assert "index 1" in refused(AnthropicStream(), [begun("m1"), start(0, "t1"), piece(1, ANN), stop(0), *ENDED])
    cut = [begun("m1"), start(0, "t1"), *block(0, "t2", BOB), *ENDED]
    assert "'t1' was begun but not ended" in refused(AnthropicStream(), cut)


def test_calls_without_arguments_are_whole_once_their_blocks_are() -> None:
    events = [begun("m1"), start(0, "t1", "ping"), stop(0), start(0, "t2", "ping"), stop(0), ENDED[1]]
    assert asked(read(AnthropicStream(), events)) == [("ping", {}), ("ping", {})]


# Chat completions


def chunk(*parts: Event, chunk_id: str = "c1", finish: str | None = None, **said: Any) -> Event:
    said_delta: Event = said | ({"tool_calls": list(parts)} if parts else {})
    return {"id": chunk_id, "choices": [{"index": 0, "delta": said_delta, "finish_reason": finish}]}


def part(arguments: str = "", name: str = "", **ids: Any) -> Event:
    return ids | {"function": {"arguments": arguments} | ({"name": name} if name else {})}


FINISH = chunk(finish="tool_calls")


@pytest.mark.parametrize(
    "parts",
    [
        [part(ANN, "pay", index=0, id="a"), part(BOB, "pay", index=0, id="b")],
        [part(ANN, "pay", id="a"), part(BOB, "pay", id="b")],
        [part(ANN, "pay", index=1, id="a"), part(BOB, "pay", index=0, id="b")],
        [part("", "pay", index=0, id="a"), part("", "pay", index=1, id="b"), part(BOB, index=1), part(ANN, index=0)],
        [part("", "pay", index=0, id="a"), part(ANN, index=0), part("", "pay", index=0, id="b"), part(BOB, index=0)],
        [part(ANN, "pay", index=0), part("", index=0, id="a"), part(BOB, "pay", index=1)],
        [part(ANN, "pay", index=0, id="a"), part(ANN, "pay", index=3, id="a"), part(BOB, "pay", index=1, id="b")],
        [part("", "pay", index=0, id="a"), part(ANN[:4], index=0, id="x"), part(ANN[4:], index=0, id="y"),
         part(BOB, "pay", index=1, id="b")],
        [part(ANN, "pay", index="0", id="a"), part(BOB, "pay", index="1", id="b")],
    ],
    ids=["one index", "no index", "order", "interleaved", "one index in turn", "late id", "said twice", "an id a piece",
         "numbers as text"],
)  # fmt: skip
def test_parts_of_chat_calls(parts: list[Event]) -> None:
    events = [chunk(role="assistant"), *(chunk(one) for one in parts), FINISH]
    assert asked(read(OpenAIStream(), events)) == PAID


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ([part("", "pay", index=0, id="a"), part(ANN, index=1)], "without a name"),
        ([part("", "pay", index=0, id="a"), part(ANN, "pay", index=0, id="b")], "'a' was begun but not ended"),
        ([part(ANN[:4], "pay", index=0, id="a"), part(ANN[4:], "pay", index=0, id="b")], "not ended"),
        ([part(ANN, "pay", index=0, id="a"), part(BOB, "refund", index=1, id="a")], "named 'pay', and then 'refund'"),
        ([part("", "p", index=0, id="a"), part("", "ay", index=0), part(ANN, index=0)], "named 'p', and then 'ay'"),
        ([part("", "pay", index=0), part("", "pay", index=0)], "named twice"),
        ([part("", "pay", index=0), part(ANN, "pay", index=0)], "named twice"),
        ([part(ANN, "pay", index=0), part("", "pay", index=0)], "not ended"),
    ],
)
def test_parts_of_chat_calls_that_fit_no_one_call_are_refused(parts: list[Event], why: str) -> None:
    assert why in refused(OpenAIStream(), [chunk(one) for one in parts] + [FINISH])


def test_one_id_of_two_calls_in_a_whole_answer() -> None:
    def body(*calls: Event) -> Event:
        return {"choices": [{"message": {"tool_calls": list(calls)}, "finish_reason": "tool_calls"}]}

    first = part(ANN, "pay", id="a")
    assert asked(chat_wire.from_body(body(first, first))) == PAID[:1]
    with pytest.raises(ProviderError, match="differ"):
        chat_wire.from_body(body(first, part(BOB, "pay", id="a")))


def test_calls_of_a_choice_that_nobody_asked_for_are_refused() -> None:
    second = chunk(part(ANN, "pay", index=0, id="b"))
    second["choices"][0]["index"] = 1
    assert "second choice" in refused(OpenAIStream(), [chunk(part(ANN, "pay", index=0, id="a")), second, FINISH])


# A second reply within one stream


def generation(chunk_id: str, call_id: str, **more: Any) -> list[Event]:
    named = chunk(part("", "pay", index=0, id=call_id), chunk_id=chunk_id, **more)
    return [chunk(chunk_id=chunk_id, role="assistant"), named, chunk(part(ANN, index=0), chunk_id=chunk_id)]


@pytest.mark.parametrize(
    ("reader", "events"),
    [
        (AnthropicStream, [begun("m1"), *block(0, "t1", ANN), begun("m2"), *block(0, "t2", ANN), *ENDED]),
        (AnthropicStream, [begun("m1"), *block(0, "t1", ANN), begun("m1"), *block(1, "t2", ANN), *ENDED]),
        (
            ResponsesStream,
            [
                {"type": "response.created", "response": {"id": "r0"}},
                done(A, 0),
                {"type": "response.created", "response": {"id": "r1"}},
                done(B, 0),
                completed(),
            ],
        ),
        (OpenAIStream, [*generation("c1", "a"), *generation("c2", "b"), FINISH]),
        (OpenAIStream, [*generation("c1", "a")[1:2], *generation("c2", "b"), chunk(finish="stop", chunk_id="c2")]),
        (OpenAIStream, [*generation("c1", "a"), *generation("c2", "b")[1:], FINISH]),
        (OpenAIStream, [chunk(content="It is"), chunk(content=" r"), chunk(chunk_id="c2", role="assistant"), FINISH]),
    ],
)
def test_a_reply_that_begins_again_is_a_cut_attempt(reader: type[StreamReader], events: list[Event]) -> None:
    assert "a second reply began" in refused(reader(), events)


@pytest.mark.parametrize("said", [{}, {"role": "assistant"}], ids=["role once", "role in each"])
def test_chunks_with_ids_of_their_own_are_one_reply(said: Event) -> None:
    parts = [part("", "pay", index=0, id="a"), part(ANN, index=0), part("", "pay", index=1, id="b"), part(BOB, index=1)]
    events = [chunk(one, chunk_id=f"c{number}", **said) for number, one in enumerate(parts)]
    first = chunk(role="assistant", chunk_id="first")
    assert asked(read(OpenAIStream(), [first, *events, chunk(finish="tool_calls", chunk_id="last")])) == PAID
    assert asked(read(OpenAIStream(), [first, *events, chunk(finish="tool_calls", chunk_id="c3")])) == PAID


# The end of a stream


def test_an_end_marker_without_a_finish_reason_ends_what_is_whole() -> None:
    call, text = chunk(part(ANN, "pay", index=0, id="a")), chunk(content="Hi")
    assert asked(read(OpenAIStream(), [call], end_marker=True)) == PAID[:1]
    assert read(OpenAIStream(), [text], end_marker=True).text == "Hi"
    for cut in ([], [chunk(part(ANN[:5], "pay", index=0, id="a"))], [chunk(part("", "pay", index=0, id="a"))]):
        with pytest.raises(AssertionError, match="was cut"):
            read(OpenAIStream(), cut, end_marker=True)
    with pytest.raises(AssertionError, match="was cut"):
        read(OpenAIStream(), [call])
    with pytest.raises(AssertionError, match="was cut"):
        read(AnthropicStream(), [begun("m1"), start(0, "t1"), piece(0, ANN[:5]), ENDED[1]])


# Keys that are not known

SIGNED: dict[str, Any] = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
Sent = Callable[[list[Message], str], Any]


def chat_sent(messages: list[Message], model: str) -> Any:
    return chat_wire.to_messages(messages, caller=model)[0]["tool_calls"][1]


def responses_sent(messages: list[Message], model: str) -> Any:
    return responses_wire.to_items(messages, None, caller=model)[1][1]


def anthropic_sent(messages: list[Message], model: str) -> Any:
    return anthropic_wire.to_messages(messages, model=model)[1][0]["content"][1]


@pytest.mark.parametrize(
    ("reader", "events", "sent"),
    [
        (OpenAIStream, [chunk(part(ANN, "pay", index=0, id="a"), part(BOB, "pay", index=1, id="b", **SIGNED)), FINISH],
         chat_sent),
        (OpenAIStream, [chunk(part(ANN, "pay", index=0, id="a")), chunk(part("", "pay", index=1, id="b")),
                        chunk(part(BOB, index=1, **SIGNED)), FINISH], chat_sent),
        (ResponsesStream, [done(A, 0), done(B | SIGNED, 1), completed()], responses_sent),
        (ResponsesStream, [done(A, 0), done(B | SIGNED, 1), completed(A, B)], responses_sent),
        (AnthropicStream, [begun("m"), *block(0, "t1", ANN), start(1, "t2", **SIGNED), piece(1, BOB), stop(1), *ENDED],
         anthropic_sent),
    ],
)  # fmt: skip
def test_keys_of_a_call_that_are_not_known_go_back_to_their_model(
    reader: type[StreamReader], events: list[Event], sent: Sent
) -> None:
    reply = read(reader(), events)
    assert asked(reply) == PAID
    thoughts = tuple(one.model_copy(update={"model": "m"}) for one in reply.reasoning)
    message = Message(role="assistant", calls=reply.calls, reasoning=thoughts)
    kept = Message.model_validate_json(message.model_dump_json(exclude_defaults=True))
    assert sent([kept], "m").items() >= SIGNED.items()
    assert not sent([kept], "another").keys() & SIGNED.keys()


def test_keys_inside_a_function_go_back_there() -> None:
    signed = part(ANN, "pay", index=0, id="a")
    signed["function"] |= {"thought_signature": "c2ln"}
    reply = read(OpenAIStream(), [chunk(signed), FINISH])
    thoughts = tuple(one.model_copy(update={"model": "m"}) for one in reply.reasoning)
    call = ToolCall(id="c1-0", name="pay", arguments={"to": "ann"})
    (sent,) = chat_wire.to_messages([Message(role="assistant", calls=(call,), reasoning=thoughts)], caller="m")
    (made,) = sent["tool_calls"]
    assert made["function"] == {"name": "pay", "arguments": json.dumps({"to": "ann"}), "thought_signature": "c2ln"}
