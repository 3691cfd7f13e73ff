"""Counting a turn whose result was recorded, with its steps and calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from brainq.contracts.status import StopReason, TraceStatus
from brainq.contracts.trace import ToolTraceEntry
from brainq.contracts.turn import TurnResult
from brainq.contracts.usage import Spend
from brainq.observe.metrics import catalogue as m
from brainq.observe.metrics.counters import Counters
from brainq.observe.metrics.names import brain_name, client_tool_name, model_name

INVENTED = "invented"
"""Tools that a model asked for and nobody has."""
LOST = "lost"
_LIMITS = {
    StopReason.MAX_STEPS: "max_steps",
    StopReason.MAX_TOTAL_TOKENS: "max_total_tokens",
    StopReason.MAX_COST: "max_cost_usd",
    StopReason.DEADLINE: "timeout_s",
    StopReason.WAITED: "max_wait_s",
}


def count_turn(
    counters: Counters,
    result: TurnResult,
    trace: Sequence[ToolTraceEntry],
    *,
    brain: str,
    wait_ms: int,
    has_tool: Callable[[str], bool],
    client_tools: Sequence[str],
) -> None:
    """Count all of a turn that its record tells.

    brain          the name of the one that had it
    wait_ms        how long it was queued
    has_tool       whether its brain has a tool of this name
    client_tools   the names of those that its caller runs
    """
    brain = brain_name(brain)
    ending, stop_reason = result.ending.value, result.stop_reason.value
    counters.add(m.TURNS, brain, ending, stop_reason)
    counters.observe(m.TURN_DURATION, (result.elapsed_ms - result.parked_ms) / 1000, brain, ending)
    counters.observe(m.TURN_WAIT, wait_ms / 1000, brain)
    if result.parked_ms:
        counters.observe(m.TURN_PARKED, result.parked_ms / 1000, brain)
    if result.steps:
        counters.add(m.STEPS, brain, by=result.steps)
    if limit := _LIMITS.get(result.stop_reason):
        counters.add(m.BUDGET_STOPS, brain, limit)
    if any(entry.status is TraceStatus.DENIED and entry.detail == "budget" for entry in trace):
        counters.add(m.BUDGET_STOPS, brain, "max_tool_calls")
    for entry in trace:
        _count_call(counters, entry, _tool_name(entry, has_tool, client_tools))


def _count_call(counters: Counters, entry: ToolTraceEntry, tool: str) -> None:
    effect = entry.effect.value
    counters.add(m.CALLS, tool, effect, entry.status.value)
    if entry.started_at_ms:
        counters.observe(m.CALL_DURATION, entry.latency_ms / 1000, tool, effect)
        if entry.attempt == 1:  # a later attempt's start says when it was rescued
            counters.observe(m.CALL_QUEUE, (entry.started_at_ms - entry.dispatched_at_ms) / 1000, effect)
    if entry.lanes and entry.dispatched_at_ms:
        counters.observe(m.LANE_WAIT, entry.lane_wait_ms / 1000, effect)


def count_lost(counters: Counters, spends: Sequence[Spend], provider: str) -> None:
    """Count what attempts that broke off were charged as: whoever made those may be dead."""
    for spend in spends:
        if spend.kind == LOST:
            model = model_name(spend.model)
            counters.add(m.TOKENS, provider, model, LOST, "input", by=spend.input_tokens)
            if spend.output_tokens:
                counters.add(m.TOKENS, provider, model, LOST, "output", by=spend.output_tokens)
            if spend.cost_usd:
                counters.add(m.COST, provider, model, LOST, by=spend.cost_usd)


def _tool_name(entry: ToolTraceEntry, has_tool: Callable[[str], bool], client_tools: Sequence[str]) -> str:
    if entry.step == 0 or has_tool(entry.tool):  # what is called before the first step is brainq's own
        return entry.tool
    return client_tool_name(entry.tool) if entry.tool in client_tools else INVENTED
