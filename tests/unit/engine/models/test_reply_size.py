"""A reply without end is cut by its bytes, on every way that it can come."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from brainq.adapters.models.open_answer import sse_events
from brainq.contracts.message import Reasoning, ToolCall
from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest, Spend
from brainq.contracts.status import Ending, StopReason
from brainq.engine.models.asking.bill import Allowance, Bill
from brainq.engine.models.asking.fallback import Fallback
from brainq.engine.models.asking.permits import stream_with_permits
from brainq.engine.models.asking.reply_size import (
    FRAME_BYTES,
    MAX_REPLY_BYTES,
    ReplyTooLarge,
    bounded,
    max_carried,
    max_streamed,
    messages_bytes,
    reply_bytes,
)
from brainq.engine.models.auxiliary import AuxiliaryModel
from brainq.engine.models.scripted import ScriptedProvider, says
from brainq.engine.turn.step import end_after_failure, turn_too_large
from brainq.errors import ProviderError
from brainq.runtime.text.estimate import with_sizes
from tests.unit.engine.models.requests import assistant, call, request, result, user
from tests.unit.engine.turn.views import view

MOST = 1_000


class Endless:
    """Yields the same part for ever; `read` counts how often it was asked for one."""

    name = "endless"

    def __init__(self, part: ModelChunk) -> None:
        self.part = part
        self.read = 0
        self.is_closed = False

    def generate(self, request: ModelRequest) -> ModelReply:
        return says(self.part.text * 2_000)

    def generate_stream(self, request: ModelRequest) -> Iterator[ModelChunk]:
        try:
            while True:
                self.read += 1
                yield self.part
        finally:
            self.is_closed = True

    generate_stream.keeps_limits = True  # type: ignore[attr-defined]


def cut(provider: Any) -> tuple[list[ModelChunk], ReplyTooLarge, tuple[Spend, ...]]:
    bill, seen = Bill(allowance=Allowance(reply_bytes=MOST)), list[ModelChunk]()
    with bill.activate(), pytest.raises(ReplyTooLarge) as failure:
        seen.extend(stream_with_permits(provider, request()))
    return seen, failure.value, bill.close(failure.value)


@pytest.mark.parametrize(
    ("part", "tokens"),
    [
        (ModelChunk(text="abcdefghij"), 250),
        (ModelChunk(text="\u6f6e" * 10), 333),  # 30 bytes in ten characters
        (ModelChunk(reasoning="abcdefghij"), 250),
        (ModelChunk(arguments="abcdefghij"), 357),
    ],
    ids=["text", "three bytes each", "reasoning", "arguments"],
)
def test_a_stream_without_end_is_cut_and_charged(part: ModelChunk, tokens: int) -> None:
    provider = Endless(part)
    _, failure, (lost,) = cut(provider)
    size = len((part.text + part.reasoning + part.arguments).encode())
    assert provider.read == MOST // size + 1, "no part was read after the one that passes it"
    assert provider.is_closed
    assert (failure.kind, failure.retryable) == ("too_large", False)
    assert tokens <= lost.output_tokens <= tokens + 12
    assert (lost.kind, lost.estimated) == ("lost", True)


def test_a_reply_of_just_so_many_bytes_is_whole() -> None:
    bill = Bill(allowance=Allowance(reply_bytes=MOST))
    with bill.activate():
        *_, last = stream_with_permits(ScriptedProvider([says("a" * MOST)]), request())
    assert last.reply is not None
    assert bill.settle(last.reply).lost == ()
    _, failure, _ = cut(ScriptedProvider([says("a" * (MOST + 1))]))
    assert "1,000 bytes (BRAINQ_MAX_REPLY_BYTES)" in str(failure)


def test_no_other_model_is_asked_for_a_reply_that_was_cut() -> None:
    second = Endless(ModelChunk(text="b"))
    seen, _, lost = cut(Fallback([Endless(ModelChunk(text="a" * 100)), second]))
    assert "".join(chunk.text for chunk in seen) == "a" * MOST
    assert (second.read, len(lost)) == (0, 1)


def test_a_reply_that_comes_whole_is_measured_whole() -> None:
    thought = Reasoning(wire="w", text="t" * 400)
    large = ModelReply(text="a" * 300, calls=(ToolCall(id="c", name="n", arguments={"x": "y" * 300}),))
    large = large.model_copy(update={"reasoning": (thought,)})
    assert reply_bytes(large) > MOST
    bill = Bill(allowance=Allowance(reply_bytes=MOST))
    with pytest.raises(ReplyTooLarge):
        bill.settle(large)
    assert reply_bytes(large.model_copy(update={"calls": ()})) == 700


def test_calls_beside_the_steps_are_cut_and_charged_too() -> None:
    allowance = Allowance(reply_bytes=MOST)
    with allowance.activate(), pytest.raises(ProviderError, match="cut off"):
        AuxiliaryModel(Endless(ModelChunk(text="word ")), "m").ask("reflection", "s", "t", timeout_s=20)
    (lost,) = allowance.spends
    assert (lost.kind, lost.output_tokens > 2_000) == ("reflection", True)


def test_an_event_without_end_is_not_read_to_its_end() -> None:
    read: list[int] = []

    def line() -> Iterator[bytes]:
        yield b'data: {"text": "'
        for number in range(1_000):
            read.append(number)
            yield b"a" * 100

    with pytest.raises(ReplyTooLarge):
        list(sse_events(line(), MOST))
    assert len(read) == MOST // 100


def test_an_event_of_lines_without_end_is_not_read_to_its_end() -> None:
    lines = (b"data: " + b"a" * 94 + b"\n" for _ in range(1_000))
    with pytest.raises(ReplyTooLarge):
        list(sse_events(lines, MOST))
    assert sum(1 for _ in lines) > 900


def test_many_events_are_no_large_one() -> None:
    event = b'data: {"n": 1}\n\n'
    assert list(sse_events([event * 50] * 4, MOST)) == [{"n": 1}] * 200
    assert list(sse_events([event * 50] * 4 + [b"data: [DONE]"], MOST))[-1] is None


def test_lines_are_the_same_however_they_are_cut() -> None:
    text = "".join(f"data: {json.dumps({'n': number})}\r\n\n" for number in range(20)).encode()
    whole = list(sse_events([text], MOST))
    for width in (1, 2, 3, 7, 50):
        pieces = [text[at : at + width] for at in range(0, len(text), width)]
        assert list(sse_events(pieces, MOST)) == whole


def test_an_answer_is_read_so_far() -> None:
    assert b"".join(bounded([b"abc", b"d"], 4)) == b"abcd"
    with pytest.raises(ReplyTooLarge):
        list(bounded([b"abc", b"de"], 4))


def test_what_carries_a_reply_may_be_larger() -> None:
    assert max_carried(MOST) == 4 * MOST + FRAME_BYTES < max_streamed(MOST)
    assert max_streamed(MAX_REPLY_BYTES) >= 32 * MAX_REPLY_BYTES


def test_the_ending_says_what_happened() -> None:
    end = end_after_failure(ReplyTooLarge(MOST))
    assert (end.ending, end.stop_reason) == (Ending.COMPLETED, StopReason.LENGTH)
    assert "grew larger than 1,000 bytes (BRAINQ_MAX_REPLY_BYTES)" in end.text
    assert "No call of the last reply ran" in end.text


def test_the_replies_and_results_of_a_turn_are_bounded_together() -> None:
    own = [user("u"), assistant("\u6f6e" * 600, call("c1", {"a": "b" * 600})), result("c1", "r" * 1_700)]
    own = [message.model_copy(update={"turn": "t-1"}) for message in own]
    assert messages_bytes(own) > 4 * MOST
    other = [message.model_copy(update={"turn": "t-0"}) for message in own]
    assert turn_too_large(view(history=with_sizes(other)), MOST) is None, "another turn's"
    assert turn_too_large(view(history=with_sizes(own)), 2 * MOST) is None
    end = turn_too_large(view(history=with_sizes(own)), MOST)
    assert end is not None
    assert end.stop_reason is StopReason.LENGTH
    assert "larger than 4,000 bytes (4 times BRAINQ_MAX_REPLY_BYTES)" in end.text
