"""What is counted of a turn whose result was recorded."""

from __future__ import annotations

from typing import Any

import pytest

from brainq.contracts.call import ToolTraceEntry
from brainq.contracts.model import Spend
from brainq.contracts.status import Effect, Ending, StopReason, TraceStatus
from brainq.contracts.turn import TurnResult
from brainq.runtime.observe.metrics.counters import SUM, Counters
from brainq.runtime.observe.metrics.recording import count_lost, count_turn


def result(**more: Any) -> TurnResult:
    given: dict[str, Any] = {"turn_id": "turn-1", "session_id": "s1", "text": "", "steps": 2}
    given |= {"ending": Ending.COMPLETED, "stop_reason": StopReason.ANSWERED}
    return TurnResult(**given | more)


def call(tool: str, effect: Effect, status: TraceStatus, **more: Any) -> ToolTraceEntry:
    return ToolTraceEntry(
        call_id=more.pop("call_id", "c1-0"), tool=tool, effect=effect, status=status, step=1, wave=0, **more
    )


def counted(turn: TurnResult, *trace: ToolTraceEntry, **more: Any) -> dict[tuple[str, ...], float]:
    counters = Counters()
    given: dict[str, Any] = {
        "brain": "shop",
        "wait_ms": 0,
        "has_tool": {"look", "save"}.__contains__,
        "client_tools": ["ring"],
    }
    count_turn(counters, turn, trace, **{**given, **more})
    return counters.totals()


def test_a_turn_with_its_time_and_steps() -> None:
    found = counted(result(elapsed_ms=9_000, parked_ms=7_000), wait_ms=300)
    assert found["brainq_turns", "shop", "completed", "answered"] == 1
    assert found["brainq_steps", "shop"] == 2
    assert found["brainq_turn_duration_seconds", "shop", "completed", "2.5"] == 1
    assert found["brainq_turn_duration_seconds", "shop", "completed", SUM] == 2
    assert found["brainq_turn_wait_seconds", "shop", SUM] == 0.3
    assert found["brainq_turn_parked_seconds", "shop", SUM] == 7
    assert not any(name == "brainq_budget_stops" for name, *_ in found)


@pytest.mark.parametrize(
    ("stop_reason", "limit"),
    [("max_steps", "max_steps"), ("max_cost", "max_cost_usd"), ("deadline", "timeout_s"), ("waited", "max_wait_s")],
)
def test_a_limit_that_ended_it(stop_reason: str, limit: str) -> None:
    assert counted(result(stop_reason=stop_reason))["brainq_budget_stops", "shop", limit] == 1


def test_calls_over_the_budget_count_once_a_turn() -> None:
    denied = [call("look", Effect.READ_ONLY, TraceStatus.DENIED, detail="budget", call_id=f"c1-{n}") for n in (0, 1)]
    found = counted(result(), *denied)
    assert found["brainq_budget_stops", "shop", "max_tool_calls"] == 1
    assert found["brainq_calls", "look", "read_only", "denied"] == 2
    assert not any(name == "brainq_call_duration_seconds" for name, *_ in found)


def test_calls_with_their_run_time_and_their_waits() -> None:
    at: dict[str, Any] = {"dispatched_at_ms": 1_000, "started_at_ms": 1_200, "latency_ms": 40}
    found = counted(
        result(),
        call("look", Effect.READ_ONLY, TraceStatus.FAILED, **at),
        call("save", Effect.LOCAL_WRITE, TraceStatus.COMPLETED, lanes=("a",), lane_wait_ms=2_000, **at),
        call("save", Effect.LOCAL_WRITE, TraceStatus.UNKNOWN, lanes=("a",), attempt=2, **at),
    )
    assert found["brainq_calls", "look", "read_only", "failed"] == 1
    assert found["brainq_calls", "save", "local_write", "unknown"] == 1
    assert found["brainq_call_duration_seconds", "look", "read_only", SUM] == 0.04
    assert found["brainq_call_queue_seconds", "local_write", SUM] == pytest.approx(0.2)  # the first attempt's alone
    assert found["brainq_lane_wait_seconds", "local_write", SUM] == 2
    assert found["brainq_lane_wait_seconds", "local_write", "0.005"] == 1
    assert not any(cell[:2] == ("brainq_lane_wait_seconds", "read_only") for cell in found)


def test_tools_of_clients_and_of_a_models_invention_are_bounded() -> None:
    found = counted(
        result(),
        call("ring", Effect.NETWORK, TraceStatus.COMPLETED),
        call("made_up", Effect.READ_ONLY, TraceStatus.DENIED),
    )
    assert {cell[1] for cell in found if cell[0] == "brainq_calls"} == {"ring", "invented"}
    many = [f"client_{n}" for n in range(200)]
    calls = [call(name, Effect.NETWORK, TraceStatus.COMPLETED) for name in many]
    tools = {cell[1] for cell in counted(result(), *calls, client_tools=many) if cell[0] == "brainq_calls"}
    assert "other" in tools
    assert len(tools) <= 51


def test_an_attempt_that_broke_off_counts_as_the_estimate_it_was_charged_as() -> None:
    counters = Counters()
    lost = Spend(kind="lost", step=1, model="gpt-4.1", input_tokens=50, output_tokens=7, cost_usd=0.5)
    count_lost(counters, [lost, Spend(kind="step", step=1, input_tokens=9), Spend(kind="child", step=1)], "openai")
    assert counters.totals() == {
        ("brainq_tokens", "openai", "gpt-4.1", "lost", "input"): 50,
        ("brainq_tokens", "openai", "gpt-4.1", "lost", "output"): 7,
        ("brainq_cost_usd", "openai", "gpt-4.1", "lost"): 0.5,
    }
