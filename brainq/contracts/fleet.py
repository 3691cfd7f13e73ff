"""What runs turns, at one moment: pools and their workers, queues, lanes, what was given up, Redis; and what
the sweeper looks at and finds.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from brainq.contracts.base import Wire
from brainq.contracts.stop import Stop

TurnKey = tuple[str, str]  # session, turn


class FleetWorker(Wire):
    """A worker process that is alive: it reported within the last seconds.

    name            its node name in Celery, as Flower shows it: `serial@host`
    threads, busy   how many tasks it may run at once, and how many it ran when it reported
    build           the name of its code; "" where it did not say
    lacks           why it cannot work, or is not ready; "" while it is
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
    """A worker that may stop, and how many tasks it ran when it reported. `draining`: it was asked to stop already."""

    name: str
    busy: int
    draining: bool = False


class PoolScale(Wire):
    """How many workers a pool wants, and why.

    wanted        `load` over `threads`, rounded up, within the bounds that hold
    workers       that take work now; `draining` ones only end what they run, and do not count
    queued        messages in the pool's queues; `running`: tasks of its workers when they last reported
    threads       of one worker: the mean of those alive, else as BRAINQ_CONCURRENCY__POOL says
    load          threads that all of it needs: `queued` and `running`. Of coordinators at least four for every five
                  turns that are live or wait for capacity, where that follows from their threads
    oldest_age_s  for how many whole seconds the oldest message waits; None: nothing does, or it does not say
    stop_first    all workers, in the order in which they may stop: draining first, then the least busy
    build         of one build alone: what is in its own queues, and its part of what all builds read. A worker that
                  drains belongs to none. While turns are pinned to the build `wanted` is 1 at least
    builds        each of them, where there are several
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
    """How many workers are `wanted`: of the pool that was asked for, else of all; and each pool by itself."""

    at_ms: int
    wanted: int
    pools: tuple[PoolScale, ...]


class CellState(Wire):
    """A cell.

    is_home   it has the directory and the tokens
    is_up     its Redis and SQL answered within a second; of one that is away only `tenants` are known
    redis     where its Redis is, without a password
    tenants   how many the directory has there; None while that is away, and where there is one cell
    active, parked, waiting   turns, of the newest 2,000 that have not ended
    workers   that are alive
    """

    name: str
    is_home: bool
    is_up: bool
    redis: str = ""
    tenants: int | None = None
    active: int = 0
    parked: int = 0
    waiting: int = 0
    workers: int = 0


class CellMove(Wire):
    """A tenant that is under way to another cell, and how far it has come."""

    tenant: str
    from_cell: str
    to_cell: str
    phase: str
    started_at: datetime
    error: str | None = None


class CellsState(Wire):
    """All cells, home first, and moves under way, the first to begin first. `directory` is home's SQL."""

    cells: tuple[CellState, ...]
    moves: tuple[CellMove, ...] = ()
    directory: Literal["up", "away"] = "up"


class FleetQueue(Wire):
    """A queue: how many doorbells lie in it, and for how many whole seconds the next one has; None: it does not say.

    build   whose workers alone read it; "" where all of the pool do. Such a queue is listed while something lies in it
    """

    name: str
    pool: str
    depth: int
    oldest_age_s: int | None = None
    build: str = ""


class FleetLanes(Wire):
    """Calls that hold all their lanes, those that wait for theirs, and of those that hold how many leases lapsed."""

    held: int = 0
    waiting: int = 0
    lapsed: int = 0


class FleetBrain(Wire):
    """A brain with a cap: how many of its turns may be live, and how many are."""

    name: str
    cap: int
    live: int


class FleetCapacity(Wire):
    """How many turns may be live, how many of one tenant, how many are, and how many tenants have turns that wait for
    room, or for their brain's. `size` and `share` are None before a sweeper has reported them."""

    size: int | None = None
    share: int | None = None
    live: int = 0
    tenants_waiting: int = 0
    brains: tuple[FleetBrain, ...] = ()


class FleetTurns(Wire):
    """Turns that have not ended, by state; `accepted` are known to SQL alone.

    is_whole   False: there are more than were looked at, and these are the newest
    approvals  calls that wait for a person
    """

    accepted: int = 0
    queued: int = 0
    active: int = 0
    parked: int = 0
    closing: int = 0
    is_whole: bool = True
    approvals: int = 0


class FleetModel(Wire):
    """A model whose service's limits the fleet keeps, at one account.

    requests, tokens   the limits of a minute, as they are set or were learned; None: none is known
    taken       requests that count now
    waiting     turns and calls in line for a place
    stopped_s   for how long its service asked to wait, from now on
    """

    name: str
    account: str = ""
    requests: int | None = None
    tokens: int | None = None
    taken: int = 0
    waiting: int = 0
    stopped_s: float = 0.0


class FleetSweeper(Wire):
    """How long ago a sweeper last took what is due (None: not within a day), and how long the oldest look is due."""

    last_round_s: float | None = None
    overdue_s: float = 0.0


class FleetMinute(Wire):
    """What happened within one minute.

    accepted   turns
    ended      turns, and of these those that failed or timed out
    p95_s      how long 95 of 100 of those that ended took at most, from their submit; None: none ended
    cost_usd   of those that ended and have a price
    """

    accepted: int = 0
    ended: int = 0
    failed: int = 0
    p95_s: float | None = None
    cost_usd: float = 0.0


class FleetActivity(Wire):
    """The last minutes, the oldest first; the last one goes on. Of turns that were accepted within them.

    is_whole   False: there were more turns than were looked at, and the first minutes lack some
    cells_away   of several cells those that did not answer
    """

    minutes: tuple[FleetMinute, ...]
    is_whole: bool = True
    cells_away: tuple[str, ...] = ()


class GivenUp(Wire):
    """What was given up: `brainq finalize retry`, `brainq webhook retry`, and docs/operate/operations.md mend it."""

    finalizer_steps: int = 0
    judgements: int = 0
    deliveries: int = 0
    quarantined: int = 0
    unprefixed: int = 0
    """Messages in a queue without BRAINQ_PREFIX, which no worker reads: their producer does not know of the prefix."""


class FleetRedis(Wire):
    """`max_bytes` is None where there is no limit; `policy` has to be `noeviction`."""

    version: str
    used_bytes: int
    max_bytes: int | None
    policy: str
    keeps_on_disk: bool


class FleetTrouble(Wire):
    """Something that is wrong though processes look healthy.

    kind      unfit_worker, idle_queue, unserved_queue, full_pool, late_sweep or unannounced
    subject   the worker, the queue, the process, or `sweeper`
    text      what was seen, in a sentence
    remedy    what to do about it
    """

    kind: str
    subject: str
    text: str
    remedy: str


class Fleet(Wire):
    """All of it. `queues` and `quarantined` are given where broker and state are one Redis; else there are none.

    stops        what operators have paused or forbidden by name
    troubles     what is wrong though processes look healthy
    cells_away   of several cells those that did not answer within a second
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
    """What one look at a turn found that is to be done beyond Redis; `fence` is the turn's. `lost`: its owner had
    stopped beating, and others were rung."""

    fence: int = 0
    actions: tuple[tuple[str, ...], ...] = ()
    lost: bool = False


@dataclass(frozen=True, slots=True)
class DueTurns:
    """Turns to be looked at. `stepped` looks were brought nearer, because the clock has stepped back since they were
    put off."""

    turns: tuple[TurnKey, ...] = ()
    stepped: int = 0


@dataclass(frozen=True, slots=True)
class GoneProcess:
    """A process that was killed, or ended. `absent_at`: Redis' time in ms at the first look that missed it. `leases`:
    how many of its leases were ended for that."""

    process: str
    absent_at: int
    leases: int = 0


@dataclass(frozen=True, slots=True)
class ComparedPage:
    """What comparing a page of SQL's rows with Redis came to.

    last_row   where the next page begins after
    more       False when no rows are left behind it
    healed     counts what Redis did not know, and knows now
    """

    last_row: int
    more: bool
    healed: int = 0
