"""The state of the fleet at one moment: pools and their workers, queues, lanes, abandoned work and Redis; and the
results of the sweeper's checks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from brainq.contracts.base import Wire
from brainq.contracts.stop import Stop

TurnKey = tuple[str, str]  # session, turn


class FleetWorker(Wire):
    """A worker process that is alive: it reported within the last seconds.

    name: its node name in Celery, as Flower shows it: `serial@host`.
    threads, busy: how many tasks it may run at once, and how many it ran when it reported.
    build: the name of its code, or "" if it did not report one.
    lacks: why it cannot work, or is not ready, or "".
    """

    name: str
    pool: str
    threads: int
    busy: int
    build: str = ""
    lacks: str = ""


class Pool(Wire):
    """A pool, the queues that it serves, and its workers."""

    name: str
    queues: tuple[str, ...]
    workers: tuple[FleetWorker, ...] = ()

    @property
    def threads(self) -> int:
        return sum(worker.threads for worker in self.workers)

    @property
    def busy(self) -> int:
        return sum(worker.busy for worker in self.workers)


class StopCandidate(Wire):
    """A worker that may stop, and how many tasks it ran when it reported.

    `draining` means that it has been told to stop and finishes its tasks.
    """

    name: str
    busy: int
    draining: bool = False


class PoolScale(Wire):
    """How many workers a pool needs, and why.

    wanted: `load` divided by `threads`, rounded up, within the configured bounds.
    workers: workers that accept work now. Workers that are `draining` only finish their tasks, and do not count.
    queued: messages in the pool's queues.
    running: tasks of its workers when they last reported.
    threads: the threads of one worker: the mean of the workers that are alive, or else BRAINQ_CONCURRENCY__POOL.
    load: the threads needed for `queued` and `running`. For coordinators it is at least four for every five turns that
        are live or wait for capacity, if that follows from their threads.
    oldest_age_s: how many whole seconds the oldest message has waited, or None if there is none or its age is unknown.
    stop_first: all workers, in the order in which they may stop: draining first, then the least busy.
    build: the name of the build if the figures are of one build alone. They count the messages in its own queues and
        its share of the common queues. A draining worker belongs to no build. While turns are pinned to the build,
        `wanted` is at least 1.
    builds: the figures of each build, if there are several.
    """

    pool: str
    wanted: int
    workers: int
    draining: int
    queued: int
    running: int
    threads: int
    load: int
    oldest_age_s: int | None = None
    stop_first: tuple[StopCandidate, ...] = ()
    build: str = ""
    builds: tuple[PoolScale, ...] = ()


class FleetScale(Wire):
    """How many workers are `wanted` in the requested pool or in all pools, and in each pool."""

    at_ms: int
    wanted: int
    pools: tuple[PoolScale, ...]


class CellState(Wire):
    """The state of a cell.

    is_home: whether it has the directory and the tokens.
    is_up: whether its Redis and SQL answered within a second. If not, only `tenants` are known.
    redis: the address of its Redis, without a password.
    slot, node: on a Redis Cluster, the hash slot of its keys and the primary that has it, such as `10.0.0.2:6379`.
    tenants: how many tenants the directory places there, or None if the directory is down or there is one cell.
    active, parked, waiting: how many of its newest 2,000 turns that have not ended are in each state.
    workers: how many workers are alive.
    """

    name: str
    is_home: bool
    is_up: bool
    redis: str = ""
    slot: int | None = None
    node: str = ""
    tenants: int | None = None
    active: int = 0
    parked: int = 0
    waiting: int = 0
    workers: int = 0


class CellMove(Wire):
    """The progress of a tenant's move to another cell."""

    tenant: str
    from_cell: str
    to_cell: str
    phase: str
    started_at: datetime
    error: str | None = None


class CellsState(Wire):
    """All cells, home first, and the moves in progress, oldest first. `directory` is home's SQL."""

    cells: tuple[CellState, ...]
    moves: tuple[CellMove, ...] = ()
    directory: Literal["up", "away"] = "up"


class FleetQueue(Wire):
    """A queue: how many doorbells it holds, and how many whole seconds the next one has waited, or None if that is
    unknown.

    build: the build whose workers alone read it, or "" if all workers of the pool do. Such a queue is listed while it
        holds a message.
    """

    name: str
    pool: str
    depth: int
    oldest_age_s: int | None = None
    build: str = ""


class FleetLanes(Wire):
    """Calls that hold all their lanes, calls that wait for theirs, and how many of the holders have lapsed leases."""

    held: int = 0
    waiting: int = 0
    lapsed: int = 0


class FleetBrain(Wire):
    """A brain with a cap: how many of its turns may be live, and how many are."""

    name: str
    cap: int
    live: int


class FleetCapacity(Wire):
    """The capacity of the fleet for live turns.

    size: how many turns of all tenants may be live, or None until a sweeper has reported it.
    share: how many turns of one tenant may be live, or None until a sweeper has reported it.
    live: how many turns are live.
    tenants_waiting: how many tenants have turns that wait for capacity.
    brains: the brains with a cap of their own.
    """

    size: int | None = None
    share: int | None = None
    live: int = 0
    tenants_waiting: int = 0
    brains: tuple[FleetBrain, ...] = ()


class FleetTurns(Wire):
    """Turns that have not ended, by state. `accepted` turns are known to SQL alone.

    is_whole: False if there are more turns than were counted. The newest ones were counted.
    approvals: calls that wait for a person.
    """

    accepted: int = 0
    queued: int = 0
    active: int = 0
    parked: int = 0
    closing: int = 0
    is_whole: bool = True
    approvals: int = 0


class FleetModel(Wire):
    """A model, at one account, whose service's limits the fleet keeps.

    requests, tokens: the limits per minute, as they were set or learned, or None if unknown.
    taken: requests that count against the limits now.
    waiting: turns and calls in its queue.
    stopped_s: how many seconds from now its service accepts no requests.
    """

    name: str
    account: str = ""
    requests: int | None = None
    tokens: int | None = None
    taken: int = 0
    waiting: int = 0
    stopped_s: float = 0.0


class FleetSweeper(Wire):
    """How long ago a sweeper last finished a round (None if not within a day), and how overdue the oldest check of a
    turn is."""

    last_round_s: float | None = None
    overdue_s: float = 0.0


class FleetMinute(Wire):
    """The activity within one minute.

    accepted: turns that were accepted.
    ended: turns that ended. `failed` counts those of them that failed or timed out.
    p95_s: the 95th percentile of their durations from submit, or None if none ended.
    cost_usd: the cost of those that ended and have a price.
    """

    accepted: int = 0
    ended: int = 0
    failed: int = 0
    p95_s: float | None = None
    cost_usd: float = 0.0


class FleetActivity(Wire):
    """The activity of the last minutes, oldest first. The last minute is incomplete. Only turns accepted within these
    minutes count.

    is_whole: False if there were more turns than were read. The first minutes are then incomplete.
    cells_away: the cells that did not answer.
    """

    minutes: tuple[FleetMinute, ...]
    is_whole: bool = True
    cells_away: tuple[str, ...] = ()


class GivenUp(Wire):
    """Work that was given up.

    `brainq finalize retry`, `brainq webhook retry` and docs/operate/operations.md explain how to repair it.
    """

    finalizer_steps: int = 0
    judgements: int = 0
    deliveries: int = 0
    quarantined: int = 0
    unprefixed: int = 0
    """Messages in a queue without BRAINQ_PREFIX. No worker reads them; their producer lacks the prefix."""


class FleetRedis(Wire):
    """The state of Redis. `max_bytes` is None if there is no limit. `policy` must be `noeviction`."""

    version: str
    used_bytes: int
    max_bytes: int | None
    policy: str
    keeps_on_disk: bool


class FleetTrouble(Wire):
    """A problem that exists although all processes look healthy.

    kind: unfit_worker, idle_queue, unserved_queue, full_pool, late_sweep or unannounced.
    subject: the worker, the queue, the process, or `sweeper`.
    text: the observation, in a sentence.
    remedy: what to do about it.
    """

    kind: str
    subject: str
    text: str
    remedy: str


class Fleet(Wire):
    """The state of the fleet. `queues` and `quarantined` are known only if broker and state are one Redis.

    stops: what operators have paused or forbidden by name.
    troubles: problems that exist although all processes look healthy.
    cells_away: the cells that did not answer within a second.
    """

    at_ms: int
    pools: tuple[Pool, ...]
    queues: tuple[FleetQueue, ...] = ()
    lanes: FleetLanes = FleetLanes()
    turns: FleetTurns = FleetTurns()
    room: FleetCapacity = FleetCapacity()
    sweeper: FleetSweeper = FleetSweeper()
    given_up: GivenUp = GivenUp()
    models: tuple[FleetModel, ...] = ()
    stops: tuple[Stop, ...] = ()
    troubles: tuple[FleetTrouble, ...] = ()
    redis: FleetRedis
    cells_away: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SweepResult:
    """The work outside Redis that one check of a turn found.

    `fence` is the turn's. `lost` means that its owner had stopped beating, and that its doorbell was rung again.
    """

    fence: int = 0
    actions: tuple[tuple[str, ...], ...] = ()
    lost: bool = False


@dataclass(frozen=True, slots=True)
class DueTurns:
    """Turns that are due for a check.

    `stepped` counts checks that were moved forward, because the clock was set back.
    """

    turns: tuple[TurnKey, ...] = ()
    stepped: int = 0


@dataclass(frozen=True, slots=True)
class GoneProcess:
    """A process that was killed, or has ended.

    absent_at: Redis' time in ms at the first check that did not find it.
    leases: how many of its leases were ended for that.
    """

    process: str
    absent_at: int
    leases: int = 0


@dataclass(frozen=True, slots=True)
class ComparedPage:
    """The result of comparing a page of SQL's rows with Redis.

    last_row: the start of the next page, exclusive.
    more: False if no rows are left after it.
    healed: how many rows Redis did not know before.
    """

    last_row: int
    more: bool
    healed: int = 0
