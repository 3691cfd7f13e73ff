"""AsyncTurnRuntimeState and AsyncTurnBudget: a turn's shared state, on an event loop."""

from __future__ import annotations

from brainq.client.awaited import awaited, looked_up
from brainq.client.budget import TurnBudget
from brainq.client.runtime_state import TurnRuntimeState
from brainq.client.threads import Threads


class AsyncTurnBudget:
    """A TurnBudget whose verbs are awaited; what are properties there is in `await budget.snapshot()`."""

    def __init__(self, threads: Threads, budget: TurnBudget) -> None:
        self._threads = threads
        self._sync = budget
        self.session_id = budget.session_id
        self.turn_id = budget.turn_id

    tool_deadline = looked_up(TurnBudget.tool_deadline)
    per_tool_remaining_s = looked_up(TurnBudget.per_tool_remaining_s)
    claim_step = awaited(TurnBudget.claim_step)
    claim_tool_call = awaited(TurnBudget.claim_tool_call)
    claim_reflection = awaited(TurnBudget.claim_reflection)
    add_tokens = awaited(TurnBudget.add_tokens)
    snapshot = looked_up(TurnBudget.snapshot)


class AsyncTurnRuntimeState:
    """A TurnRuntimeState whose moves are awaited; what are properties there is in `await state.snapshot()`."""

    def __init__(self, threads: Threads, state: TurnRuntimeState) -> None:
        self._threads = threads
        self._sync = state
        self.session_id = state.session_id
        self.turn_id = state.turn_id
        self.budget = AsyncTurnBudget(threads, state.budget)

    snapshot = looked_up(TurnRuntimeState.snapshot)
    add_tokens = awaited(TurnRuntimeState.add_tokens)
    close_writes = awaited(TurnRuntimeState.close_writes)
    set_trace_running = awaited(TurnRuntimeState.set_trace_running)
    mark_trace_timed_out = awaited(TurnRuntimeState.mark_trace_timed_out)
    complete_trace = awaited(TurnRuntimeState.complete_trace)
