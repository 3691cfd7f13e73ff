"""Summaries of a conversation, and who writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq.contracts.message import Message
from brainq.contracts.model import ModelReply, ModelRequest, Spend, TokenUsage
from brainq.engine.models.asking.bill import Allowance
from brainq.engine.models.scripted import ScriptedFailure, fails, says
from brainq.engine.turn.prompt.summary import (
    MAX_PIECES,
    DroppedHistory,
    Summariser,
    collect_dropped,
    summary_by_rules,
    summary_message,
)
from brainq.runtime.text.estimate import estimate_messages, estimate_request, estimate_text
from tests.unit.engine.turn.conversations import (
    TURN,
    Rules,
    answer,
    asked,
    asks,
    free,
    histories,
    result,
    says_always,
    steps,
    unhurried,
    user,
)

# The summary: what it carries, and the one made by rules.


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


# A summary by a model: in one piece, in several, or by rules after all.


USAGE = TokenUsage(input_tokens=90, output_tokens=10)


def folded(messages: list[Message], earlier: str = "") -> DroppedHistory:
    return DroppedHistory(earlier, tuple(messages), ())


def summariser(rules: Rules | None, window: int = 8_000) -> Summariser:
    return Summariser(asked(rules), Allowance(free), window, "s1", TURN, 4)


class Listener:
    """Says `said n` to the n-th question, or fails at one."""

    def __init__(self, fails_at: int = 0, kind: str = "server") -> None:
        self.seen: list[ModelRequest] = []
        self._fails_at = fails_at
        self._kind = kind

    def __call__(self, request: ModelRequest) -> ModelReply | ScriptedFailure:
        self.seen.append(request)
        if len(self.seen) == self._fails_at:
            return fails(self._kind)
        return says(f"said {len(self.seen)}", usage=USAGE)


def test_in_one_piece() -> None:
    heard = Listener()
    text, method, spend, why = summariser(heard).summarise(folded([user("Hi.")], "Ann."), 300, 100)
    assert (text, method, why) == ("said 1", "model", "")
    assert spend == Spend(kind="compaction", step=4, model="m", input_tokens=90, output_tokens=10, cost_usd=0.1)
    (request,) = heard.seen
    assert (request.purpose, request.turn_id, request.step) == ("compaction", TURN, 4)
    assert 0 < request.timeout_s <= 50
    assert request.messages[1].content == (
        "What happened before:\n<<<BEGIN UNTRUSTED DATA: summary so far>>>\nAnn.\n"
        "<<<END UNTRUSTED DATA: summary so far>>>\n\n"
        "What happened next:\n<<<BEGIN UNTRUSTED DATA: transcript>>>\n[user] Hi.\n"
        "<<<END UNTRUSTED DATA: transcript>>>"
    )


def test_a_long_reply_is_cut() -> None:
    text, method, *_ = summariser(says_always("word " * 2_000)).summarise(folded([user("Hi.")]), 300, 100)
    assert method == "model"
    assert estimate_text(text) <= 300


def test_long_results_are_cut_before_there_are_pieces() -> None:
    heard = Listener()
    summariser(heard).summarise(folded(steps(8, 5_000)), 300, 100)
    (request,) = heard.seen
    assert "characters or more left out" in request.messages[1].content


def test_piece_by_piece() -> None:
    heard = Listener()
    text, method, spend, _ = summariser(heard, 3_000).summarise(folded(steps(16, 500)), 300, 100)
    assert (text, method) == (f"said {len(heard.seen)}", "model")
    assert 1 < len(heard.seen) <= MAX_PIECES
    assert spend is not None
    assert (spend.input_tokens, spend.output_tokens) == (90 * len(heard.seen), 10 * len(heard.seen))
    assert spend.cost_usd == pytest.approx(0.1 * len(heard.seen))  # pyright: ignore[reportUnknownMemberType]
    assert "said 1" in heard.seen[1].messages[1].content, "each piece builds on the one before"
    assert all(estimate_request(request) <= 3_000 for request in heard.seen)


def test_the_oldest_of_far_too_much_goes_in_by_rules() -> None:
    heard = Listener()
    talk = [user("Find the oldest page."), *steps(60, 500)]
    summariser(heard, 3_000).summarise(folded(talk), 300, 100)
    assert len(heard.seen) == MAX_PIECES
    first = heard.seen[0].messages[1].content
    assert "What happened before:" in first
    assert "It called look(" in first.partition("What happened next:")[0]
    assert "page 60" in heard.seen[-1].messages[1].content


@pytest.mark.parametrize(
    ("rules", "input_tokens"),
    [
        (None, 0),
        (Listener(fails_at=1), 0),
        (Listener(fails_at=2), 90),
        (Listener(fails_at=2, kind="timeout"), 500),
        (says_always(" "), 500),
    ],
)
def test_rules_where_the_model_fails(rules: Rules | None, input_tokens: int) -> None:
    talk = [user("Hi. You."), *steps(16, 500)]
    text, method, spend, why = summariser(rules, 3_000).summarise(folded(talk, "Ann."), 300, 100)
    assert method == "rules"
    assert why
    assert text.startswith("Ann.\n")
    assert (spend is not None) == (input_tokens > 0)
    assert spend is None or input_tokens <= spend.input_tokens < input_tokens + 2_500


def test_rules_where_time_is_short() -> None:
    heard = Listener()
    made = summariser(heard).summarise(folded([user("Hi.")]), 300, 9)
    assert (made.method, made.why) == ("rules", "there was too little time")
    assert heard.seen == []


def unknown_price(provider: str, model: str, usage: TokenUsage) -> None:
    return None


def test_a_price_that_is_not_known_stays_so() -> None:
    unknown = Summariser(asked(Listener()), Allowance(unknown_price), 3_000, "s1", TURN, 4)
    spend = unknown.summarise(folded(steps(16, 500)), 300, 100).spend
    assert spend is not None
    assert spend.cost_usd is None


def test_no_time_is_left_for_the_next_piece() -> None:
    clock = iter([0.0, 1.0, 51.0])
    heard = Listener()
    slow = Summariser(asked(heard), Allowance(free), 3_000, "s1", TURN, 4, lambda: next(clock))
    assert slow.summarise(folded(steps(16, 500)), 300, 100)[1] == "rules"
    assert len(heard.seen) == 1
    assert heard.seen[0].timeout_s == 49
