"""`<think>...</think>` is split from the answer, however the tags are cut. Pure."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq.providers.think_tags import Split, ThinkSplitter

REPLIES = {
    "<think>\nHm.\n</think>\n\nHello.": Split("Hello.", "\nHm.\n"),
    " \n<think>Hm.</think>Hello.": Split("Hello.", "Hm."),
    "<think></think>Hello.": Split("Hello.", ""),
    "<think>Hm": Split("", "Hm"),
    "<think>Hm</thi": Split("", "Hm</thi"),
    "<think>": Split("", ""),
    "<think>a</think>": Split("", "a"),
    "<think>a < b </ c</think> d": Split("d", "a < b </ c"),
    "Hello.": Split("Hello."),
    "": Split(""),
    "  \n": Split("  \n"),
    "<thi": Split("<thi"),
    "<b>Hello</b>": Split("<b>Hello</b>"),
    "The tag <think> begins, </think> ends it.": Split("The tag <think> begins, </think> ends it."),
    "<think>one</think>two<think>three</think>": Split("two<think>three</think>", "one"),
    "Hello.\n</think>\nBye.": Split("Hello.\n</think>\nBye."),
    "<think>🦊</think>😀": Split("😀", "🦊"),
}
UNOPENED = {
    "Hm.\n</think>\n\nHello.": Split("Hello.", "Hm.", is_unopened=True),
    "</think>\n\nHello.": Split("Hello.", "", is_unopened=True),
    "Hm.\n</think>": Split("", "Hm.", is_unopened=True),
    "It ends with </think>, they say.": Split("It ends with </think>, they say."),
    "<think>Hm.</think>a\n</think>\nb": Split("a\n</think>\nb", "Hm."),
    "Hello.": Split("Hello."),
}
OPENED = {
    "Hm.\n</think>\n\nHello.": Split("Hello.", "Hm.\n"),
    "Hm.</think>Hello.": Split("Hello.", "Hm."),
    "Hello, nothing to think.": Split("Hello, nothing to think."),
    "": Split(""),
}


def fed(splitter: ThinkSplitter, pieces: list[str]) -> tuple[Split, Split]:
    """(what readers were told, the whole)."""
    told = [splitter.feed(piece) for piece in pieces]
    return Split("".join(one.text for one in told), "".join(one.reasoning for one in told)), splitter.whole()


def cut(text: str, places: list[int]) -> list[str]:
    bounds = sorted({0, len(text), *(place for place in places if place < len(text))})
    return [text[a:b] for a, b in itertools.pairwise(bounds)]


@pytest.mark.parametrize(("reply", "split"), REPLIES.items())
def test_every_cut_in_two(reply: str, split: Split) -> None:
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


@given(
    st.text("ab<>/think \n", max_size=30), st.text("ab<>/think \n", max_size=30), st.lists(st.integers(0, 80))
)
def test_whatever_was_thought_and_said(thought: str, said: str, places: list[int]) -> None:
    reply = f"<think>{thought.replace('</think>', '')}</think>{said}"
    once, whole = fed(ThinkSplitter(), [reply])
    told, again = fed(ThinkSplitter(), cut(reply, places))
    assert (told, again) == (once, whole)
    assert once == Split(whole.text, whole.reasoning)


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
