"""Which tools a turn's model sees."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from brainq.contracts.message import Message
from brainq.contracts.tool import ToolSpec
from brainq.engine.turn.prompt.tool_selection import (
    MAX_TEXT_CHARS,
    SelectionContext,
    SemanticToolSelector,
    selection_context,
)
from brainq.errors import InvalidInput
from brainq.runtime.text.estimate import with_sizes

WORDS = ("flight", "book", "cancel", "mail", "note", "file", "search", "bag")


def spec(name: str, description: str = "") -> ToolSpec:
    return ToolSpec(name=name, description=description, parameters={"type": "object", "properties": {}})


def names(chosen: Sequence[ToolSpec]) -> list[str]:
    return [tool.name for tool in chosen]


SPECS = tuple(
    spec(name) for name in ("send_mail", "book_flight", "read_note", "cancel_flight", "list_files", "add_bag")
)


class CountedRanker:
    """Scores nothing and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def rank(self, query: str, specs: Sequence[ToolSpec]) -> list[float]:
        self.asked.append(query)
        return [0.0] * len(specs)


def test_a_small_registry_is_shown_whole_and_not_ranked() -> None:
    ranker = CountedRanker()
    assert SemanticToolSelector(len(SPECS), ranker=ranker).select("cancel my flight", SPECS) == SPECS
    assert ranker.asked == []


def test_the_nearest_are_shown_in_the_registrys_order() -> None:
    assert names(SemanticToolSelector(2).select("cancel the flight", SPECS)) == ["book_flight", "cancel_flight"]


def test_pinned_tools_stay_whatever_is_said() -> None:
    chosen = SemanticToolSelector(2, ["list_files"]).select("cancel the flight", SPECS)
    assert names(chosen) == ["cancel_flight", "list_files"]


def test_tools_called_in_this_turn_stay() -> None:
    chosen = SemanticToolSelector(2).select("cancel the flight", SPECS, {"send_mail"})
    assert names(chosen) == ["send_mail", "cancel_flight"]


def test_more_pinned_than_shown_are_all_kept() -> None:
    pinned = ("send_mail", "read_note", "add_bag")
    assert names(SemanticToolSelector(2, pinned).select("cancel the flight", SPECS)) == list(pinned)


def test_names_that_no_tool_has_do_not_take_a_place() -> None:
    chosen = SemanticToolSelector(2, ["gone"]).select("cancel the flight", SPECS, ["invented"])
    assert len(chosen) == 2


def test_a_message_without_a_hint_is_understood_from_the_answer_before_it() -> None:
    context = SelectionContext(answer="Shall I add one more bag to your flight?")
    chosen = SemanticToolSelector(1).select("yes, please go ahead", SPECS, (), context)
    assert names(chosen) == ["add_bag"]


def test_input_that_came_during_the_turn_counts() -> None:
    selector = SemanticToolSelector(1)
    assert names(selector.select("please cancel it", SPECS)) == ["cancel_flight"]
    added = SelectionContext(added=("sorry, no: send mail to me, mail only",))
    assert names(selector.select("please cancel it", SPECS, (), added)) == ["send_mail"]


def test_where_nothing_is_said_the_first_tools_are_shown() -> None:
    assert SemanticToolSelector(3).select("", SPECS) == SPECS[:3]


def test_a_long_text_is_ranked_by_its_beginning_and_end() -> None:
    ranker = CountedRanker()
    SemanticToolSelector(1, ranker=ranker).select("begin" + "x" * 100_000 + "end", SPECS)
    (asked,) = ranker.asked
    assert asked.startswith("begin")
    assert asked.endswith("end")
    assert len(asked) <= MAX_TEXT_CHARS + 1


@pytest.mark.parametrize("max_tools", [0, -1])
def test_room_for_no_tool_is_refused(max_tools: int) -> None:
    with pytest.raises(InvalidInput, match="max_tools_per_turn"):
        SemanticToolSelector(max_tools)


def test_the_context_is_what_was_said_before_the_turn() -> None:
    note: dict[str, JsonValue] = {"note": "summary"}
    history = [
        Message(role="user", content="Summary: the user wants a refund.", turn="t0", extra=note),
        *(Message(role="user", content=f"question {n}", turn=f"t{n}") for n in range(1, 5)),
        Message(role="assistant", content="Shall I?", turn="t4", step=1),
        Message(role="assistant", content="", turn="t4", step=2),
        Message(role="user", content="Yes.", turn="t5"),
        Message(role="assistant", content="I look.", turn="t5", step=1),
        Message(role="tool", content="a result", turn="t5", call_id="c1-0"),
        Message(role="user", content="And a bag.", turn="t5"),
    ]
    assert selection_context(with_sizes(history), "t5") == SelectionContext(
        answer="Shall I?", earlier=("question 2", "question 3", "question 4"), added=("And a bag.",)
    )


def test_a_first_turn_has_no_context() -> None:
    assert selection_context(with_sizes([Message(role="user", content="Hello", turn="t1")]), "t1") == SelectionContext()


texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)


@st.composite
def registries(draw: st.DrawFn) -> tuple[ToolSpec, ...]:
    count = draw(st.integers(1, 14))
    return tuple(spec(f"{draw(st.sampled_from(WORDS))}_{place}", draw(texts)) for place in range(count))


@given(st.data(), registries(), texts, texts, st.integers(1, 10))
def test_what_every_choice_holds(
    data: st.DataObject, specs: tuple[ToolSpec, ...], query: str, answer: str, max_tools: int
) -> None:
    every = names(specs)
    pinned = data.draw(st.lists(st.sampled_from(every), unique=True, max_size=6))
    used = data.draw(st.lists(st.sampled_from(every), unique=True, max_size=6))
    context = SelectionContext(answer=answer)

    selector = SemanticToolSelector(max_tools, pinned)
    chosen = names(selector.select(query, specs, used, context))

    assert chosen == [name for name in every if name in chosen]
    if len(every) <= max_tools:
        assert chosen == every
    else:
        assert len(chosen) == max(max_tools, len({*pinned, *used}))
        assert {*pinned, *used} <= {*chosen}
    # Another process, that was given the names in another order, chooses the same.
    again = SemanticToolSelector(max_tools, pinned[::-1])
    assert names(again.select(query, specs, used[::-1], context)) == chosen


@given(st.data(), registries(), texts, st.integers(1, 10))
def test_the_choice_stands_while_the_chosen_are_called(
    data: st.DataObject, specs: tuple[ToolSpec, ...], query: str, max_tools: int
) -> None:
    selector = SemanticToolSelector(max_tools)
    first = selector.select(query, specs)
    called = data.draw(st.sets(st.sampled_from(names(first))))
    assert selector.select(query, specs, called) == first


@given(registries(), texts, st.integers(1, 9))
def test_more_room_never_loses_a_tool(specs: tuple[ToolSpec, ...], query: str, max_tools: int) -> None:
    narrow = names(SemanticToolSelector(max_tools).select(query, specs))
    wide = names(SemanticToolSelector(max_tools + 1).select(query, specs))
    assert {*narrow} <= {*wide}
