"""Compute how many workers each pool needs, from its queued and running work."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from brainq.adapters.celery import names
from brainq.app.wiring import Wiring
from brainq.contracts.build import BuildTurn, Ramp
from brainq.contracts.fleet import FleetCapacity, FleetQueue, FleetScale, FleetWorker, PoolScale, StopCandidate
from brainq.errors import InvalidInput, SetupError
from brainq.fleet.builds import MAX_TURNS, versions_of
from brainq.fleet.combine import first_to_stop
from brainq.fleet.snapshot import read_redis_fleet
from brainq.runtime.settings.deployment import Settings

MAX_WORKERS = 1_000


@dataclass(frozen=True, slots=True)
class WorkerBounds:
    """The lowest and the highest number of workers that a pool may have."""

    least: int
    most: int


def worker_bounds(settings: Settings, least: int | None, most: int | None) -> WorkerBounds:
    """Return the requested bounds. The settings are the defaults.

    A requested bound also moves the other bound if that is a default. Raises InvalidInput.
    """
    for field, asked, lowest in (("min", least, 0), ("max", most, 1)):
        if asked is not None and not lowest <= asked <= MAX_WORKERS:
            raise InvalidInput(field, f"{asked} is not a valid number of workers; use {lowest} to {MAX_WORKERS}")
    if least is not None and most is not None and least > most:
        raise InvalidInput("min", f"min is {least}, which is above max, {most}; use at most {most}")
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
    """Return how many workers a pool needs. Pure.

    queues: the pool's queues.
    workers: the workers that accept work.
    draining: the workers that are stopping. They finish their running work, so it needs no other worker.
    threads: the threads of one worker, used if no worker is running.
    turns: the turns that are live or wait for capacity, if this pool's threads set the capacity: five turns for every
        four threads, as in `turn_capacity`. Otherwise 0.
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
        stop_first=first_to_stop([stopping, may_stop]),
    )


def _is_capped(room: FleetCapacity, workers: Sequence[FleetWorker]) -> bool:
    """Return whether more coordinators would not raise the capacity, because another cap such as a
    brain's limits it."""
    threads = sum(worker.threads for worker in workers if worker.pool == "coordinator")
    return room.size is not None and room.size < -(-threads * 5 // 4)


def build_shares(
    builds: Sequence[str], turns: Sequence[BuildTurn], ramp: Ramp | None, workers: Sequence[FleetWorker]
) -> dict[str, float]:
    """Return each build's share of the queues that all builds read. The shares add up to 1. Pure.

    Turns that a build has continued are its own. Turns that no build has begun are shared by the ramp, or without one
    by the number of threads, because a new turn begins where a coordinator is free.
    """
    held = Counter(turn.build for turn in turns if turn.state != "parked")
    if ramp is not None and ramp.to in builds and ramp.other in builds:
        parts = {ramp.to: ramp.share / 10_000, ramp.other: 1 - ramp.share / 10_000}
    else:
        threads = Counter({build: sum(each.threads for each in workers if each.build == build) for build in builds})
        parts = {build: threads[build] / threads.total() if threads.total() else 1 / len(builds) for build in builds}
    unbegun = sum(count for build, count in held.items() if build not in builds)
    begun = sum(held[build] for build in builds)
    if not begun + unbegun:
        return {build: parts.get(build, 0.0) for build in builds}
    return {build: (held[build] + unbegun * parts.get(build, 0.0)) / (begun + unbegun) for build in builds}


@dataclass(frozen=True, slots=True)
class BuildFacts:
    """The facts for scaling a build. `needed` is the number of turns that only this build can continue."""

    name: str
    share: float
    needed: int


def build_scale(
    build: BuildFacts,
    pool: str,
    queues: Sequence[FleetQueue],
    workers: Sequence[FleetWorker],
    threads: int,
    turns: int,
    bounds: WorkerBounds,
) -> PoolScale:
    """Return how many workers of one build a pool needs. Pure.

    queues: the pool's queues, with those of single builds. For the other arguments see `pool_scale`.
    """
    readable = [
        queue if queue.build else queue.model_copy(update={"depth": math.ceil(queue.depth * build.share)})
        for queue in queues
        if queue.build in ("", build.name)
    ]
    # A build without workers gets no doorbells, so a build that is needed keeps one worker.
    floor = WorkerBounds(max(bounds.least, min(1, build.needed)), bounds.most)
    own = [worker for worker in workers if worker.build == build.name]
    found = pool_scale(pool, readable, own, [], threads, math.ceil(turns * build.share), floor)
    return found.model_copy(update={"build": build.name})


@dataclass(frozen=True, slots=True)
class ScaleRequest:
    """The arguments of `Client.scale`. `least` and `most` default to the settings."""

    pool: str | None = None
    least: int | None = None
    most: int | None = None
    build: str | None = None


def _builds(wiring: Wiring, asked: str | None, workers: Sequence[FleetWorker]) -> tuple[BuildFacts, ...]:
    """Return the builds to scale one by one: the requested build, or all builds if several have workers."""
    state = wiring.state.builds
    alive = {worker.build for worker in workers if worker.build}
    if asked is None and len(alive) < 2:
        return ()
    turns, ramp = state.unended(MAX_TURNS), state.ramp()
    versions = versions_of(state.workers(), turns, state.known(), state.released())
    needed = {build.name: build.needed for build in versions.builds}
    names = sorted({*needed, *({asked} if asked else ())})
    shares = build_shares(names, turns, ramp, [worker for worker in workers if worker.pool == "coordinator"])
    found = tuple(BuildFacts(name, shares[name], needed.get(name, 0)) for name in names)
    return tuple(build for build in found if asked in (None, build.name))


def read_scale(wiring: Wiring, request: ScaleRequest) -> FleetScale:
    """See `Client.scale`."""
    settings, state, pool = wiring.settings, wiring.state, request.pool
    if pool is not None and pool not in names.POOL_QUEUES:
        raise InvalidInput("pool", f"{pool!r} is not one of {', '.join(names.POOL_QUEUES)}")
    if request.build == "":
        raise InvalidInput("build", "'' is not a build; `brainq versions` lists the builds")
    bounds = worker_bounds(settings, request.least, request.most)
    if settings.broker_url is not None:
        raise SetupError(
            "the queues are not in the state's Redis (BRAINQ_BROKER_URL), so their length is not known here; "
            "scale by the queue lengths that the broker reports"
        )
    # This order ensures that a worker which begins to drain in between is not counted twice.
    draining, live = state.workers.draining(), read_redis_fleet(wiring)
    room, turns = live.facts.room, 0
    if settings.max_live_turns is None and not _is_capped(room, live.workers):
        turns = room.live + (state.fleet.waiting_turns() if room.tenants_waiting else 0)
    builds = _builds(wiring, request.build, live.workers)
    threads: Mapping[str, int] = settings.concurrency.model_dump()

    def scale_of(each: str) -> PoolScale:
        queues = [queue for queue in live.queues if queue.pool == each]
        workers = [worker for worker in live.workers if worker.pool == each]
        of = (threads[each], turns if each == "coordinator" else 0, bounds)
        if request.build is not None:
            return build_scale(builds[0], each, queues, workers, *of)
        stopping = [worker for worker in draining if worker.pool == each]
        whole = pool_scale(each, queues, workers, stopping, *of)
        return whole.model_copy(
            update={"builds": tuple(build_scale(build, each, queues, workers, *of) for build in builds)}
        )

    pools = tuple(map(scale_of, [pool] if pool else names.POOL_QUEUES))
    return FleetScale(at_ms=live.facts.now_ms, wanted=sum(each.wanted for each in pools), pools=pools)
