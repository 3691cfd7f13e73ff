"""What is refused at the intake, by field."""

from __future__ import annotations

from typing import Any

import pytest

from brainq.client import checks
from brainq.contracts.turn import MAX_MESSAGE_CHARS
from brainq.errors import InvalidInput


@pytest.mark.parametrize(
    ("field", "text", "message_id", "readiness"),
    [
        ("text", "", None, None),
        ("text", "  \n", None, None),
        ("text", "  \n", None, True),
        ("text", None, None, None),
        ("text", "x" * (MAX_MESSAGE_CHARS + 1), None, None),
        ("text", "\ud800", None, None),
        ("client_message_id", "x", "a b", None),
        ("client_message_id", "x", "", None),
        ("client_message_id", "x", "x" * 129, None),
        ("readiness", "x", None, "yes"),
    ],
)
def test_input_that_cannot_be_sent(field: str, text: Any, message_id: Any, readiness: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        checks.turn_input(text, message_id, readiness)
    assert refused.value.field == field
    assert len(str(refused.value)) < 300


def test_input_is_sent_as_it_is_and_gets_an_id_of_its_own() -> None:
    first, second = (checks.turn_input(" as it is\n", None, None) for _ in range(2))
    assert first.text == " as it is\n"
    assert first.client_message_id != second.client_message_id
    assert len(checks.turn_input("x" * MAX_MESSAGE_CHARS, "m1", None).text) == MAX_MESSAGE_CHARS
    assert checks.turn_input("", "m1", False).readiness is False


@pytest.mark.parametrize("expires_in_s", [0, -1, float("nan"), float("inf"), 1e12, True, "60", None])
def test_a_hold_stands_for_a_finite_time(expires_in_s: Any) -> None:
    with pytest.raises(InvalidInput, match="expires_in_s"):
        checks.hold("hold", "", expires_in_s, "deny")


@pytest.mark.parametrize(("reason", "policy", "field"), [("", "odd", "on_expiry"), (None, "deny", "reason")])
def test_a_hold_says_why_and_what_follows(reason: Any, policy: Any, field: str) -> None:
    with pytest.raises(InvalidInput, match=field):
        checks.hold("hold", reason, 60, policy)
    with pytest.raises(InvalidInput, match="at most 500"):
        checks.hold("hold", "x" * 501, 60, "deny")


@pytest.mark.parametrize("wrong", ["", "turn-1", "turn-1.", "-c1-0", "a b-c1-0", "turn-1-c 1", 7, None])
def test_an_approval_is_named_by_turn_and_call(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="id: "):
        checks.approval(wrong)
    assert checks.approval("turn-1.c1-0") == checks.approval("turn-1-c1-0") == "turn-1-c1-0"


def test_a_page_goes_on_after_a_call_of_its_turn_or_so_many_messages() -> None:
    assert checks.after_call("turn-1", None) is None
    assert checks.after_call("turn-1", "turn-1-c2-0") == "c2-0"
    for wrong in ("turn-2-c2-0", "c2-0", "", 7):
        with pytest.raises(InvalidInput):
            checks.after_call("turn-1", wrong)
    assert checks.after_count(0) == 0
    for wrong in (-1, True, "5", None):
        with pytest.raises(InvalidInput, match="after"):
            checks.after_count(wrong)


def test_states_and_limits_are_known_words_and_numbers() -> None:
    assert checks.approval_state("all") is None
    assert checks.approval_state("denied") == "denied"
    with pytest.raises(InvalidInput, match="pending, approved"):
        checks.approval_state("odd")
    for wrong in (0, 10_001, True, "5"):
        with pytest.raises(InvalidInput, match="limit"):
            checks.limit(wrong)
