"""Recording turns, their calls and model calls, with labels whose values are bounded."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from brainq.contracts.call import ToolTraceEntry
from brainq.contracts.model import Purpose, Spend
from brainq.contracts.status import StopReason, TraceStatus
from brainq.contracts.turn import TurnResult
from brainq.errors import NOT_SENT, ProviderError
from brainq.observe.metrics import catalogue as m
from brainq.observe.metrics.counters import COUNTERS, Counters

OTHER = "other"
MAX_CHARS = 100
OPERATION = "chat"
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


class BoundedLabel:
    """The first `max_names` different names that a process meets are themselves; all others are `other`."""

    def __init__(self, max_names: int = 50) -> None:
        self._max_names = max_names
        self._known: set[str] = set()
        self._lock = threading.Lock()

    def value_of(self, name: str) -> str:
        with self._lock:
            if name in self._known:
                return name
            if len(self._known) >= self._max_names or len(name) > MAX_CHARS or not name.isprintable():
                return OTHER
            self._known.add(name)
            return name


_brain_name = BoundedLabel().value_of  # a foreign submit may name any brain
model_name = BoundedLabel().value_of  # a submit may name any model
_error_name = BoundedLabel().value_of  # a provider of the user's own names its errors
_client_tool_name = BoundedLabel().value_of  # a client brings tools of its own with each turn


def count_model_call(
    provider: str,
    model: str,
    purpose: Purpose,
    duration_s: float,
    outcome: Spend | BaseException | None,
    counters: Counters = COUNTERS,
) -> None:
    """Count a model call, by who answered, and what its reply used. One that failed is counted by its failure: a
    ProviderError by its kind, any other by its class. A request that was never sent is not counted."""
    by, error_type = (provider, model_name(model)), ""
    if isinstance(outcome, BaseException):
        error_type = outcome.kind if isinstance(outcome, ProviderError) else type(outcome).__name__
        if error_type in NOT_SENT:
            return
        error_type = _error_name(error_type)
    elif outcome is not None:
        counters.observe(m.TOKEN_USAGE, outcome.input_tokens, OPERATION, *by, "input")
        counters.observe(m.TOKEN_USAGE, outcome.output_tokens, OPERATION, *by, "output")
        for kind, tokens in (
            ("input", outcome.input_tokens),
            ("output", outcome.output_tokens),
            ("cache_read", outcome.cache_read_tokens),
            ("cache_creation", outcome.cache_creation_tokens),
        ):
            if tokens:
                counters.add(m.TOKENS, *by, purpose, kind, by=tokens)
        if outcome.cost_usd:
            counters.add(m.COST, *by, purpose, by=outcome.cost_usd)
    counters.observe(m.MODEL_CALLS, duration_s, OPERATION, *by, error_type, purpose)


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
    """Count all of a turn that its record has.

    brain          the name of the one that had it
    wait_ms        how long it was queued
    has_tool       whether its brain has a tool of this name
    client_tools   the names of those that its caller runs
    """
    brain = _brain_name(brain)
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
    """Count what attempts that broke off were charged as: the process that made those may be dead."""
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
    return _client_tool_name(entry.tool) if entry.tool in client_tools else INVENTED
