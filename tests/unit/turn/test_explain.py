"""What `brainq show` says happens next."""

from __future__ import annotations

from typing import Any

import pytest

from brainq.contracts.effect import Effect
from brainq.contracts.snapshot import BudgetSnapshot, TurnSnapshot
from brainq.contracts.status import Ending, StopReason, TraceStatus, TurnState
from brainq.contracts.trace import ToolTraceEntry
from brainq.turn.explain import explain

BUDGET = BudgetSnapshot(
    remaining_s=100,
    expired=False,
    steps_used=2,
    steps_max=6,
    tool_calls_used=0,
    tool_calls_max=6,
    reflections_used=0,
    reflections_max=4,
    max_context_tokens=1000,
    tokens_used=0,
    tokens_max=None,
    cost_usd=0,
    cost_max_usd=None,
)


def snapshot(**given: Any) -> TurnSnapshot:
    """An active turn between its steps 2 and 3, which nobody holds."""
    values: dict[str, Any] = {
        "turn_id": "t-1",
        "session_id": "s1",
        "state": TurnState.ACTIVE,
        "awaits": "coordinator",
        "step": 2,
        "attempt": 1,
        "fence": 3,
        "owner": "",
        "lease_remaining_ms": 0,
        "ending": None,
        "stop_reason": None,
        "cancel_requested": False,
        "budget": BUDGET,
        "trace": (),
        "now_ms": 100_000,
    }
    return TurnSnapshot(**values | given)


def call(number: int, status: TraceStatus, **given: Any) -> ToolTraceEntry:
    return ToolTraceEntry(
        call_id=f"c2-{number}", tool="note", effect=Effect.LOCAL_WRITE, status=status, step=2, wave=1, **given
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"state": TurnState.QUEUED, "waiting_behind": 1}, "queued behind 1 turn of its session"),
        ({"state": TurnState.QUEUED, "waiting_behind": 3}, "queued behind 3 turns of its session"),
        ({}, "step 3 of 6 is next; a coordinator is rung, and rung again after 5 s if that bell was lost"),
        (
            {"owner": "host-7", "lease_remaining_ms": 8000},
            "step 3 of 6 is next; coordinator host-7 has it, lease 8.0 s left",
        ),
        (
            {"owner": "host-7", "lease_remaining_ms": 8000, "attempt": 2},
            "step 3 of 6 is next (attempt 2 of it); coordinator host-7 has it, lease 8.0 s left",
        ),
        (
            {"owner": "host-7"},
            "step 3 of 6 is next; the lease of coordinator host-7 lapsed, the sweeper rings within 1 s",
        ),
        ({"step": 6}, "ends next as completed, because all 6 steps are used; a coordinator is rung"),
        (
            {"cancel_requested": True},
            "ends next as cancelled, because it was cancelled; a coordinator is rung",
        ),
        (
            {"budget": BUDGET.model_copy(update={"remaining_s": 0.0})},
            "ends next as timed_out, because its deadline has passed; a coordinator is rung",
        ),
        ({"awaits": "calls"}, "waits for its next wave of calls"),
        (
            {
                "state": TurnState.CLOSING,
                "awaits": "finalizer",
                "ending": Ending.CANCELLED,
                "finalizer_step": "log",
            },
            "closing as cancelled: the finalizer is rung for its step log",
        ),
        (
            {
                "state": TurnState.COMPLETED,
                "awaits": "finalizer",
                "ending": Ending.COMPLETED,
                "stop_reason": StopReason.MAX_STEPS,
                "finalizer_step": "decision",
                "finalizer_tries": 2,
            },
            "ended as completed (max_steps) and its result is out; the finalizer is at its step decision, try 2",
        ),
        (
            {"state": TurnState.FAILED, "awaits": "nobody", "ending": Ending.FAILED},
            "ended as failed; nothing more happens",
        ),
    ],
)
def test_one_sentence_says_what_happens_next_and_why(given: dict[str, Any], said: str) -> None:
    assert explain(snapshot(**given)).startswith(said)


def test_parked_calls_say_whom_they_wait_for() -> None:
    parks = ("approval", "hold", "outside", "child")
    trace = tuple(call(place, TraceStatus.PARKED, park=park) for place, park in enumerate(parks))
    assert explain(snapshot(state=TurnState.PARKED, awaits="people", trace=trace)) == (
        "waits for a person's approval of c2-0 note, a hold to be released, before c2-1 note, "
        "the outside result of c2-2 note, the child turn of c2-3 note"
    )


def test_calls_say_where_they_are() -> None:
    trace = (
        call(0, TraceStatus.COMPLETED),
        call(1, TraceStatus.RUNNING, started_at_ms=96_800, owner="host-9"),
        call(2, TraceStatus.DISPATCHED, dispatched_at_ms=99_000),
        call(3, TraceStatus.WAITING, lanes=("session:s1",)),
        call(4, TraceStatus.PLANNED),
    )
    assert explain(snapshot(awaits="calls", trace=trace)) == (
        "waits for c2-1 note (running 3.2 s on host-9), c2-2 note (in its queue for 1.0 s), "
        "c2-3 note (waits for the lane session:s1); then c2-4"
    )
