"""Recording turns, their calls and model calls, with labels whose values are bounded."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from brainq.contracts.call import ToolTraceEntry
from brainq.contracts.model import ModelReply, Purpose, Spend
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


class ModelCallRecord:
    """A model call that is under way."""

    def __init__(self, counters: Counters, provider: str, model: str, purpose: Purpose) -> None:
        self._counters = counters
        self.provider = provider
        self.model = model
        self._purpose = purpose

    def add_reply(self, reply: ModelReply, cost_usd: float | None) -> None:
        """Count what it used, by the provider and model that answered; `cost_usd` None: its price is not known."""
        if reply.answered_by is not None:
            self.provider, self.model = reply.answered_by.provider, model_name(reply.answered_by.model)
        usage = reply.usage
        counters, model = self._counters, (self.provider, self.model)
        counters.observe(m.TOKEN_USAGE, usage.input_tokens, OPERATION, *model, "input")
        counters.observe(m.TOKEN_USAGE, usage.output_tokens, OPERATION, *model, "output")
        for kind, tokens in (
            ("input", usage.input_tokens),
            ("output", usage.output_tokens),
            ("cache_read", usage.cache_read_tokens),
            ("cache_creation", usage.cache_creation_tokens),
        ):
            if tokens:
                counters.add(m.TOKENS, *model, self._purpose, kind, by=tokens)
        if cost_usd:
            counters.add(m.COST, *model, self._purpose, by=cost_usd)


@contextmanager
def record_model_call(
    provider: str, model: str, purpose: Purpose, counters: Counters = COUNTERS
) -> Generator[ModelCallRecord]:
    """Time what is done in it, and count it by how it ends: a ProviderError by its kind, any other by its class. A
    request that was never sent is not counted."""
    call = ModelCallRecord(counters, provider, model_name(model), purpose)
    began, error_type = time.monotonic(), ""
    try:
        yield call
    except ProviderError as failure:
        error_type = failure.kind
        raise
    except BaseException as failure:
        error_type = type(failure).__name__
        raise
    finally:
        if error_type not in NOT_SENT:
            counters.observe(
                m.MODEL_CALLS,
                time.monotonic() - began,
                OPERATION,
                call.provider,
                call.model,
                error_type and _error_name(error_type),
                purpose,
            )


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
