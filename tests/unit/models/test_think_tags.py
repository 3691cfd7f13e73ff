"""`<think>...</think>` is split from the answer, however the tags are cut. Pure."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq.models.vendors.openai.reasoning import TextSplit, ThinkSplitter

REPLIES = {
    "<think>\nHm.\n</think>\n\nHello.": TextSplit("Hello.", "\nHm.\n"),
    " \n<think>Hm.</think>Hello.": TextSplit("Hello.", "Hm."),
    "<think></think>Hello.": TextSplit("Hello.", ""),
    "<think>Hm": TextSplit("", "Hm"),
    "<think>Hm</thi": TextSplit("", "Hm</thi"),
    "<think>": TextSplit("", ""),
    "<think>a</think>": TextSplit("", "a"),
    "<think>a < b </ c</think> d": TextSplit("d", "a < b </ c"),
    "Hello.": TextSplit("Hello."),
    "": TextSplit(""),
    "  \n": TextSplit("  \n"),
    "<thi": TextSplit("<thi"),
    "<b>Hello</b>": TextSplit("<b>Hello</b>"),
    "The tag <think> begins, </think> ends it.": TextSplit("The tag <think> begins, </think> ends it."),
    "<think>one</think>two<think>three</think>": TextSplit("two<think>three</think>", "one"),
    "Hello.\n</think>\nBye.": TextSplit("Hello.\n</think>\nBye."),
    "<think>🦊</think>😀": TextSplit("😀", "🦊"),
}
UNOPENED = {
    "Hm.\n</think>\n\nHello.": TextSplit("Hello.", "Hm.", is_unopened=True),
    "</think>\n\nHello.": TextSplit("Hello.", "", is_unopened=True),
    "Hm.\n</think>": TextSplit("", "Hm.", is_unopened=True),
    "It ends with </think>, they say.": TextSplit("It ends with </think>, they say."),
    "<think>Hm.</think>a\n</think>\nb": TextSplit("a\n</think>\nb", "Hm."),
    "Hello.": TextSplit("Hello."),
}
OPENED = {
    "Hm.\n</think>\n\nHello.": TextSplit("Hello.", "Hm.\n"),
    "Hm.</think>Hello.": TextSplit("Hello.", "Hm."),
    "Hello, nothing to think.": TextSplit("Hello, nothing to think."),
    "": TextSplit(""),
}


def fed(splitter: ThinkSplitter, pieces: list[str]) -> tuple[TextSplit, TextSplit]:
    """(what readers were told, the whole)."""
    told = [splitter.feed(piece) for piece in pieces]
    return TextSplit("".join(one.text for one in told), "".join(one.reasoning for one in told)), splitter.whole()


def cut(text: str, places: list[int]) -> list[str]:
    bounds = sorted({0, len(text), *(place for place in places if place < len(text))})
    return [text[a:b] for a, b in itertools.pairwise(bounds)]


@pytest.mark.parametrize(("reply", "split"), REPLIES.items())
def test_every_cut_in_two(reply: str, split: TextSplit) -> None:
    for place in range(len(reply) + 1):
        told, whole = fed(ThinkSplitter(), [reply[:place], reply[place:]])
        assert whole == split
        assert split.text.startswith(told.text)
        assert split.reasoning.startswith(told.reasoning)


@given(st.sampled_from(sorted(REPLIES)), st.lists(st.integers(0, 40)))
def test_any_cuts(reply: str, places: list[int]) -> None:
    told, whole = fed(ThinkSplitter(), cut(reply, places))
    assert whole == REPLIES[reply]
    assert whole.text.startswith(told.text)


@given(st.text("ab<>/think \n", max_size=30), st.text("ab<>/think \n", max_size=30), st.lists(st.integers(0, 80)))
def test_whatever_was_thought_and_said(thought: str, said: str, places: list[int]) -> None:
    reply = f"<think>{thought.replace('</think>', '')}</think>{said}"
    once, whole = fed(ThinkSplitter(), [reply])
    told, again = fed(ThinkSplitter(), cut(reply, places))
    assert (told, again) == (once, whole)
    assert once == TextSplit(whole.text, whole.reasoning)


@given(st.sampled_from(sorted(UNOPENED)), st.lists(st.integers(0, 40)))
def test_a_tag_that_the_template_opened(reply: str, places: list[int]) -> None:
    _, whole = fed(ThinkSplitter(may_be_open=True), cut(reply, places))
    assert whole == UNOPENED[reply]


@given(st.sampled_from(sorted(OPENED)), st.lists(st.integers(0, 40)))
def test_a_template_that_is_known_to_open_it(reply: str, places: list[int]) -> None:
    told, whole = fed(ThinkSplitter(is_open=True, may_be_open=True), cut(reply, places))
    assert whole == OPENED[reply]
    assert whole.text.startswith(told.text)
    assert "</think>" not in told.reasoning
