"""All metrics, each declared once: its name, what it counts, its labels and buckets. docs/operate/metrics.md lists
their sources.

Labels are bounded: names of brains, tools, models, queues and pools, and brainq's own words. Sessions, turns and
tenants are not labels: Prometheus keeps a series for weeks for each value, and their number has no limit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from brainq.contracts.status import Effect
from brainq.runtime.observe import telemetry_names as names

Kind = Literal["counter", "gauge", "histogram"]
NO_BOUND = "inf"
"""The name of a histogram's last bucket."""

_ENDINGS = {"s": "_seconds", "By": "_bytes", "USD": "_usd"}


def label_of(attribute: str) -> str:
    """Return an attribute's name in Prometheus' form."""
    return attribute.replace(".", "_")


_ATTRIBUTES = {
    label_of(attribute): attribute
    for attribute in (
        *(names.OPERATION, names.PROVIDER, names.REQUEST_MODEL, names.TOKEN_TYPE, names.ERROR_TYPE),
        names.PURPOSE,
    )
}


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric.

    name: its name in Prometheus, including the base unit; for a counter without `_total`.
    labels: the names of the labels, in the order of their values.
    bounds: for a histogram, the upper bounds of its buckets except the last, which has none.
    always: label values that are shown before anything was counted: a rate needs two values of a series.
    otel: its name in OpenTelemetry's conventions, if they have one. Otherwise it is derived from `name`.
    unit: in OpenTelemetry's form.
    buckets: for a histogram, the names of its buckets in order.
    """

    kind: Kind
    name: str
    help: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()
    always: tuple[tuple[str, ...], ...] = ()
    otel: str = ""
    unit: str = "1"
    buckets: tuple[str, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "buckets", (*(f"{bound:g}" for bound in self.bounds), NO_BOUND))

    @property
    def otel_name(self) -> str:
        """Its name in OpenTelemetry: without the unit, which is a separate field."""
        bare = self.name.removesuffix(_ENDINGS.get(self.unit, ""))
        return self.otel or bare.replace("_", ".", 1)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The labels under their names in OpenTelemetry."""
        return tuple(_ATTRIBUTES.get(label, label) for label in self.labels)

    @property
    def shown(self) -> str:
        """Its name in queries of Prometheus, without a histogram's suffixes."""
        return f"{self.name}_total" if self.kind == "counter" else self.name


CONVENTIONS = names.SCHEMA_URL.rpartition("/")[2]
"""The version of OpenTelemetry's semantic conventions whose GenAI metrics have these names, attributes and buckets."""

# A turn may take a second or a day; a call may take a millisecond or its ten minutes.
_TURN_S = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600)
_CALL_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_WAIT_S = (0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600)
_MODEL_S = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)


_GEN_AI = tuple(map(label_of, (names.OPERATION, names.PROVIDER, names.REQUEST_MODEL)))


def _counter(name: str, text: str, *labels: str, unit: str = "1", always: tuple[tuple[str, ...], ...] = ()) -> Metric:
    return Metric("counter", name, text, labels, always=always, unit=unit)


def _seconds(name: str, text: str, *labels: str, bounds: tuple[float, ...]) -> Metric:
    return Metric("histogram", name, text, labels, bounds, unit="s")


def _gauge(name: str, text: str, *labels: str, unit: str = "1") -> Metric:
    return Metric("gauge", name, text, labels, unit=unit)


# Counted once a turn, with the transaction that records its result.
TURNS = _counter("brainq_turns", "Turns whose result was recorded.", "brain", "ending", "stop_reason", unit="{turn}")

TURN_DURATION = _seconds(
    "brainq_turn_duration_seconds",
    "The time from a turn's activation to its end, excluding the time that it was parked.",
    "brain",
    "ending",
    bounds=_TURN_S,
)

TURN_WAIT = _seconds(
    "brainq_turn_wait_seconds", "The time that a turn was queued before it became active.", "brain", bounds=_WAIT_S
)

TURN_PARKED = _seconds(
    "brainq_turn_parked_seconds",
    "The time that a turn was parked. Turns that were never parked are not counted.",
    "brain",
    bounds=_WAIT_S,
)

STEPS = _counter("brainq_steps", "Steps of turns.", "brain", unit="{step}")

BUDGET_STOPS = _counter(
    "brainq_budget_stops",
    "Turns that a limit ended, or in which it denied further calls (max_tool_calls).",
    "brain",
    "limit",
    unit="{turn}",
)

CALLS = _counter("brainq_calls", "Tool calls by their final status.", "tool", "effect", "outcome", unit="{call}")

CALL_DURATION = _seconds(
    "brainq_call_duration_seconds", "The running time of the functions of tool calls.", "tool", "effect", bounds=_CALL_S
)

CALL_QUEUE = _seconds(
    "brainq_call_queue_seconds",
    "The time that tool calls waited in their queue before a worker claimed them.",
    "effect",
    bounds=_WAIT_S,
)

LANE_WAIT = _seconds(
    "brainq_lane_wait_seconds",
    "The time that tool calls waited for their lanes; 0 if the lanes were free.",
    "effect",
    bounds=_WAIT_S,
)

# Counted when a model call returns.
MODEL_CALLS = Metric(
    "histogram",
    f"{label_of(names.OPERATION_DURATION)}_seconds",
    "The duration of model calls, including retries. error_type is empty for successful calls.",
    (*_GEN_AI, label_of(names.ERROR_TYPE), label_of(names.PURPOSE)),
    _MODEL_S,
    otel=names.OPERATION_DURATION,
    unit="s",
)

TOKEN_USAGE = Metric(
    "histogram",
    label_of(names.TOKEN_USAGE),
    "Tokens of successful model calls. Cached tokens are included in the input.",
    (*_GEN_AI, label_of(names.TOKEN_TYPE)),
    _TOKENS,
    otel=names.TOKEN_USAGE,
    unit="{token}",
)

TOKENS = _counter(
    "brainq_tokens",
    "Tokens by type: input (including cached tokens), output, cache_read, cache_creation. Purpose `lost` counts "
    "estimates for interrupted attempts.",
    "provider",
    "model",
    "purpose",
    "type",
    unit="{token}",
)

COST = _counter(
    "brainq_cost_usd",
    "The cost of model calls with a known price, in US dollars.",
    "provider",
    "model",
    "purpose",
    unit="USD",
)

# Counted by the process that finds it: each is found once.
LAPSED = _counter(
    "brainq_leases_lapsed",
    "Leases that lapsed because their owner stopped renewing them, and whose work another worker continued: of a "
    "turn, call, finalizer_step or lane.",
    "of",
    unit="{lease}",
    always=(("turn",), ("call",), ("finalizer_step",), ("lane",)),
)

LATE = _counter(
    "brainq_late_results",
    "Results of tool calls that arrived after the call was settled. They never enter a turn.",
    "effect",
    unit="{result}",
    always=tuple((effect.value,) for effect in Effect),
)

DECLINED = _counter(
    "brainq_offers_declined",
    "Offers of a thread to continue with what its work opens that were declined, by reason. Work that was opened is "
    "then sent to its queue.",
    "reason",
    unit="{offer}",
)

STEP_FAILURES = _counter(
    "brainq_finalizer_failures",
    "Finalizer steps that failed and will be retried (`again`) or were abandoned (`dead`).",
    "step",
    "then",
    unit="{try}",
)

DELIVERIES = _counter(
    "brainq_webhook_deliveries",
    "Delivery attempts of a webhook: successful (`done`), failed and retried (`again`), or abandoned (`dead`).",
    "host",
    "outcome",
    unit="{try}",
)

THREAD_FAILURES = _counter(
    "brainq_thread_failures",
    "Errors that ended a background thread or task, and failed starts of one.",
    "thread",
    unit="{failure}",
)

DROPPED = _counter(
    "brainq_series_dropped",
    "Series that were dropped because Redis keeps at most 10,000 of them.",
    unit="{count}",
    always=((),),
)

# Read at each scrape.
UP = _gauge("brainq_up", "1 if this service (redis, sql) answered, otherwise 0.", "service")
BUILD = _gauge("brainq_build_info", "Always 1. The label has the version of the process that answers.", "version")

QUEUE_DEPTH = _gauge(
    "brainq_queue_depth",
    "Doorbells in a queue, including those that wait for their tenant's turn.",
    "queue",
    "pool",
    unit="{doorbell}",
)

QUEUE_AGE = _gauge(
    "brainq_queue_oldest_age_seconds",
    "The time that the next doorbell of a queue has waited; 0 for an empty queue.",
    "queue",
    "pool",
    unit="s",
)

TROUBLES = _gauge(
    "brainq_fleet_troubles",
    "Problems of a fleet whose processes look healthy: unfit_worker, idle_queue, unserved_queue, full_pool, "
    "late_sweep, "
    "unannounced.",
    "kind",
    unit="{trouble}",
)

OPEN_TURNS = _gauge(
    "brainq_open_turns",
    "Turns that have not ended, by state: accepted (only in SQL), queued, active, parked, closing.",
    "state",
    unit="{turn}",
)

OPEN_AGE = _gauge(
    "brainq_open_turns_oldest_age_seconds",
    "The longest time that a turn has been in its state: queued, active, parked, closing.",
    "state",
    unit="s",
)

OPEN_CUT = _gauge("brainq_open_turns_cut", "1 if there are more open turns than the newest 2,000, which are counted.")
CAPACITY_SIZE = _gauge("brainq_room_size", "The maximum number of live turns.", unit="{turn}")
CAPACITY_USED = _gauge("brainq_room_live", "Turns that are live.", unit="{turn}")
TENANTS_WAITING = _gauge("brainq_tenants_waiting", "Tenants with turns that wait for capacity.", unit="{tenant}")

MODEL_WAITING = _gauge(
    "brainq_model_waiting", "Turns and calls that wait for a permit under a model's limits.", "model", unit="{call}"
)

APPROVALS = _gauge("brainq_approvals_pending", "Tool calls that wait for a person's approval.", unit="{call}")

LANES = _gauge(
    "brainq_lane_calls", "Calls in lanes: held, waiting, lapsed (held with an expired lease).", "state",
    unit="{call}",
)  # fmt: skip

WORKERS = _gauge("brainq_workers", "Running workers of a pool.", "pool", unit="{worker}")
SLOTS = _gauge(
    "brainq_worker_slots", "The number of tasks that a pool's workers can run at once.", "pool", unit="{task}"
)
BUSY = _gauge("brainq_worker_slots_busy", "Tasks that a pool's workers are running.", "pool", unit="{task}")

GIVEN_UP = _gauge(
    "brainq_given_up",
    "Abandoned work: finalizer_steps, judgements, deliveries, quarantined (unreadable messages), "
    "unprefixed (messages without the key prefix).",
    "what",
)

DELIVERIES_PENDING = _gauge(
    "brainq_webhook_deliveries_pending", "Webhook deliveries that have not succeeded yet.", unit="{delivery}"
)

SWEEP_AGE = _gauge("brainq_sweeper_last_round_age_seconds", "The time since a sweeper last started a round.", unit="s")

SWEEP_OVERDUE = _gauge(
    "brainq_sweeper_overdue_seconds", "The time by which the sweeper's most overdue check is late.", unit="s"
)

REDIS_MEMORY = _gauge("brainq_redis_memory_bytes", "Memory that Redis uses.", unit="By")
REDIS_LIMIT = _gauge("brainq_redis_memory_limit_bytes", "Redis' maxmemory. Absent if it has no limit.", unit="By")
ALL = tuple(value for value in tuple(globals().values()) if isinstance(value, Metric))
COUNTED = {metric.name: metric for metric in ALL if metric.kind != "gauge"}
