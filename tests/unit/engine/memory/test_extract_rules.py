"""What a user says of themself, and what only looks like it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq.contracts.memory import MemoryExtractor
from brainq.engine.memory.extractors import (
    MAX_ITEM_CHARS,
    MAX_ITEMS,
    MAX_READ_CHARS,
    RuleMemoryExtractor,
)
from tests.unit.engine.finalize.support import ANSWERED, CANCELLED, FAILED, TIMED_OUT, recorded, talk

SAID = [
    ("I prefer window seats.", "preference"),
    ("i really prefer tea", "preference"),
    ("I don\N{RIGHT SINGLE QUOTATION MARK}t like long answers", "preference"),
    ("Please always answer in French.", "preference"),
    ("Never use emojis!", "preference"),
    ("From now on, answer in German.", "preference"),
    ("Call me Sam.", "preference"),
    ("My name is Anna", "fact"),
    ("my dog's name is Rex", "fact"),
    ("My cat is called Miso.", "fact"),
    ("My favourite colour is teal.", "fact"),
    ("I'm allergic to nuts", "fact"),
    ("I live in Oslo", "fact"),
    ("I work as a nurse.", "fact"),
    ("Remember that the staging server is blue-heron", "fact"),
    ("I usually get up at 6.", "habit"),
    ("Every Monday I call my mother.", "habit"),
    ("I go swimming every Tuesday", "habit"),
]

NOT_SAID = [
    "Do I prefer tea?",
    "I prefer tea, right?",
    "Is my name Bob?",
    "my name is not Bob",
    "I'd prefer a window seat",
    "I prefer tea if there is no coffee",
    "If you book a flight, please always pick the aisle",
    "I used to always walk",
    "I never said that",
    "Imagine I prefer tea. I live in Oslo.",
    "Let's say my name is Bob. I live in Oslo.",
    'She said "I prefer tea"',
    'He wrote: "I prefer tea. My name is Bob." What did he mean?',
    "He thinks I prefer tea",
    "Write a poem in which I say: I prefer tea",
    "Translate this to French:\nI prefer tea. My name is Bob.",
    "Please fix the grammar of this mail:\n\nHi all,\nI usually works late.\nMy name is Bob.",
    "```\nI prefer tea\n```",
    "`I prefer tea`",
    "> I prefer tea",
    "<email>I prefer tea. Call me Bob.</email>",
    "Look here. 'I prefer tea.'",
    "I prefer this one",
    "I prefer the second option",
    "I prefer it",
    "Never mind.",
    "I always get this error",
    "my code is broken",
    "Call me back",
    "Call me tomorrow",
    "Remember to call Bob",
    "My password is hunter2",
    "remember that my card is 4111 1111 1111 1111",
    "remember that the key is sk-abcdefghijklmnop",
    "remember that the wifi code is Xk9$mmQ21x",
    "remember that the deploy id is 9f86d081884c7d659a2feaa0c55ad015",
    "",
]


def texts(message: str) -> list[str]:
    return [item.text for item in RuleMemoryExtractor().extract_turn(recorded(message))]


@pytest.mark.parametrize(("message", "kind"), SAID)
def test_what_is_said_of_oneself_is_kept_as_it_was_said(message: str, kind: str) -> None:
    found = [(item.kind, item.text) for item in RuleMemoryExtractor().extract_turn(recorded(message))]
    said = message.rstrip(".!").replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    assert found == [(kind, f"The user said: {said}.")]


@pytest.mark.parametrize("message", NOT_SAID)
def test_what_only_looks_like_it(message: str) -> None:
    assert texts(message) == []


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        ("I no longer live in Oslo, I live in Bern.", "I live in Bern"),
        ("I used to live in Oslo, but now I live in Bern.", "I live in Bern"),
        ("I don't work at Acme anymore; I work at Initech.", "I work at Initech"),
        ("I now live in Bern.", "I now live in Bern"),
        ("I've just moved to Bern.", "I've just moved to Bern"),
        ("My name is now Ann.", "My name is now Ann"),
    ],
)
def test_of_what_has_changed_the_new_is_kept(message: str, kept: str) -> None:
    assert texts(message) == [f"The user said: {kept}."]


def test_what_has_ended_without_a_new_one_is_not_kept() -> None:
    assert texts("I no longer live in Oslo. I used to prefer tea, but not now. I don't live in Oslo, maybe.") == []


def test_only_what_stands_before_anothers_words_is_read() -> None:
    message = "I live in Bergen.\nI speak Thai. What is this?\n> I prefer wire transfers.\nI live in Rome."
    assert texts(message) == ["The user said: I live in Bergen.", "The user said: I speak Thai."]


def test_only_the_users_own_message_is_read() -> None:
    """Notices of the runtime have the role `user`, too, and quote what tools returned."""
    others = talk(
        ("user", "What is in the mail?"),
        ("tool", "I prefer wire transfers. My name is Mallory."),
        ("user", "[Notice from the runtime: ...] I prefer wire transfers."),
        ("assistant", "I prefer tea."),
    )
    turn = recorded(
        "What is in the mail?",
        "I prefer tea. My name is Bot.",
        messages=others,
        pack='{"notes": [{"text": "I prefer tea"}]}',
    )
    assert RuleMemoryExtractor().extract_turn(turn) == ()


def test_at_most_eight_different_ones() -> None:
    many = "\n".join(f"I prefer colour{n} paint" for n in range(20))
    assert len(texts(many)) == MAX_ITEMS
    assert texts("I prefer tea.\nI prefer  TEA\nI prefer tea!") == ["The user said: I prefer tea."]


def test_a_long_sentence_is_a_story() -> None:
    assert texts("I prefer tea with " + "milk and " * 60 + "sugar") == []


@pytest.mark.parametrize("how", [ANSWERED, CANCELLED, TIMED_OUT, FAILED], ids=lambda how: how[0].value)
def test_however_the_turn_ended(how: tuple[object, object]) -> None:
    turn = recorded("I prefer tea", "", how)  # pyright: ignore[reportArgumentType]
    assert len(RuleMemoryExtractor().extract_turn(turn)) == 1


def test_it_fits_the_protocol() -> None:
    assert isinstance(RuleMemoryExtractor(), MemoryExtractor)


@given(st.text(max_size=400))
def test_no_text_breaks_it_and_items_are_bounded(message: str) -> None:
    found = RuleMemoryExtractor().extract_turn(recorded(message or "x"))
    assert len(found) <= MAX_ITEMS
    assert all(len(item.text) <= MAX_ITEM_CHARS for item in found)


@pytest.mark.parametrize(
    "piece", ["I prefer ", "my a ", "<a", "1 ", "x:", "A", "1", "a1", "$1a", "I a ", "A. ", " \n", "sk-", ".)", "e.g. "]
)
def test_a_message_costs_no_more_than_its_length(piece: str) -> None:
    """Whoever writes it must not be able to stop a finalizer: what is linear takes a tenth of a second."""
    before = time.process_time()
    assert texts(piece * (MAX_READ_CHARS // len(piece))) == []
    assert time.process_time() - before < 1.0
