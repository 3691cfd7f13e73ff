"""The recording of turns and their calls, with labels whose values are bounded. Model calls are recorded by their
bill."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

from brainq.contracts.call import ToolTraceEntry
from brainq.contracts.model import Spend
from brainq.contracts.status import StopReason, TraceStatus
from brainq.contracts.turn import TurnResult
from brainq.runtime.observe.metrics import catalogue as m
from brainq.runtime.observe.metrics.counters import Counters, Reading

OTHER = "other"
MAX_CHARS = 100
INVENTED = "invented"
"""The label of tools that a model made up."""
LOST = "lost"
_LIMITS = {
    StopReason.MAX_STEPS: "max_steps",
    StopReason.MAX_TOTAL_TOKENS: "max_total_tokens",
    StopReason.MAX_COST: "max_cost_usd",
    StopReason.DEADLINE: "timeout_s",
    StopReason.WAITED: "max_wait_s",
}


class BoundedLabel(dict[str, str]):
    """A label with a bounded number of values: the first `max_names` different names in a process keep their value, and
    all others become `other`."""

    def __init__(self, max_names: int = 50) -> None:
        super().__init__()
        self._max_names = max_names
        self._lock = threading.Lock()

    def __missing__(self, name: str) -> str:
        with self._lock:
            if name not in self:
                if len(self) >= self._max_names or len(name) > MAX_CHARS or not name.isprintable():
                    return OTHER
                self[name] = name
            return name


_BRAINS = BoundedLabel()  # a foreign submit may name any brain
MODELS = BoundedLabel()  # a submit may name any model
ERRORS = BoundedLabel()  # a user's own provider names its errors
_CLIENT_TOOLS = BoundedLabel()  # a client brings its own tools with each turn


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
    """Count everything in a turn's record.

    brain: the name of its brain.
    wait_ms: how long it was queued.
    has_tool: whether its brain has a tool of this name.
    client_tools: the names of the tools that its caller runs.
    """
    brain = _BRAINS[brain]
    ending, stop_reason = result.ending.value, result.stop_reason.value
    readings: list[Reading] = [
        (m.TURNS, (brain, ending, stop_reason), 1),
        (m.TURN_DURATION, (brain, ending), (result.elapsed_ms - result.parked_ms) / 1000),
        (m.TURN_WAIT, (brain,), wait_ms / 1000),
    ]
    if result.parked_ms:
        readings.append((m.TURN_PARKED, (brain,), result.parked_ms / 1000))
    if result.steps:
        readings.append((m.STEPS, (brain,), result.steps))
    if limit := _LIMITS.get(result.stop_reason):
        readings.append((m.BUDGET_STOPS, (brain, limit), 1))
    if any(entry.status is TraceStatus.DENIED and entry.detail == "budget" for entry in trace):
        readings.append((m.BUDGET_STOPS, (brain, "max_tool_calls"), 1))
    for entry in trace:
        readings += _call_readings(entry, _tool_name(entry, has_tool, client_tools))
    counters.record(readings)


def _call_readings(entry: ToolTraceEntry, tool: str) -> Iterator[Reading]:
    effect = entry.effect.value
    yield m.CALLS, (tool, effect, entry.status.value), 1
    if entry.started_at_ms:
        yield m.CALL_DURATION, (tool, effect), entry.latency_ms / 1000
        if entry.attempt == 1:  # the start of a later attempt is the time of a rescue
            yield m.CALL_QUEUE, (effect,), (entry.started_at_ms - entry.dispatched_at_ms) / 1000
    if entry.lanes and entry.dispatched_at_ms:
        yield m.LANE_WAIT, (effect,), entry.lane_wait_ms / 1000


def count_lost(counters: Counters, spends: Sequence[Spend], provider: str) -> None:
    """Count the charges of attempts that broke off, because the process that made them may be dead."""
    for spend in spends:
        if spend.kind == LOST:
            model = MODELS[spend.model]
            counters.add(m.TOKENS, provider, model, LOST, "input", by=spend.input_tokens)
            if spend.output_tokens:
                counters.add(m.TOKENS, provider, model, LOST, "output", by=spend.output_tokens)
            if spend.cost_usd:
                counters.add(m.COST, provider, model, LOST, by=spend.cost_usd)


def _tool_name(entry: ToolTraceEntry, has_tool: Callable[[str], bool], client_tools: Sequence[str]) -> str:
    if entry.step == 0 or has_tool(entry.tool):  # calls before the first step are brainq's own
        return entry.tool
    return _CLIENT_TOOLS[entry.tool] if entry.tool in client_tools else INVENTED
