"""Requests, results and calls to store."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any, TypeVar

from brainq.adapters.sql.store import Store
from brainq.contracts.evaluation import RuntimeDecisionRecord
from brainq.contracts.model import TokenUsage
from brainq.contracts.schedule import ScheduleRow
from brainq.contracts.status import Effect, Ending, StopReason
from brainq.contracts.turn import TurnRequest, TurnResult

T = TypeVar("T")


def request(turn_id: str = "turn-1", session_id: str = "s1", text: str = "hello", **more: Any) -> TurnRequest:
    return TurnRequest(turn_id=turn_id, session_id=session_id, user_message=text, **more)


def result(turn_id: str = "turn-1", session_id: str = "s1", text: str = "answer", **more: Any) -> TurnResult:
    values: dict[str, Any] = {"ending": Ending.COMPLETED, "stop_reason": StopReason.ANSWERED} | more
    return TurnResult(turn_id=turn_id, session_id=session_id, text=text, **values)


def decision(turn_id: str = "turn-1") -> RuntimeDecisionRecord:
    return RuntimeDecisionRecord(
        turn_id=turn_id,
        session_id="s1",
        turn_number=3,
        strategy="tool_assisted",
        tools=("read_file", "say_\ud83d"),
        context_hash="c" * 64,
        elapsed_ms=1234,
        usage=TokenUsage(input_tokens=9, output_tokens=3, cache_read_tokens=2, cache_creation_tokens=1),
        ending=Ending.COMPLETED,
        stop_reason=StopReason.ANSWERED,
        prompt_id="p",
        prompt_tags=("a", "b"),
    )


def schedule(name: str, next_ms: int | None = 5_000) -> ScheduleRow:
    return ScheduleRow(
        schedule_id=f"id-{name}",
        name=name,
        timing="once",
        zone="UTC",
        session_id="s",
        request={},
        on_running="skip",
        missed="once",
        paused=False,
        start_ms=5_000,
        next_ms=next_ms,
    )


def call(call_id: str = "c1-0", attempt: int = 1, turn_id: str = "turn-1") -> dict[str, Any]:
    """The arguments that `calls.start` and `calls.void` share."""
    return {
        "turn_id": turn_id,
        "call_id": call_id,
        "attempt": attempt,
        "session_id": "s1",
        "tool": "write_note",
        "effect": Effect.LOCAL_WRITE,
    }


def start(store: Store, **which: Any) -> bool:
    return store.calls.start(
        **call(**which), args_hash="h", args_json='{"a":1}', idempotency_key="turn-1:c1-0", owner="worker-1"
    )


def end_turn(store: Store, turn_id: str, session_id: str = "s1", text: str = "answer") -> None:
    """What the finalizer's last steps write."""
    outcome = result(turn_id, session_id, text)

    def write(connection: Any) -> None:
        store.messages.write_assistant(connection, session_id=session_id, turn_id=turn_id, content=text)
        store.turns.write_result(connection, outcome)

    def decide(connection: Any) -> None:
        store.decisions.write(connection, decision(turn_id))

    assert store.steps.run_once(turn_id, "log", f"{turn_id}:log", write)
    assert store.steps.run_once(turn_id, "decision", f"{turn_id}:decision", decide)


def at_once(jobs: list[Callable[[], T]]) -> list[T]:
    """Run every job in a thread of its own, all released together; their results in order."""
    barrier = Barrier(len(jobs), timeout=30)

    def released(job: Callable[[], T]) -> T:
        barrier.wait()
        return job()

    with ThreadPoolExecutor(len(jobs)) as threads:
        return list(threads.map(released, jobs))
