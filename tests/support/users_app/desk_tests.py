"""The tests of app.py, as its user writes them."""

from __future__ import annotations

from typing import Any

import pytest
from app import brain, shop  # pyright: ignore

from brainq import testing
from brainq.testing import calls, fails, says

REFUND: Any = [calls(("find", {"order": "A1"})), calls(("refund", {"order": "A1", "amount": 120})), says("Done.")]
SMALL: Any = [calls(("refund", {"order": "A1", "amount": 20})), says("Done.")]
MAIL: Any = [calls(("mail", {"text": "Hello"})), says("Written.")]
ASK: Any = [calls(("ask_supplier", {"question": "When?"})), says("Soon.")]
CANCEL: Any = [calls(("cancel_order", {"order": "A1"})), says("Cancelled.")]


@pytest.fixture(autouse=True)
def a_new_shop() -> None:
    shop.__init__()


@pytest.mark.parametrize(
    ("tool", "arguments", "status", "said"),
    [
        ("find", {"order": "A1"}, "completed", "cost 120"),
        ("find", {"order": "Z9"}, "failed", "there is no order Z9"),
        ("find", {}, "denied", "order"),
        ("rate", {"currency": "EUR"}, "completed", "1.1"),
        ("rate", {"currency": "XXX"}, "failed", "no rate of XXX"),
        ("refund", {"order": "A1", "amount": 20}, "completed", "20 paid back"),
        ("refund", {"order": "B2", "amount": 50}, "failed", "cost only 15"),
        ("refund", {"order": "A1", "amount": "all"}, "denied", "amount"),
        ("cancel_order", {"order": "A1"}, "completed", "is cancelled"),
        ("cancel_order", {"order": "B2"}, "unknown", ""),
    ],
)
def test_a_call(tool: str, arguments: dict[str, Any], status: str, said: str) -> None:
    call = testing.call(brain, tool, arguments)
    assert (call.status, said in str(call.result)) == (status, True)


def test_a_large_refund_needs_a_person() -> None:
    assert testing.call(brain, "refund", {"order": "A1", "amount": 110}, approve=False).status == "denied"
    assert shop.paid == []


def test_a_letter_names_its_session() -> None:
    context = testing.context(session_id="monday")
    assert brain.tools["mail"].function(context, "Hello") == "sent"
    assert context.outputs().web_citations[0].source == "https://mail.example/monday"


def test_an_answer_without_tools() -> None:
    with testing.run(brain, [says("Good morning.")]) as t:
        assert t.turn("Hello").text == "Good morning."
        assert t.calls == ()


def test_a_refund_that_a_person_approves() -> None:
    with testing.run(brain, REFUND) as t:
        t.start("Refund A1")
        assert shop.paid == []
        t.approve(by="ann")
        assert t.result().text == "Done."
        assert shop.paid == [("A1", 120.0)]


def test_a_refund_that_a_person_denies() -> None:
    with testing.run(brain, REFUND) as t:
        t.start("Refund A1")
        t.deny("too late")
        assert (t.result().text, t.calls[1].status, shop.paid) == ("Done.", "denied", [])


def test_nobody_decides_in_an_hour() -> None:
    with testing.run(brain, REFUND) as t:
        t.start("Refund A1")
        t.advance(minutes=59)
        assert t.handle.approvals()[0].state == "pending"
        t.advance(minutes=2)
        assert (t.result().text, t.calls[1].status, shop.paid) == ("Done.", "denied", [])


@pytest.mark.parametrize(("at", "paid"), [("start", []), ("end", [("A1", 20.0)])])
def test_the_worker_dies_in_a_refund(at: Any, paid: list[Any]) -> None:
    with testing.run(brain, SMALL) as t:
        t.kill(during="refund", at=at)
        t.turn("Refund 20 of A1")
        assert (t.calls[0].status, shop.paid) == ("unknown", paid)


@pytest.mark.parametrize("at", ["start", "end"])
def test_a_letter_is_written_once_though_its_worker_dies(at: Any) -> None:
    with testing.run(brain, MAIL) as t:
        t.kill(during="mail", at=at)
        assert t.turn("Write").text == "Written."
        assert (t.calls[0].status, t.calls[0].attempt, list(shop.mails.values())) == ("completed", 2, ["Hello"])


def test_a_read_runs_again() -> None:
    with testing.run(brain, [calls(("find", {"order": "A1"})), says("120.")]) as t:
        t.kill(during="find")
        assert (t.turn("Find A1").text, t.calls[0].status) == ("120.", "completed")


def test_the_supplier_answers() -> None:
    with testing.run(brain, ASK) as t:
        t.start("When?")
        t.advance(hours=20)
        t.complete("on Friday")
        assert (t.result().text, t.calls[0].result) == ("Soon.", "on Friday")


def test_the_supplier_does_not_answer() -> None:
    with testing.run(brain, ASK) as t:
        t.start("When?")
        t.advance(days=2)
        assert (t.result().text, t.calls[0].status) == ("Soon.", "timed_out")


def test_a_customer_changes_their_mind() -> None:
    with testing.run(brain, REFUND) as t:
        t.steer("No, only 20!", during="find")
        t.start("Refund A1")
        assert "No, only 20!" in [message.content for message in t.handle.transcript()]


def test_the_shop_is_down() -> None:
    shop.is_down = True
    with testing.run(brain, [calls(("find", {"order": "A1"})), says("Later.")]) as t:
        assert (t.turn("Find A1").text, t.calls[0].status) == ("Later.", "failed")


def test_a_stream_that_breaks_off() -> None:
    with testing.run(brain, [fails("stream", attempts=1, then=says("Good morning."))]) as t:
        assert t.turn("Hello").text == "Good morning."


def test_a_model_that_asks_without_end() -> None:
    with testing.run(brain, lambda request: calls(("find", {"order": "A1"}), ("rate", {"currency": "EUR"}))) as t:
        result = t.turn("Find A1")
        assert (result.ending, result.stop_reason) == ("completed", "max_steps")


def test_a_report_every_morning() -> None:
    with testing.run(brain, [says("Three orders.")]) as t:
        t.client.schedule("report", "report", "How many orders?", when=86_400.0)
        t.advance(days=3, minutes=1)
        assert [turn.state for turn in t.client.turns()] == ["completed"] * 3


def test_every_turn_is_noted() -> None:
    with testing.run(brain, [says("Hi.")]) as t:
        turns = [t.turn("Hi").turn_id for _ in range(3)]
    assert shop.ended == turns


def test_two_turns_of_one_session_see_each_other() -> None:
    with testing.run(brain, lambda request: says(str(len(request.messages)))) as t:
        first, second = t.turn("One").text, t.turn("Two").text
        assert int(second) > int(first)


def test_an_order_is_cancelled_by_two_people() -> None:
    with testing.run(brain, CANCEL) as t:
        t.start("Cancel A1")
        t.approve()
        assert (t.result().text, "A1" in shop.orders) == ("Cancelled.", False)
