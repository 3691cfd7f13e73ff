"""Surrogates, server-sent events and estimates."""

from __future__ import annotations

import codecs
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq.adapters.models.open_answer import sse_events
from brainq.adapters.models.openai.chat_wire import from_body
from brainq.adapters.models.wire import parse_arguments
from brainq.adapters.sql.text import sql_text
from brainq.contracts.model import TokenUsage
from brainq.engine.calls.function_run import jsonable, one_line
from brainq.engine.tools.context_pack import pack_json
from brainq.engine.turn.prompt.untrusted import untrusted
from brainq.engine.turn.turn_diff import turn_diff
from brainq.runtime.text.estimate import estimate_messages, estimate_text, estimate_usage
from brainq.runtime.text.shorten import beginning, shortened, shortened_to_tokens
from brainq.runtime.text.surrogates import SurrogateJoiner, clean, clean_json
from tests.unit.engine.models.requests import WEATHER, call, request, user
from tests.unit.engine.turn.conversations import unhurried

any_text = st.text(st.characters(exclude_categories=()))


@given(any_text)
def test_cleaned_text_can_be_encoded(text: str) -> None:
    clean(text).encode()


@given(st.text())
def test_good_text_is_left_alone(text: str) -> None:
    assert clean(text) == text


@given(st.lists(any_text))
def test_joined_deltas_are_the_cleaned_whole(deltas: list[str]) -> None:
    joiner = SurrogateJoiner()
    pieces = [joiner.feed(delta) for delta in deltas]
    pieces.append(joiner.flush())
    assert all(piece.encode() is not None for piece in pieces)
    assert "".join(pieces) == clean("".join(deltas))


def test_a_split_emoji_is_put_together() -> None:
    joiner = SurrogateJoiner()
    assert [joiner.feed("Hi \ud83d"), joiner.feed("\ude00!"), joiner.flush()] == ["Hi ", "😀!", ""]


def test_half_an_emoji_at_the_end_is_replaced() -> None:
    joiner = SurrogateJoiner()
    assert [joiner.feed("Hi \ud83d"), joiner.flush()] == ["Hi ", "\ufffd"]


def test_json_is_cleaned_in_depth() -> None:
    assert clean_json({"\ud83d": ["\ude00", {"a": 1, "b": None}]}) == {"\ufffd": ["\ufffd", {"a": 1, "b": None}]}


STREAM = (
    b": hello\n\n"
    b'event: x\ndata: {"a": "one\xe2\x80\xa8line"}\n\n'
    b'data:{"b":1}\r\n\r\n'
    b'data: {"c":\ndata: 2}\n\n'
    b"event: ping\n\n"
    b"data: [DONE]\n\n"
)


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_events_do_not_depend_on_how_bytes_arrive(size: int) -> None:
    pieces = [STREAM[start : start + size] for start in range(0, len(STREAM), size)]
    assert list(sse_events(pieces)) == [{"a": "one\u2028line"}, {"b": 1}, {"c": 2}, None]


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_a_byte_order_mark_hides_no_event(size: int) -> None:
    marked = codecs.BOM_UTF8 + b'data: {"a": 1}\n\ndata: {"b": 2}\n\n'
    pieces = [marked[start : start + size] for start in range(0, len(marked), size)]
    assert list(sse_events(pieces)) == [{"a": 1}, {"b": 2}]


def test_a_last_event_without_a_blank_line_counts() -> None:
    assert list(sse_events([b'data: {"a": 1}'])) == [{"a": 1}]


@pytest.mark.parametrize("data", [b"data: {oops\n\n", b"data: [1]\n\n", b"data: \xff\n\n"])
def test_malformed_events_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        list(sse_events([data]))


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("日本語", 3), ("ab日", 2), ("\ud83d", 1)]
)
def test_estimated_tokens(text: str, tokens: int) -> None:
    assert estimate_text(text) == tokens


def test_a_request_is_estimated_with_its_tools() -> None:
    bare = estimate_usage(request(user("x" * 400)), "y" * 40)
    assert bare == TokenUsage(input_tokens=104, output_tokens=10, estimated=True)
    with_tools = estimate_usage(request(user("x" * 400), tools=(WEATHER,)), "", [call("c1-0", {"city": "Oslo"})])
    assert with_tools.input_tokens > bare.input_tokens
    assert with_tools.output_tokens > 0
    assert estimate_messages([user(""), user("")]) == 8


# Cutting text to a length.


def test_the_beginning_and_the_end_stay() -> None:
    text = "BEGIN" + "x" * 1000 + "END"
    short = shortened(text, 300)
    assert short.startswith("BEGINxxx")
    assert short.endswith("xxxEND")
    assert "[... 708 characters or more left out ...]" in short


@unhurried
@given(st.text(max_size=300), st.integers(0, 200))
def test_never_longer_than_allowed(text: str, most: int) -> None:
    assert len(shortened(text, most)) <= most or shortened(text, most) == text
    assert estimate_text(shortened_to_tokens(text, most)) <= most
    if len(text) <= most:
        assert shortened(text, most) == text


# Every way that text takes into a turn, a store or a diff says the same of an emoji's halves.


WAYS: dict[str, Callable[[str], object]] = {
    "clean": clean,
    "a reply": lambda text: from_body({"choices": [{"message": {"content": text}}]}).text,
    "arguments": lambda text: parse_arguments(text + "{"),
    "a result": jsonable,
    "a result's parts": lambda text: jsonable({text: [text]}),
    "an error": lambda text: one_line(ValueError(text)),
    "a pack": lambda text: pack_json({"text": text}),
    "a fence": lambda text: untrusted("pack", text, lead=""),
    "a row": sql_text,
    "a diff": lambda text: turn_diff([{"path": "a", "before": "", "after": text}]),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))
def test_two_halves_are_an_emoji_and_one_is_replaced(way: Callable[[str], object]) -> None:
    found = str(way("so \ud83d\ude00 and \ud83d"))
    assert "so 😀 and \ufffd" in found
    assert "?" not in found


@pytest.mark.parametrize(("text", "most", "short"), [("abcdef", 6, "abcdef"), ("abcdef", 5, "ab..."), ("abc", 2, "..")])
def test_a_beginning(text: str, most: int, short: str) -> None:
    assert beginning(text, most) == short
