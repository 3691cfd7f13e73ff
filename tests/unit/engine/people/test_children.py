"""What a child's end brings: what the parent's model reads, and what SQL is told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from brainq.contracts.call import ToolSuccess
from brainq.contracts.claim import CallFacts, CallRef, SettleReply
from brainq.contracts.status import Effect, Ending, StopReason, TraceStatus
from brainq.contracts.turn import ParentCall, TurnRequest, TurnResult
from brainq.engine.people.children import ChildDesk, child_outcome
from tests.support.stand_in import stand_in


@pytest.mark.parametrize(
    ("stop_reason", "text"),
    [
        (StopReason.ANSWERED, "It is 4"),
        (StopReason.LENGTH, "It is 4\n[The child's answer was cut off here.]"),
        (StopReason.FILTERED, "It is 4\n[A content filter stopped the child's answer here.]"),
    ],
)
def test_the_parents_model_is_told_when_an_answer_is_not_whole(stop_reason: StopReason, text: str) -> None:
    result = TurnResult(turn_id="t-1", session_id="s", text="It is 4", ending=Ending.COMPLETED, stop_reason=stop_reason)
    assert child_outcome(result) == ToolSuccess(value=text)


REQUEST = TurnRequest(
    turn_id="ch-1",
    session_id="s2",
    user_message="Add.",
    parent=ParentCall(session_id="s1", turn_id="turn-1", call_id="c1-0", depth=1),
)
RESULT = TurnResult(turn_id="ch-1", session_id="s2", text="4", ending=Ending.COMPLETED, stop_reason=StopReason.ANSWERED)


def recorded(word: Any, effect: Effect) -> list[tuple[Any, ...]]:
    """What SQL is told of a child that is delivered with this word."""
    told: list[tuple[Any, ...]] = []

    def facts(ref: CallRef) -> CallFacts:
        return CallFacts(TraceStatus.PARKED, "add", effect, attempt=2, idempotent=False, step=1)

    def complete(*args: Any, **more: Any) -> SettleReply:
        assert more["outcome"] == ToolSuccess(value="4"), "what the brain's hook is told"
        return SettleReply(word)

    def record(*args: Any, late: bool) -> None:
        told.append((*args, late))

    nothing = stand_in(None)
    desk = ChildDesk(
        limits=nothing,
        requests=nothing,
        admission=nothing,
        turns=nothing,
        calls=stand_in(SimpleNamespace(facts=facts)),
        outside=stand_in(SimpleNamespace(complete=complete)),
        intents=stand_in(SimpleNamespace(record_outcome=record)),
        check_request=nothing,
    )
    assert desk.deliver(REQUEST, RESULT) == word.lower()
    return told


@pytest.mark.parametrize("word", ["SETTLED", "EARLY", "USED"])
def test_an_outcome_that_comes_again_after_a_crash_is_recorded_all_the_same(word: str) -> None:
    """The worker that delivered it first may have died before SQL was told."""
    assert recorded(word, Effect.LOCAL_WRITE) == [("turn-1", "c1-0", 2, ToolSuccess(value="4"), False)]


@pytest.mark.parametrize(("word", "effect"), [("LATE", Effect.LOCAL_WRITE), ("USED", Effect.READ_ONLY)])
def test_what_the_call_no_longer_waits_for_and_what_only_reads_is_not(word: str, effect: Effect) -> None:
    assert recorded(word, effect) == []
