"""The fleet at one moment: what Redis, SQL and the workers' own words tell of it without asking a worker."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from brainq.broker import names
from brainq.contracts.fleet import Fleet, FleetQueue, FleetTurns, FleetWorker, GivenUp, Pool
from brainq.state.fleet import FleetFacts, rung_at_s
from brainq.store.repositories.given_up import count_given_up
from brainq.wiring import Wiring

MOST_TURNS = 2_000  # whose states are asked for: some 20 ms
POOLS = {
    "coordinator": names.COORDINATOR_QUEUES,
    "parallel": names.PARALLEL_QUEUES,
    "serial": names.SERIAL_QUEUES,
    "finalizer": names.FINALIZER_QUEUES,
}


@dataclass(frozen=True, slots=True)
class SeenInRedis:
    """What Redis alone tells. `queues` and `quarantined` are told where broker and state are one Redis."""

    facts: FleetFacts
    queues: tuple[FleetQueue, ...]
    workers: tuple[FleetWorker, ...]
    quarantined: int


def seen_in_redis(wiring: Wiring) -> SeenInRedis:
    settings, state = wiring.settings, wiring.state
    is_here = settings.broker_url is None
    lists = (
        [key for queue in names.ALL_QUEUES for key in names.queue_keys(settings, queue)] if is_here else []
    )
    poison = [names.queue_key(settings, names.POISON_LIST)] if is_here else []
    facts = state.fleet.look([*lists, *poison], list(names.TAKEN_IN_TURN.values()))
    lengths = dict(zip(lists, facts.queues, strict=False))
    waiting = dict(zip(names.TAKEN_IN_TURN, facts.waiting, strict=True))
    queues = [
        _queue(
            pool,
            queue,
            [lengths[key] for key in names.queue_keys(settings, queue)],
            waiting.get(queue, 0),
            facts.now_ms,
        )
        for pool, served in POOLS.items()
        for queue in served
        if is_here
    ]
    quarantined = facts.queues[-1][0] if poison else 0
    return SeenInRedis(facts, tuple(queues), state.workers.alive(), quarantined)


def fleet_of(wiring: Wiring) -> Fleet:
    """See `Client.fleet`."""
    state, store = wiring.state, wiring.store
    seen = seen_in_redis(wiring)
    unended = store.turns.list(None, "accepted", MOST_TURNS + 1)
    counts = count_given_up(store.database)
    turns = [(turn.session_id, turn.turn_id) for turn in unended[:MOST_TURNS]]
    states = Counter(state for state, _ in state.fleet.standing(turns))
    return Fleet(
        at_ms=seen.facts.now_ms,
        pools=tuple(
            Pool(name=name, queues=served, workers=tuple(each for each in seen.workers if each.pool == name))
            for name, served in POOLS.items()
        ),
        queues=seen.queues,
        lanes=seen.facts.lanes,
        room=seen.facts.room,
        turns=FleetTurns(
            accepted=states["accepted"],
            queued=states["queued"],
            active=states["active"],
            parked=states["parked"],
            closing=states["closing"],
            is_whole=len(unended) <= MOST_TURNS,
            approvals=counts.approvals,
        ),
        sweeper=seen.facts.sweeper,
        given_up=GivenUp(
            finalizer_steps=counts.finalizer_steps,
            judgements=counts.judgements,
            deliveries=counts.deliveries,
            quarantined=seen.quarantined,
        ),
        models=state.rates.models(),
        redis=seen.facts.redis,
    )


def _queue(
    pool: str, queue: str, lists: list[tuple[int, str | None]], waiting: int, now_ms: int
) -> FleetQueue:
    """The lists of a queue as one, and what waits for a place in them."""
    rung = [at for at in (rung_at_s(oldest) for _, oldest in lists) if at is not None]
    return FleetQueue(
        name=queue,
        pool=pool,
        depth=waiting + sum(length for length, _ in lists),
        oldest_age_s=max(0, now_ms // 1000 - min(rung)) if rung else None,
    )
