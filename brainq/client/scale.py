"""How many workers each pool wants: a decision of what waits and what runs there, and the reading of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from brainq.broker import names
from brainq.client.fleet import read_redis_fleet
from brainq.contracts.fleet import FleetCapacity, FleetQueue, FleetScale, FleetWorker, PoolScale, StopCandidate
from brainq.errors import InvalidInput, SetupError
from brainq.settings.deployment import Settings
from brainq.wiring import Wiring

MAX_WORKERS = 1_000


@dataclass(frozen=True, slots=True)
class WorkerBounds:
    """How few and how many workers a pool may have."""

    least: int
    most: int


def worker_bounds(settings: Settings, least: int | None, most: int | None) -> WorkerBounds:
    """As they were asked for, else as the settings say; one that was asked for moves the other's setting.

    Raises InvalidInput.
    """
    for field, asked, lowest in (("min", least, 0), ("max", most, 1)):
        if asked is not None and not lowest <= asked <= MAX_WORKERS:
            raise InvalidInput(field, f"{asked} workers cannot be asked for; ask for {lowest} to {MAX_WORKERS}")
    if least is not None and most is not None and least > most:
        raise InvalidInput("min", f"it is {least}, above max, which is {most}; ask for at most as many")
    most_set = max(settings.scale_max, least or 0) if most is None else most
    return WorkerBounds(min(settings.scale_min, most_set) if least is None else least, most_set)


def pool_scale(
    pool: str,
    queues: Sequence[FleetQueue],
    workers: Sequence[FleetWorker],
    draining: Sequence[FleetWorker],
    threads: int,
    turns: int,
    bounds: WorkerBounds,
) -> PoolScale:
    """How many workers a pool wants. Pure.

    queues     the pool's
    workers    those that take work; `draining` have been asked to stop, and end what they run
    threads    of a worker, where none is alive that says so
    turns      that are live or wait for capacity, where that grows with this pool's threads: five turns for every four
               of them, as `turn_capacity` has it. Else 0

    What draining workers run is theirs to end: nobody has to be there for it.
    """
    queued, running = sum(queue.depth for queue in queues), sum(worker.busy for worker in workers)
    threads = max(1, sum(worker.threads for worker in workers) // len(workers)) if workers else threads
    load = max(queued + running, -(-turns * 4 // 5))
    ages = [queue.oldest_age_s for queue in queues if queue.oldest_age_s is not None]
    stopping = [StopCandidate(name=worker.name, busy=worker.busy, draining=True) for worker in draining]
    may_stop = [StopCandidate(name=worker.name, busy=worker.busy) for worker in workers]
    return PoolScale(
        pool=pool,
        wanted=max(bounds.least, min(bounds.most, -(-load // threads))),
        workers=len(workers),
        draining=len(draining),
        queued=queued,
        running=running,
        threads=threads,
        load=load,
        oldest_age_s=max(ages, default=None),
        stop_first=tuple(sorted([*stopping, *may_stop], key=lambda each: (not each.draining, each.busy, each.name))),
    )


def _is_capped(room: FleetCapacity, workers: Sequence[FleetWorker]) -> bool:
    """Whether the capacity is less than the coordinators' threads make, as by the cap of a deployment's one brain: more
    coordinators would not raise it."""
    threads = sum(worker.threads for worker in workers if worker.pool == "coordinator")
    return room.size is not None and room.size < -(-threads * 5 // 4)


def read_scale(wiring: Wiring, pool: str | None, least: int | None, most: int | None) -> FleetScale:
    """See `Client.scale`."""
    settings, state = wiring.settings, wiring.state
    if pool is not None and pool not in names.POOL_QUEUES:
        raise InvalidInput("pool", f"{pool!r} is not one of {', '.join(names.POOL_QUEUES)}")
    bounds = worker_bounds(settings, least, most)
    if settings.broker_url is not None:
        raise SetupError(
            "the queues are not in the state's Redis (BRAINQ_BROKER_URL), so their length is not known here; "
            "scale by what that broker says of them"
        )
    # In this order, so that one that begins to drain meanwhile is not counted twice.
    draining, live = state.workers.draining(), read_redis_fleet(wiring)
    room, turns = live.facts.room, 0
    if settings.max_live_turns is None and not _is_capped(room, live.workers):
        turns = room.live + (state.fleet.waiting_turns() if room.tenants_waiting else 0)
    threads: Mapping[str, int] = settings.concurrency.model_dump()
    pools = tuple(
        pool_scale(
            each,
            [queue for queue in live.queues if queue.pool == each],
            [worker for worker in live.workers if worker.pool == each],
            [worker for worker in draining if worker.pool == each],
            threads[each],
            turns if each == "coordinator" else 0,
            bounds,
        )
        for each in ([pool] if pool else names.POOL_QUEUES)
    )
    return FleetScale(at_ms=live.facts.now_ms, wanted=sum(each.wanted for each in pools), pools=pools)
