"""What the model reads of an outcome."""

from __future__ import annotations

import pytest

from brainq.contracts.call import ToolDenied, ToolFailure, ToolOutcome, ToolSuccess, ToolTimeout, ToolUnknown
from brainq.engine.tools.results import MAX_EDITED_CHARS, cancelled_text, edited_note, outcome_text


@pytest.mark.parametrize(
    ("outcome", "text", "is_error"),
    [
        (ToolSuccess(value="as it\nis"), "as it\nis", False),
        (ToolSuccess(value=""), "", False),
        (ToolSuccess(value=None), "null", False),
        (ToolSuccess(value={"b": [1, "\u00e9"], "a": None}), '{"b":[1,"\u00e9"],"a":null}', False),
        (
            ToolSuccess(value=[1], partial=True),
            "[1]\n[incomplete: the tool stopped early and returned what it had]",
            False,
        ),
        (ToolFailure(error="ValueError: bad."), "The tool failed: ValueError: bad.", True),
        (ToolFailure(error="Busy: later", retryable=True), "The tool failed: Busy: later. You may try again.", True),
        (ToolTimeout(after_ms=0), "The tool was not started: its time was already used up.", True),
        (
            ToolTimeout(after_ms=1500),
            ("The tool did not finish in time and was stopped after 1.5 s. Ask for less at once, or go on without it."),
            True,
        ),
        (ToolDenied(reason="pre_hook", message="Not today."), "Not today.", True),
        (
            ToolDenied(reason="budget"),
            "This call was not made: this turn has no tool calls left. Answer with what you have.",
            True,
        ),
        (ToolUnknown(message="Look first."), "Look first.", True),
    ],
)
def test_outcomes_are_said_plainly(outcome: ToolOutcome, text: str, is_error: bool) -> None:
    assert outcome_text(outcome) == (text, is_error)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (ToolTimeout(after_ms=2000, still_running=True), ["2.0 s", "may still take effect"]),
        (ToolUnknown(), ["unknown", "Do not simply repeat"]),
        *[
            (ToolDenied(reason=reason), ["This call was not made"])
            for reason in ("duplicate", "blocked", "pre_hook", "validation", "budget", "approval", "hold")
        ],
    ],
)
def test_what_is_in_doubt_is_said_to_be(outcome: ToolOutcome, words: list[str]) -> None:
    text, is_error = outcome_text(outcome)

    assert is_error
    for word in words:
        assert word in text


@pytest.mark.parametrize(
    ("after_ms", "is_read", "text"),
    [
        (0, True, "Cancelled before it started."),
        (0, False, "Cancelled before it started."),
        (1, True, "Cancelled after 0.0 s."),
        (2540, True, "Cancelled after 2.5 s."),
        (2540, False, "Cancelled after 2.5 s; whether it took effect is not known; check before repeating it."),
    ],
)
def test_a_cancel_is_said_with_what_is_known(after_ms: int, is_read: bool, text: str) -> None:
    assert cancelled_text(after_ms, is_read=is_read) == text


def test_edited_arguments_are_shown_and_long_ones_cut() -> None:
    assert edited_note({"path": "\u00e9.md"}) == (
        '[A person changed the arguments before this ran: {"path": "\u00e9.md"}]\n'
    )
    note = edited_note({"text": "x" * 100_000})
    assert len(note) < MAX_EDITED_CHARS + 200
    assert note.endswith("of 100012 characters)]\n")
