"""What the parent's model reads of a child's end."""

from __future__ import annotations

import pytest

from brainq.contracts.outcome import ToolSuccess
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import TurnResult
from brainq.people.children import outcome_of_child


@pytest.mark.parametrize(
    ("stop_reason", "text"),
    [
        (StopReason.ANSWERED, "It is 4"),
        (StopReason.LENGTH, "It is 4\n[The child's answer was cut off here.]"),
        (StopReason.FILTERED, "It is 4\n[A content filter stopped the child's answer here.]"),
    ],
)
def test_the_parents_model_is_told_when_an_answer_is_not_whole(stop_reason: StopReason, text: str) -> None:
    result = TurnResult(
        turn_id="t-1", session_id="s", text="It is 4", ending=Ending.COMPLETED, stop_reason=stop_reason
    )
    assert outcome_of_child(result) == ToolSuccess(value=text)
