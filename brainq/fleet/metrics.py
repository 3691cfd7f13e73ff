"""The fleet's metrics at one moment: the counts of all processes, and the current readings of Redis and SQL.

If Redis or SQL is unreachable, its metrics are omitted, and its `brainq_up` is 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import TypeVar

from brainq.adapters.celery.names import POOL_QUEUES
from brainq.adapters.sql.repositories.turn_records import count_given_up
from brainq.app.wiring import Wiring
from brainq.app.wiring.services import is_unavailable
from brainq.contracts.fleet import FleetModel, TurnKey
from brainq.errors import Unreachable
from brainq.fleet.snapshot import MAX_OPEN_TURNS, RedisFleetState, read_redis_fleet
from brainq.fleet.troubles import TROUBLE_KINDS
from brainq.runtime.observe.logs import logger
from brainq.runtime.observe.metrics import catalogue as m
from brainq.runtime.observe.metrics.counters import Cell, Reading, Series, collect_series
from brainq.runtime.observe.metrics.recording import MODELS

log = logger("brainq.client")
T = TypeVar("T")
OPEN_STATES = ("accepted", "queued", "active", "parked", "closing")


def read_metrics(wiring: Wiring) -> list[Series]:
    """See `Client.metrics`."""
    readings, cells = _read_all(wiring)
    return collect_series(cells, readings)


def read_gauges(wiring: Wiring) -> list[Series]:
    """Read the metrics of Redis and SQL, without the counts that processes send themselves. Blocks on Redis and SQL."""
    readings, _ = _read_all(wiring)
    return [series for series in collect_series({}, readings) if series.metric.kind == "gauge"]


def _read_all(wiring: Wiring) -> tuple[list[Reading], Mapping[Cell, float]]:
    """Return the current metrics of Redis and SQL, if they answer, and the counts of all processes."""
    state = wiring.state
    answer = _unless_unreachable(lambda: (read_redis_fleet(wiring), state.rates.models(), state.metrics.totals()))
    rows = _unless_unreachable(lambda: _read_sql(wiring))
    standing = None
    if answer is not None and rows is not None:
        standing = _unless_unreachable(lambda: state.fleet.standing(rows[0][:MAX_OPEN_TURNS]))
    cells: Mapping[Cell, float] = {}
    readings: list[Reading] = [
        (m.BUILD, (version("brainq"),), 1),
        (m.UP, ("redis",), answer is not None),
        (m.UP, ("sql",), rows is not None),
    ]
    if answer is not None:
        fleet, models, cells = answer
        readings += _redis_readings(fleet)
        readings += _model_readings(models)
        if rows is not None and standing is not None:
            readings += _turn_readings(standing, fleet.facts.now_ms)
            readings.append((m.OPEN_CUT, (), len(rows[0]) > MAX_OPEN_TURNS))
    if rows is not None:
        readings += rows[1]
    return [(metric, labels, float(value)) for metric, labels, value in readings], cells


def _unless_unreachable(read: Callable[[], T]) -> T | None:
    """Return the result of `read`, or None if its server does not answer."""
    try:
        return read()
    except Exception as failure:
        if not isinstance(failure, Unreachable) and not is_unavailable(failure):
            raise
        log.debug("metrics are incomplete, because a service does not answer", why=type(failure).__name__)
        return None


def _read_sql(wiring: Wiring) -> tuple[Sequence[TurnKey], list[Reading]]:
    """Return the live and waiting turns (at most one more than are examined), and the readings of SQL."""
    store = wiring.store
    unended = store.turns.list(None, "accepted", MAX_OPEN_TURNS + 1)
    keys = [(turn.session_id, turn.turn_id) for turn in unended]
    given_up, approvals = count_given_up(store.database)
    return keys, [
        (m.APPROVALS, (), approvals),
        (m.GIVEN_UP, ("finalizer_steps",), given_up.finalizer_steps),
        (m.GIVEN_UP, ("judgements",), given_up.judgements),
        (m.GIVEN_UP, ("deliveries",), given_up.deliveries),
        (m.DELIVERIES_PENDING, (), store.deliveries.unsettled()["pending"]),
    ]


def _redis_readings(fleet: RedisFleetState) -> list[Reading]:
    facts = fleet.facts
    readings: list[Reading] = [
        (m.GIVEN_UP, ("quarantined",), fleet.quarantined),
        (m.GIVEN_UP, ("unprefixed",), fleet.unprefixed),
    ]
    counts = Counter(trouble.kind for trouble in fleet.troubles)
    readings += [(m.TROUBLES, (kind,), counts[kind]) for kind in TROUBLE_KINDS]
    for queue in fleet.queues:
        readings.append((m.QUEUE_DEPTH, (queue.name, queue.pool), queue.depth))
        if queue.oldest_age_s is not None or not queue.depth:
            readings.append((m.QUEUE_AGE, (queue.name, queue.pool), queue.oldest_age_s or 0))
    for pool in POOL_QUEUES:
        workers = [worker for worker in fleet.workers if worker.pool == pool]
        readings += [
            (m.WORKERS, (pool,), len(workers)),
            (m.SLOTS, (pool,), sum(worker.threads for worker in workers)),
            (m.BUSY, (pool,), sum(worker.busy for worker in workers)),
        ]
    readings += [
        (m.LANES, ("held",), facts.lanes.held),
        (m.LANES, ("waiting",), facts.lanes.waiting),
        (m.LANES, ("lapsed",), facts.lanes.lapsed),
        (m.SWEEP_OVERDUE, (), facts.sweeper.overdue_s),
        (m.REDIS_MEMORY, (), facts.redis.used_bytes),
    ]
    readings += [(m.CAPACITY_USED, (), facts.room.live), (m.TENANTS_WAITING, (), facts.room.tenants_waiting)]
    if facts.room.size is not None:
        readings.append((m.CAPACITY_SIZE, (), facts.room.size))
    if facts.sweeper.last_round_s is not None:
        readings.append((m.SWEEP_AGE, (), facts.sweeper.last_round_s))
    if facts.redis.max_bytes is not None:
        readings.append((m.REDIS_LIMIT, (), facts.redis.max_bytes))
    return readings


def _model_readings(models: Sequence[FleetModel]) -> list[Reading]:
    """Return the readings of all models, with the accounts of one model added up."""
    waiting: Counter[str] = Counter()
    for model in models:
        waiting[MODELS[model.name]] += model.waiting
    return [(m.MODEL_WAITING, (name,), many) for name, many in waiting.items()]


def _turn_readings(standing: Sequence[tuple[str, int | None]], now_ms: int) -> list[Reading]:
    states = Counter(state for state, _ in standing)
    readings: list[Reading] = [(m.OPEN_TURNS, (state,), states[state]) for state in OPEN_STATES]
    for state in OPEN_STATES[1:]:
        since = [at for found, at in standing if found == state and at is not None]
        readings.append((m.OPEN_AGE, (state,), max(0, now_ms - min(since)) / 1000 if since else 0))
    return readings
