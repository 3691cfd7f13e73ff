"""Token counts that cannot be: none of them makes a reply free, costs a reply, or is believed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.usage import RequestUsage

from brainq.adapters.models.anthropic import wire as anthropic
from brainq.adapters.models.open_answer import read_json
from brainq.adapters.models.openai import chat_wire, responses_wire
from brainq.adapters.models.stream_reader import StreamReader
from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest, TokenUsage
from brainq.contracts.usage import MAX_REPLY_TOKENS, read_count, reported_usage
from brainq.contrib.pydantic_ai import wire as pydantic_ai
from brainq.engine.models.asking.bill import Bill
from brainq.engine.models.asking.permits import stream_with_permits
from brainq.engine.models.costs import cost_usd
from brainq.engine.models.scripted import ScriptedProvider, says
from brainq.runtime.text.estimate import estimate_request, estimate_text, with_usage
from tests.unit.engine.models.requests import request, user

TEXT = "The tide turns at noon."
Counts = dict[str, Any]
Read = Callable[[Counts], ModelReply]
IMPOSSIBLE: list[Any] = [
    *(-1, -1_000_000, -0.5, 10**12, 10**30, float("nan"), float("inf"), float("-inf"), True, False),
    *("", "x", "-5", "9" * 5000, "NaN", {}, {"n": 5}, [], [5]),
]
ROUNDED = [(3.2, 4), ("12", 12), (" 7 ", 7), ("7\x1f", 7), ("3.2", 4), (0.001, 1)]


def _streamed(reader: StreamReader, events: list[dict[str, Any]]) -> ModelReply:
    for event in events:
        reader.feed(event)
    assert reader.complete
    return reader.reply()


def _chat(counts: Counts) -> Counts:
    return {
        "prompt_tokens": counts.get("sent"),
        "completion_tokens": counts.get("written"),
        "prompt_tokens_details": {"cached_tokens": counts.get("read"), "cache_write_tokens": counts.get("created")},
        "completion_tokens_details": {"reasoning_tokens": counts.get("thought")},
        "total_tokens": counts.get("total"),
    }


def _chat_whole(counts: Counts) -> ModelReply:
    choice = {"message": {"content": TEXT}, "finish_reason": "stop"}
    return chat_wire.from_body({"choices": [choice], "usage": _chat(counts)})


def _chat_stream(counts: Counts) -> ModelReply:
    chunk = {"choices": [{"delta": {"content": TEXT}, "finish_reason": "stop"}]}
    return _streamed(chat_wire.OpenAIStream(), [chunk, {"choices": [], "usage": _chat(counts)}])


def _response(counts: Counts) -> dict[str, Any]:
    item = {"type": "message", "content": [{"type": "output_text", "text": TEXT}]}
    usage = {
        "input_tokens": counts.get("sent"),
        "output_tokens": counts.get("written"),
        "input_tokens_details": {"cached_tokens": counts.get("read")},
        "output_tokens_details": {"reasoning_tokens": counts.get("thought")},
        "total_tokens": counts.get("total"),
    }
    return {"status": "completed", "output": [item], "usage": usage}


def _responses_whole(counts: Counts) -> ModelReply:
    return responses_wire.from_response(_response(counts))


def _responses_stream(counts: Counts) -> ModelReply:
    end = {"type": "response.completed", "response": _response(counts)}
    return _streamed(responses_wire.ResponsesStream(), [end])


def _anthropic(counts: Counts) -> Counts:
    return {
        "input_tokens": counts.get("sent"),
        "output_tokens": counts.get("written"),
        "cache_read_input_tokens": counts.get("read"),
        "cache_creation_input_tokens": counts.get("created"),
    }


def _anthropic_whole(counts: Counts) -> ModelReply:
    content = [{"type": "text", "text": TEXT}]
    return anthropic.from_body({"content": content, "stop_reason": "end_turn", "usage": _anthropic(counts)})


def _anthropic_stream(counts: Counts) -> ModelReply:
    return _streamed(
        anthropic.AnthropicStream(),
        [
            {"type": "message_start", "message": {"usage": _anthropic(counts)}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": TEXT}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": _anthropic(counts)},
            {"type": "message_stop"},
        ],
    )


def _through_pydantic_ai(counts: Counts) -> ModelReply:
    usage = RequestUsage(
        input_tokens=counts.get("sent"),
        output_tokens=counts.get("written"),
        cache_read_tokens=counts.get("read"),
        cache_write_tokens=counts.get("created"),
        output_reasoning_tokens=counts.get("thought"),
    )
    response = ModelResponse(parts=[TextPart(TEXT)], usage=usage, finish_reason="stop")
    return pydantic_ai.from_response(response, "m", "openai")


def _own_provider(counts: Counts) -> ModelReply:
    names = {"sent": "input_tokens", "written": "output_tokens", "read": "cache_read_tokens"}
    names["created"] = "cache_creation_tokens"
    return says(TEXT, usage=TokenUsage(**{names[name]: value for name, value in counts.items() if name in names}))


def _copied(counts: Counts) -> ModelReply:
    """Of a provider that changes a usage without checks."""
    usage = TokenUsage().model_copy(update=dict(_own_provider({}).usage))
    names = {"sent": "input_tokens", "written": "output_tokens", "read": "cache_read_tokens"}
    return says(TEXT, usage=usage.model_copy(update={names[n]: v for n, v in counts.items() if n in names}))


WIRES = [
    *(_chat_whole, _chat_stream, _responses_whole, _responses_stream, _anthropic_whole, _anthropic_stream),
    *(_through_pydantic_ai, _own_provider, _copied),
]
every_wire = pytest.mark.parametrize("read", WIRES, ids=lambda read: read.__name__.strip("_"))
COUNTS = st.dictionaries(
    st.sampled_from(["sent", "written", "read", "created", "thought", "total"]),
    st.one_of(
        st.none(),
        st.integers(0, 5000),
        st.integers(),
        st.floats(),
        st.text(max_size=8),
        st.sampled_from(IMPOSSIBLE),
    ),
)


def settled(read: Read, counts: Counts, **changes: Any) -> TokenUsage:
    """What the reply is charged as."""
    reply = with_usage(read(counts), request(user("When does the tide turn?"), **changes))
    assert reply.text == TEXT
    return reply.usage


@every_wire
@example(counts={"read": 2, "sent": 1, "written": 1})
@given(counts=COUNTS)
def test_whatever_is_counted_a_reply_is_kept_and_paid(read: Read, counts: Counts) -> None:
    usage = settled(read, counts)
    assert all(type(count) is int for _, count in usage if _ != "estimated")
    assert 1 <= usage.input_tokens <= 3 * MAX_REPLY_TOKENS
    assert 1 <= usage.output_tokens <= 3 * MAX_REPLY_TOKENS
    assert 0 <= usage.cache_read_tokens + usage.cache_creation_tokens <= usage.input_tokens
    assert (cost_usd("openai", "gpt-4.1", usage) or 0) > 0
    assert with_usage(says(TEXT, usage=usage), request()).usage == usage  # the estimate is not estimated again


@every_wire
@pytest.mark.parametrize("count", IMPOSSIBLE, ids=lambda count: repr(count)[:12])
def test_an_output_that_cannot_be_is_taken_for_the_longest(read: Read, count: Any) -> None:
    usage = settled(read, {"sent": 100, "written": count}, max_output_tokens=700)
    assert usage == TokenUsage(input_tokens=100, output_tokens=700, estimated=True)


@every_wire
@pytest.mark.parametrize("count", IMPOSSIBLE, ids=lambda count: repr(count)[:12])
def test_an_input_that_cannot_be_is_estimated(read: Read, count: Any) -> None:
    usage = settled(read, {"sent": count, "written": 9})
    sent = estimate_request(request(user("When does the tide turn?")))
    assert usage == TokenUsage(input_tokens=sent, output_tokens=9, estimated=True)


@every_wire
def test_a_reply_without_a_longest_is_estimated_by_its_text(read: Read) -> None:
    assert settled(read, {"sent": 100, "written": -1}).output_tokens == estimate_text(TEXT)
    assert settled(read, {"sent": 100}).output_tokens == estimate_text(TEXT)
    assert settled(read, {"sent": 100, "written": 0}).estimated


@every_wire
@pytest.mark.parametrize(("count", "tokens"), ROUNDED)
def test_a_count_in_another_form_is_rounded_up_and_marked(read: Read, count: Any, tokens: int) -> None:
    usage = settled(read, {"sent": 100, "written": count})
    assert usage == TokenUsage(input_tokens=100, output_tokens=tokens, estimated=True)


@every_wire
def test_whole_numbers_are_taken_as_they_are(read: Read) -> None:
    assert settled(read, {"sent": 100.0, "written": 9}) == TokenUsage(input_tokens=100, output_tokens=9)


@pytest.mark.parametrize("read", [_chat_whole, _chat_stream, _responses_whole, _through_pydantic_ai, _own_provider])
def test_cached_tokens_beside_the_prompt_are_added(read: Read) -> None:
    usage = settled(read, {"sent": 100, "written": 10, "read": 900})
    assert usage == TokenUsage(input_tokens=1000, output_tokens=10, cache_read_tokens=900, estimated=True)
    assert cost_usd("openai", "gpt-4.1", usage) == pytest.approx((100 * 2 + 900 * 0.5 + 10 * 8) / 1e6)


@pytest.mark.parametrize("read", [_chat_whole, _chat_stream, _responses_whole])
@pytest.mark.parametrize(
    ("counts", "written", "estimated"),
    [
        ({"written": 9, "thought": 174}, 183, True),
        ({"written": 9, "thought": 174, "total": 283}, 183, False),  # xAI's: the total includes it
        ({"written": 200, "thought": 174, "total": 474}, 374, False),
        (
            {"written": 9, "total": 209},
            109,
            True,
        ),  # Gemini's endpoint for OpenAI's wire: nothing but the total shows it
        ({"written": 200, "thought": 174, "total": 300}, 200, False),
        ({"written": 9, "total": 50}, 9, False),
        ({"written": 9, "thought": 10**15, "total": -5}, 9, False),
    ],
)
def test_thinking_beside_the_answer_is_added(read: Read, counts: Counts, written: int, estimated: bool) -> None:
    usage = settled(read, {"sent": 100, **counts})
    assert (usage.output_tokens, usage.estimated) == (written, estimated)


def test_details_in_another_form_cost_no_reply() -> None:
    usage = chat_wire.from_usage({"prompt_tokens": 5, "completion_tokens": 6, "prompt_tokens_details": [1]})
    assert usage == TokenUsage(input_tokens=5, output_tokens=6)
    assert chat_wire.from_usage("many") == TokenUsage()


def test_counts_that_follow_empty_are_not_the_last_word() -> None:
    reader = chat_wire.OpenAIStream()
    reader.feed({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 6}})
    reader.feed({"choices": [], "usage": {}})
    assert reader.usage.total == 11


def test_more_digits_than_python_reads_cost_no_reply() -> None:
    text = '{"usage": {"prompt_tokens": %s}, "index": 1}' % ("9" * 5000)
    assert read_json(text) == {"usage": {"prompt_tokens": float("inf")}, "index": 1}
    with pytest.raises(ValueError, match="Expecting"):
        read_json("{")


def test_a_short_count_of_a_long_reply_is_not_believed() -> None:
    long = says("word " * 1000, usage=TokenUsage(input_tokens=5, output_tokens=1))
    assert with_usage(long, request()).usage.output_tokens == estimate_text(long.text)
    called = says("", usage=TokenUsage(input_tokens=5)).model_copy(update={"calls": _chat_calls()})
    assert with_usage(called, request()).usage.output_tokens > 0


def _chat_calls() -> tuple[Any, ...]:
    function = {"name": "look", "arguments": "{}"}
    message = {"tool_calls": [{"id": "c", "function": function}]}
    return chat_wire.from_body({"choices": [{"message": message, "finish_reason": "tool_calls"}]}).calls


def test_usage_from_redis_and_sums_are_read_as_they_are() -> None:
    usage = TokenUsage.model_validate_json('{"input_tokens": 7, "output_tokens": -3}')
    assert usage == TokenUsage(input_tokens=7, estimated=True)
    whole = TokenUsage(input_tokens=10**9, output_tokens=10**9)
    assert (whole + whole).total == 4 * 10**9
    assert not (whole + whole).estimated
    with pytest.raises(ValueError, match="no_such"):
        TokenUsage(**json.loads('{"no_such": 1}'))


class Own:
    """A provider of a user's own, which reports what it likes."""

    name = "own"
    takes_permits = False

    def __init__(self, usage: TokenUsage) -> None:
        self.usage = usage

    def generate(self, request: ModelRequest) -> ModelReply:
        return says(TEXT, usage=self.usage)

    def generate_stream(self, request: ModelRequest) -> Iterator[ModelChunk]:
        yield ModelChunk(text=TEXT)
        yield ModelChunk(reply=self.generate(request))


@pytest.mark.parametrize("is_copied", [False, True])
def test_the_bill_of_an_own_provider_is_never_negative(is_copied: bool) -> None:
    usage, bill = TokenUsage(output_tokens=-5), Bill()
    if is_copied:
        usage = TokenUsage().model_copy(update={"output_tokens": -5})
    with bill.activate():
        *_, last = stream_with_permits(Own(usage), request(max_output_tokens=50))
    assert last.reply is not None
    spend = bill.settle(last.reply).spend
    assert (spend.input_tokens, spend.output_tokens, spend.estimated) == (estimate_request(request()), 50, True)


def test_a_scripts_wrong_counts_are_marked() -> None:
    provider = ScriptedProvider([says(TEXT, usage=TokenUsage(input_tokens=5, output_tokens=-1)), says(TEXT)])
    assert provider.generate(request()).usage.estimated
    assert not provider.generate(request(step=2)).usage.estimated


def test_one_count() -> None:
    assert read_count(None) == (0, True)
    assert read_count(5) == read_count(5.0) == (5, True)
    assert read_count(6, most=5) == (0, False)
    assert reported_usage(sent=10**9, written=1) == TokenUsage(output_tokens=1, estimated=True)
