"""The summary: what it carries, and the one made by rules."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from brainq.contracts.message import Message
from brainq.engine.turn.prompt.summary import collect_dropped, summary_by_rules, summary_message
from brainq.runtime.text.estimate import estimate_messages, estimate_text
from tests.unit.engine.turn.conversations import TURN, answer, asks, histories, result, unhurried, user

TALK = [
    user("Book a flight to Oslo. Not on Sunday."),
    asks(1, "look", text="Let me see.", to="OSL"),
    result(1, 0, "3 flights"),
    asks(2, "book", "mail", flight="F1"),
    result(2, 0, "booked as B7\nseat 4A", "book"),
    result(2, 1, "no such address", "mail", is_error=True),
    Message(role="user", content="[Note]\nAsk for the address.", extra={"note": "reflection"}),
    answer("It is booked. What is the address?"),
    asks(1, "look", turn="t-2"),
]


def is_write(tool: str) -> bool:
    return tool != "look"


def test_taking_the_dropped_apart() -> None:
    earlier = summary_message("The user is Ann.", ["pay({}) -> ok"], "model", 400)
    folded = collect_dropped([earlier, *TALK], is_write)
    assert folded.earlier == "The user is Ann."
    assert folded.messages == tuple(TALK)
    assert folded.changes == (
        "pay({}) -> ok",
        'book({"flight": "F1"}) -> ok: booked as B7 seat 4A',
        'mail({"flight": "F1"}) -> error: no such address',
    )


def test_a_summary_by_rules() -> None:
    folded = collect_dropped([summary_message("The user is Ann.", [], "model", 400), *TALK], is_write)
    assert summary_by_rules(folded, 1_000) == "\n".join(
        [
            "The user is Ann.",
            "The user wrote: Book a flight to Oslo.",
            "The agent wrote: Let me see.",
            'It called look({"to": "OSL"}): ok',
            'It called book({"flight": "F1"}): ok',
            'It called mail({"flight": "F1"}): error',
            "A review found: Ask for the address.",
            "The agent wrote: It is booked.",
            "It called look({}): no result",
        ]
    )


def test_with_little_room_the_newest_stays() -> None:
    text = summary_by_rules(collect_dropped(TALK, is_write), 40)
    assert text.startswith("(5 earlier left out)\n")
    assert text.endswith("It called look({}): no result")


def test_how_a_summary_stands_in_the_history() -> None:
    message = summary_message("The user is Ann.", ["pay({}) -> ok"], "model", 400)
    assert (message.role, message.turn) == ("user", "")
    assert message.extra == {
        "note": "summary",
        "method": "model",
        "text": "The user is Ann.",
        "changes": ["pay({}) -> ok"],
    }
    assert message.content.endswith(
        "\n<<<BEGIN UNTRUSTED DATA: summary>>>\n"
        "The user is Ann.\n"
        "\n"
        "Calls that may have changed something, oldest first:\n"
        "- pay({}) -> ok\n"
        "<<<END UNTRUSTED DATA: summary>>>"
    )


def test_a_summary_of_another_make_is_folded_by_its_text() -> None:
    folded = collect_dropped([Message(role="user", content="Earlier.", extra={"note": "summary"})], is_write)
    assert (folded.earlier, folded.changes) == ("Earlier.", ())


def test_of_many_changes_the_newest_stay() -> None:
    message = summary_message("x" * 9_000, [f"pay({i}) -> ok" for i in range(500)], "rules", 500)
    assert "earlier left out)" in message.content
    assert "pay(499) -> ok" in message.content
    assert "xxx" in message.content
    assert message.extra is not None
    again = collect_dropped([message], is_write).changes
    assert again[-1] == "pay(499) -> ok"


def test_lone_surrogates_go_nowhere() -> None:
    talk = [user("\ud800 hi"), asks(1, "book", at="\ud800"), result(1, 0, "\ud800", "book")]
    folded = collect_dropped(talk, is_write)
    message = summary_message(summary_by_rules(folded, 300), folded.changes, "rules", 400)
    assert message.model_dump_json().encode()


@unhurried
@given(histories(), st.integers(120, 1_000), st.text())
def test_no_summary_is_longer_than_allowed(history: list[Message], most: int, said: str) -> None:
    folded = collect_dropped(history, is_write)
    text = summary_by_rules(folded, most)
    assert estimate_text(text) <= most
    for words in (text, said):
        message = summary_message(words, folded.changes, "rules", most)
        assert estimate_messages([message]) <= most
        assert message.model_dump_json().encode()
        assert message.turn != TURN
