"""Topics, sources, open questions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq.contracts.memory import AutonomousResearchLearner, RecordedTurn
from brainq.contracts.message import Message
from brainq.contracts.turn import Citation
from brainq.engine.memory.learner import MOST_SOURCES, MOST_TOPICS, RuleResearchLearner, key_terms, question_of
from tests.unit.engine.finalize.support import CANCELLED, FAILED, OUT_OF_STEPS, TIMED_OUT, recorded

LEARNER = RuleResearchLearner()


def learned(turn: RecordedTurn, kind: str) -> list[str]:
    return [one.text for one in LEARNER.observe_turn(turn, "chat_message:1") if one.kind == kind]


def test_the_papers_own_example() -> None:
    """Rose et al. 2010, figures 1.1 to 1.4, with phrases of up to four words."""
    abstract = (
        "Compatibility of systems of linear constraints over the set of natural numbers. Criteria of compatibility of "
        "a system of linear Diophantine equations, strict inequations, and nonstrict inequations are considered."
    )
    assert key_terms(abstract, 4) == (
        "linear diophantine equations",
        "linear constraints",
        "natural numbers",
        "strict inequations",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What did Noor say about the checkout rewrite?", ("checkout rewrite", "noor")),
        ("Can you please tell me about idempotency keys and retries", ("idempotency keys", "retries")),
        ("hi", ()),
        ("thanks!", ()),
        ("", ()),
        ("7 8 9", ()),
    ],
)
def test_key_terms(text: str, expected: tuple[str, ...]) -> None:
    assert key_terms(text, 5) == expected


@given(st.text(max_size=500))
def test_key_terms_are_bounded_whole_and_the_same_again(text: str) -> None:
    found = key_terms(text, 5)
    assert len(found) <= 5
    assert len(set(found)) == len(found)
    assert all(len(term.split()) <= 4 for term in found)
    assert found == key_terms(text, 5)


def test_a_turn_teaches_its_topics_and_the_sources_of_its_answer() -> None:
    turn = recorded(
        "What did Noor say about the checkout rewrite?",
        "She wants it done by May.",
        citations=[Citation(source="people/noor.md"), Citation(source="https://a.example/x", title="A page")],
    )
    assert [(one.kind, one.text) for one in LEARNER.observe_turn(turn, "chat_message:1")] == [
        ("topic", "checkout rewrite"),
        ("topic", "noor"),
        ("source", "people/noor.md"),
        ("source", "A page (https://a.example/x)"),
    ]


@pytest.mark.parametrize("how", [TIMED_OUT, FAILED, OUT_OF_STEPS], ids=lambda how: how[1].value)
def test_a_turn_without_an_answer_leaves_its_question_open(how: Any) -> None:
    turn = recorded("Who wrote Faust?", "Time ran out.", how, citations=[Citation(source="a.md")])
    assert learned(turn, "open_question") == ["Who wrote Faust?"]
    assert learned(turn, "source") == [], "what was found helped no answer"


def test_a_cancelled_turn_leaves_nothing_open() -> None:
    assert learned(recorded("Who wrote Faust?", "", CANCELLED), "open_question") == []


@pytest.mark.parametrize(
    "text",
    [
        "I don't know.",
        "I\N{RIGHT SINGLE QUOTATION MARK}m sorry, but I could not find anything on that.",
        "I was unable to access the calendar.",
        "I'm not sure who that was.",
        "There is no information about this in your notes.",
        "Unfortunately I do not have enough information to say.",
    ],
)
def test_an_answer_that_does_not_know_leaves_it_open(text: str) -> None:
    assert learned(recorded("Who wrote Faust?", text), "open_question") == ["Who wrote Faust?"]


@pytest.mark.parametrize(
    "text",
    [
        "Goethe wrote it. He was born in 1749. Then he moved. I could not find a cheaper edition.",
        "You know him: Goethe.",
        "Goethe. No need to search.",
    ],
)
def test_an_answer_that_knows_leaves_nothing_open(text: str) -> None:
    assert learned(recorded("Who wrote Faust?", text), "open_question") == []


@pytest.mark.parametrize(("errors", "is_open"), [((True, True), True), ((True, False), False), ((), False)])
def test_a_turn_whose_every_call_failed_leaves_it_open(errors: tuple[bool, ...], is_open: bool) -> None:
    results = [Message(role="tool", content="x", is_error=error, call_id="c1-0") for error in errors]
    turn = recorded("Who wrote Faust?", "Here is a guess: Goethe.", messages=results)
    assert bool(learned(turn, "open_question")) is is_open


@pytest.mark.parametrize(
    ("message", "asked"),
    [
        ("Hi there. Who wrote Faust? Thanks.", "Who wrote Faust?"),
        ("First? Second?", "Second?"),
        ("Summarise my notes. All of them.", "Summarise my notes."),
        ("```\nwhy?\n```", ""),
    ],
)
def test_the_question_of_a_message(message: str, asked: str) -> None:
    assert question_of(message) == asked


def test_secrets_are_not_learned() -> None:
    turn = recorded("Why is my password hunter2 refused?", "", TIMED_OUT)
    assert not any("password" in one.text for one in LEARNER.observe_turn(turn, "chat_message:1"))


@given(st.text(min_size=1, max_size=2000), st.lists(st.text(max_size=80), max_size=40))
def test_whatever_the_turn_it_stays_bounded(message: str, sources: list[str]) -> None:
    turn = recorded(message, message, citations=[Citation(source=source) for source in sources])
    found = LEARNER.observe_turn(turn, "chat_message:1")
    assert len(found) <= MOST_TOPICS + MOST_SOURCES + 1
    assert all(len(one.text) <= 300 for one in found)
    assert found == LEARNER.observe_turn(turn, "chat_message:1")


def test_it_fits_the_protocol() -> None:
    assert isinstance(LEARNER, AutonomousResearchLearner)
