"""A summary by a model: in one piece, in several, or by rules after all."""

from __future__ import annotations

import pytest

from brainq.contracts.message import Message
from brainq.contracts.model import ModelReply, ModelRequest, Spend, TokenUsage
from brainq.engine.models.asking.bill import Allowance
from brainq.engine.models.scripted import ScriptedFailure, fails, says
from brainq.engine.turn.prompt.summary import MAX_PIECES, DroppedHistory, Summariser
from brainq.runtime.text.estimate import estimate_request, estimate_text
from tests.unit.engine.turn.conversations import TURN, Rules, asked, free, says_always, steps, user

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
