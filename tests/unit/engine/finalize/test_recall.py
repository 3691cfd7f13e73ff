"""A turn put together from what SQL keeps."""

from __future__ import annotations

from brainq.contracts.call import ToolTraceEntry
from brainq.contracts.evaluation import RuntimeDecisionRecord
from brainq.contracts.model import TokenUsage
from brainq.contracts.status import Effect, TraceStatus
from brainq.engine.finalize.recall import rebuilt_turn
from brainq.engine.finalize.result import make_result
from tests.unit.engine.finalize.support import REQUEST, RESULT


def entry(call_id: str, tool: str, step: int = 1, started: int = 5) -> ToolTraceEntry:
    return ToolTraceEntry(
        call_id=call_id,
        tool=tool,
        effect=Effect.READ_ONLY,
        status=TraceStatus.COMPLETED,
        step=step,
        wave=1,
        started_at_ms=started,
    )


def test_what_a_result_says_of_a_turn_it_says_again() -> None:
    assert make_result(rebuilt_turn(REQUEST, RESULT, turn_number=4)) == RESULT


def test_the_tools_of_a_turn_are_those_that_ran_for_the_model() -> None:
    trace = [
        entry("c0-0", "get_context_pack", step=0),
        entry("c1-0", "search"),
        entry("c1-1", "write", started=0),
        entry("c2-0", "search", step=2),
        entry("c2-1", "read", step=2),
    ]
    assert rebuilt_turn(REQUEST, RESULT, turn_number=1, trace=trace).tools == ("search", "read")


def test_a_decision_that_was_recorded_knows_more() -> None:
    decision = RuntimeDecisionRecord(
        turn_id="turn-1",
        session_id="s1",
        turn_number=4,
        strategy="tool_assisted",
        tools=("read",),
        context_hash="abc",
        elapsed_ms=1,
        usage=TokenUsage(),
        ending=RESULT.ending,
        stop_reason=RESULT.stop_reason,
    )
    turn = rebuilt_turn(REQUEST, RESULT, turn_number=4, decision=decision)
    assert (turn.tools, turn.context_hash) == (("read",), "abc")
