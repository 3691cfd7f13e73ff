"""What `brainq show` says happens next."""

from __future__ import annotations

from typing import Any

import pytest

from brainq.contracts.call import ToolTraceEntry
from brainq.contracts.status import Effect, Ending, StopReason, TraceStatus, TurnState
from brainq.contracts.view import BudgetSnapshot, QueuePosition, TurnSnapshot
from brainq.engine.turn.explain import explain

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
        ({}, "step 3 of 6 is next; a coordinator is called, and called again after 5 s if that message was lost"),
        ({"owner": "host-7", "lease_remaining_ms": 8000}, "step 3 of 6 is running on coordinator host-7 (lease 8.0 s)"),
        (
            {"owner": "host-7", "lease_remaining_ms": 8000, "attempt": 2},
            "step 3 of 6 is running on coordinator host-7, attempt 2 (lease 8.0 s)",
        ),
        (
            {"owner": "host-7"},
            "step 3 of 6 is next; the lease of coordinator host-7 ran out; another one is called within 1 s",
        ),
        ({"step": 6}, "ends next as completed, because all 6 steps are used (max_steps); a coordinator is called"),
        ({"cancel_requested": True}, "ends next as cancelled, because it was cancelled; a coordinator is called"),
        (
            {"budget": BUDGET.model_copy(update={"remaining_s": 0.0})},
            "ends next as timed_out, because its deadline has passed; a coordinator is called",
        ),
        ({"awaits": "calls"}, "waits for its next calls"),
        (
            {"state": TurnState.CLOSING, "awaits": "finalizer", "ending": Ending.CANCELLED, "finalizer_step": "log"},
            "closing as cancelled: the finalizer is called for its step log",
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


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ({"live": "t-0"}, "queued behind the live turn t-0 of its session"),
        (
            {"brain": "lab", "brain_live": 2, "brain_cap": 2, "ahead_for_capacity": 0},
            (
                "queued: 2 of 2 turns of brain lab are live; it is the next of tenant acme; "
                "to allow more, raise the brain's max_live_turns"
            ),
        ),
        (
            {"brain": "lab", "brain_live": 2, "brain_cap": 2, "ahead_for_capacity": 3, "full": "fleet"},
            (
                "queued: 2 of 2 turns of brain lab are live; 3 of tenant acme before it; "
                "to allow more, raise the brain's max_live_turns"
            ),
        ),
        (
            {"brain": "lab", "ahead": 1, "ahead_for_capacity": 0},
            "queued behind 1 turn of its session, the first of which waits for brain lab",
        ),
        ({"live": "t-0", "ahead": 2}, "queued behind 3 turns of its session, of which t-0 is live"),
        ({"is_paused": True}, "queued: session acme:1 is paused; `brainq resume acme:1` lets it begin"),
        (
            {"is_paused": True, "paused_ms": 9_000_000, "paused_why": "ops: look into it", "ahead": 1},
            (
                "queued: session acme:1 is paused for 2 h (ops: look into it); "
                "`brainq resume acme:1` lets it and the 1 turn before it begin"
            ),
        ),
        (
            {"is_paused": True, "paused_ms": 4_000, "live": "t-0"},
            (
                "queued: session acme:1 is paused for 4.0 s; its live turn t-0 goes on; "
                "`brainq resume acme:1` lets it begin"
            ),
        ),
        (
            {"ahead_for_capacity": 0, "full": "fleet", "share": 7},
            (
                "queued until the fleet has room; it is the next of tenant acme; "
                "to allow more, add coordinators or raise BRAINQ_MAX_LIVE_TURNS"
            ),
        ),
        (
            {"ahead_for_capacity": 3, "ahead": 1, "full": "tenant", "share": 7, "priority": "low"},
            (
                "queued until fewer turns of tenant acme are live: its share is 7; 4 of tenant acme before it, "
                "by its priority low; to raise it, set BRAINQ_LIVE_TURNS_OF or add coordinators"
            ),
        ),
        ({"ahead_for_capacity": 0}, "queued until the fleet has room; it is the next of tenant acme"),
        ({}, "queued, and nothing is before it: a coordinator's sweeper lets it begin"),
        (
            {"live": "t-0", "gives_up_ms": 61_000},
            "queued behind the live turn t-0 of its session; if it has not begun in 61.0 s, it ends (max_wait_s)",
        ),
    ],
)
def test_a_queued_turn_says_why_and_what_would_let_it_begin(place: dict[str, Any], said: str) -> None:
    queue = QueuePosition(**place)
    seen = snapshot(state=TurnState.QUEUED, awaits="session", session_id="acme:1", queue=queue)
    assert explain(seen) == said


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({}, ["coordinator"]),
        ({"state": TurnState.QUEUED, "queue": QueuePosition(live="t-0")}, ["coordinator"]),
        ({"state": TurnState.PARKED, "awaits": "people"}, []),
        ({"state": TurnState.CLOSING, "awaits": "finalizer", "finalizer_step": "log"}, ["finalizer"]),
        ({"state": TurnState.COMPLETED, "awaits": "nobody"}, []),
    ],
)
def test_it_says_which_worker_is_missing(given: dict[str, Any], missing: list[str]) -> None:
    whole, said = explain(snapshot(**given)), explain(snapshot(**given), alive=())
    assert said == whole + "".join(
        f"; no {pool} worker is alive: `brainq worker {pool}` starts one" for pool in missing
    )
    assert explain(snapshot(**given), alive=("coordinator", "finalizer")) == whole


def test_a_call_in_a_queue_that_nobody_serves_says_so() -> None:
    trace = (call(0, TraceStatus.DISPATCHED, dispatched_at_ms=99_000), call(1, TraceStatus.PLANNED))
    said = explain(snapshot(awaits="calls", trace=trace), alive=("coordinator", "parallel"))
    assert said.endswith("; no serial worker is alive: `brainq worker serial` starts one")


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
