"""What a user says of themself, and what only looks like it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq.contracts.memory import MemoryExtractor
from brainq.finalize.extract_rules import MOST_CHARS, MOST_ITEMS, RuleMemoryExtractor
from tests.unit.finalize.support import ANSWERED, CANCELLED, FAILED, TIMED_OUT, recorded, talk

SAID = [
    ("I prefer window seats.", "preference", "The user says they prefer window seats."),
    ("hello! i prefer tea", "preference", "The user says they prefer tea."),
    (
        "I don\N{RIGHT SINGLE QUOTATION MARK}t like long answers",
        "preference",
        "The user says they don't like long answers.",
    ),
    ("I like vim more than emacs", "preference", "The user says they like vim more than emacs."),
    ("Please always answer in French.", "preference", "The user asks: please always answer in French."),
    ("Never use emojis!", "preference", "The user asks: never use emojis."),
    (
        "Thanks, please always cite your sources",
        "preference",
        "The user asks: please always cite your sources.",
    ),
    ("From now on, answer in German.", "preference", "The user asks: from now on, answer in German."),
    ("Call me Sam.", "preference", "The user asks to be called Sam."),
    ('Call me "Sam" please', "preference", "The user asks to be called Sam."),
    ("Please don't call me Samuel.", "preference", "The user asks not to be called Samuel."),
    ("My name is Anna", "fact", "The user's name is Anna."),
    ("my dog's name is Rex", "fact", "The user's dog's name is Rex."),
    ("My name is Sophia Silva, not Sara Doe.", "fact", "The user's name is Sophia Silva."),
    ("My wife is called Ingrid.", "fact", "The user's wife is called Ingrid."),
    ("My daughter is 5 years old", "fact", "The user's daughter is 5 years old."),
    ("my time zone is Europe/Oslo", "fact", "The user's time zone is Europe/Oslo."),
    ("My favourite colour is teal.", "fact", "The user's favourite colour is teal."),
    ("I'm allergic to nuts", "fact", "The user says they're allergic to nuts."),
    ("I'm a vegetarian", "fact", "The user says they're a vegetarian."),
    ("I'm a software engineer at Initech", "fact", "The user says they're a software engineer at Initech."),
    ("I live in Oslo", "fact", "The user says they live in Oslo."),
    ("I work as a nurse.", "fact", "The user says they work as a nurse."),
    ("I have two kids.", "fact", "The user says they have two kids."),
    (
        "Remember that the staging server is blue-heron",
        "fact",
        "The user asks to remember: the staging server is blue-heron.",
    ),
    ("Please remember: I prefer aisle seats", "preference", "The user says they prefer aisle seats."),
    ("Don't forget that my birthday is 3 May", "fact", "The user's birthday is 3 May."),
    ("I usually get up at 6.", "habit", "The user says they usually get up at 6."),
    ("I never eat meat.", "habit", "The user says they never eat meat."),
    ("Every Monday I call my mother.", "habit", "The user says every Monday they call their mother."),
    ("I go swimming every Tuesday", "habit", "The user says they go swimming every Tuesday."),
]

NOT_SAID = [
    # questions
    "Do I prefer tea?",
    "I prefer tea, right?",
    "Do you remember that I prefer tea?",
    "Is my name Bob?",
    # denied, wished, supposed, past
    "I don't prefer tea",
    "my name is not Bob",
    "I'd prefer a window seat",
    "If I preferred tea, I would say so",
    "I prefer tea if there is no coffee",
    "If you book a flight, please always pick the aisle",
    "I used to always walk",
    "I always wanted to see Rome",
    "I never said that",
    # made up, quoted, pasted
    "Imagine I prefer tea. I live in Oslo.",
    "Let's say my name is Bob. I live in Oslo.",
    'She said "I prefer tea"',
    'He wrote: "I prefer tea. My name is Bob." What did he mean?',
    "He thinks I prefer tea",
    "Write a poem in which I say: I prefer tea",
    "Translate this to French:\nI prefer tea. My name is Bob.",
    "Please fix the grammar of this mail:\n\nHi all,\nI usually works late.\nMy name is Bob.",
    "```\nI prefer tea\n```",
    "~~~\nmy name is Bob",
    "`I prefer tea`",
    "> I prefer tea",
    "<email>I prefer tea. Call me Bob.</email>",
    # leans on what is around it
    "I prefer this one",
    "I prefer the second option",
    "I prefer it",
    "My address is below",
    "My date of birth is already in my profile.",
    "my email is on file",
    "remember that it is due",
    # of the moment, or of the task
    "Never mind.",
    "I always get this error",
    "Every time I run it, it crashes",
    "my code is broken",
    "My question is how this works",
    "My boss is angry",
    "My wife is a bit sad",
    "my job is killing me",
    "I have two questions",
    "I am a bit lost",
    "Call me back",
    "Call me tomorrow",
    "Call me Monday",
    "Call me at 5",
    "Remember to call Bob",
    "Remember that time we went out",
    # secrets
    "My password is hunter2",
    "My name is Bob, my password is hunter2",
    "remember that my card is 4111 1111 1111 1111",
    "remember that the key is sk-abcdefghijklmnop",
    "remember that the wifi code is Xk9$mmQ21x",
    "remember that the db is at postgres://bob:s3cret@db/x",
    "remember that the deploy id is 9f86d081884c7d659a2feaa0c55ad015",
    "",
]


def texts(message: str) -> list[str]:
    return [item.text for item in RuleMemoryExtractor().extract_turn(recorded(message))]


@pytest.mark.parametrize(("message", "kind", "text"), SAID)
def test_what_is_said_of_oneself(message: str, kind: str, text: str) -> None:
    found = [(item.kind, item.text) for item in RuleMemoryExtractor().extract_turn(recorded(message))]
    assert found == [(kind, text)]


@pytest.mark.parametrize("message", NOT_SAID)
def test_what_only_looks_like_it(message: str) -> None:
    assert texts(message) == []


def test_several_statements_of_one_message() -> None:
    first = "Book a table for two, I'm allergic to nuts and my name is Lee."
    message = first + " About me:\n- I live in Bergen\n- I speak Thai"
    assert texts(message) == [
        "The user says they're allergic to nuts.",
        "The user's name is Lee.",
        "The user says they live in Bergen.",
        "The user says they speak Thai.",
    ]


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
    assert len(texts(many)) == MOST_ITEMS
    assert texts("I prefer tea.\nI prefer  TEA\nI prefer tea!") == ["The user says they prefer tea."]


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
    assert len(found) <= MOST_ITEMS
    assert all(len(item.text) <= MOST_CHARS for item in found)


PIECES = st.sampled_from(
    [
        "I prefer tea. ",
        "My name is Bob. ",
        "I usually walk. ",
        '"',
        "```",
        "> ",
        "\n",
        "<a>",
        "'",
        "what? ",
        "if ",
        "x " * 30,
    ]
)


@given(st.lists(PIECES, max_size=40).map("".join))
def test_whatever_stands_in_a_code_block_is_not_read(inside: str) -> None:
    fenced = "Look:\n```\n" + inside.replace("```", "") + "\n```"
    assert texts(fenced) == []


HARD = (
    '"',
    "(",
    "I prefer ",
    "my a ",
    "<a",
    "<a>",
    "1 ",
    "x:",
    "A",
    "1",
    "a1",
    "$1a",
    "```",
    ", and I ",
    "'a ",
    "sk-",
)


@pytest.mark.parametrize("piece", HARD)
def test_no_repetition_keeps_its_patterns_busy(piece: str) -> None:
    assert texts(piece * (20_000 // len(piece))) == []
