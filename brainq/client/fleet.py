"""The fleet at one moment: what Redis, SQL and the workers' own words tell of it without asking a worker."""

from __future__ import annotations

from brainq.broker import names
from brainq.contracts.fleet import Fleet, FleetQueue, FleetTurns, GivenUp, Pool
from brainq.state.fleet import rung_at_s
from brainq.store.repositories.given_up import count_given_up
from brainq.wiring import Wiring

MOST_TURNS = 2_000  # whose states are asked for: some 20 ms
POOLS = {
    "coordinator": names.COORDINATOR_QUEUES,
    "parallel": names.PARALLEL_QUEUES,
    "serial": names.SERIAL_QUEUES,
    "finalizer": names.FINALIZER_QUEUES,
}


def fleet_of(wiring: Wiring) -> Fleet:
    """See `Client.fleet`."""
    settings, state, store = wiring.settings, wiring.state, wiring.store
    is_here = settings.broker_url is None
    lists = (
        [key for queue in names.ALL_QUEUES for key in names.queue_keys(settings, queue)] if is_here else []
    )
    poison = [names.queue_key(settings, names.POISON_LIST)] if is_here else []
    facts = state.fleet.look([*lists, *poison])
    workers = state.workers.alive()
    lengths = dict(zip(lists, facts.queues, strict=False))
    queues = [
        _queue(pool, queue, [lengths[key] for key in names.queue_keys(settings, queue)], facts.now_ms)
        for pool, served in POOLS.items()
        for queue in served
        if is_here
    ]
    unended = store.turns.list(None, "accepted", MOST_TURNS + 1)
    counts = count_given_up(store.database)
    states = state.fleet.states([(turn.session_id, turn.turn_id) for turn in unended[:MOST_TURNS]])
    return Fleet(
        at_ms=facts.now_ms,
        pools=tuple(
            Pool(name=name, queues=served, workers=tuple(each for each in workers if each.pool == name))
            for name, served in POOLS.items()
        ),
        queues=tuple(queues),
        lanes=facts.lanes,
        room=facts.room,
        turns=FleetTurns(
            accepted=states["accepted"],
            queued=states["queued"],
            active=states["active"],
            parked=states["parked"],
            closing=states["closing"],
            is_whole=len(unended) <= MOST_TURNS,
            approvals=counts.approvals,
        ),
        sweeper=facts.sweeper,
        given_up=GivenUp(
            finalizer_steps=counts.finalizer_steps,
            judgements=counts.judgements,
            deliveries=counts.deliveries,
            quarantined=facts.queues[-1][0] if poison else 0,
        ),
        models=state.rates.models(),
        redis=facts.redis,
    )


def _queue(pool: str, queue: str, lists: list[tuple[int, str | None]], now_ms: int) -> FleetQueue:
    """Both lists of a queue as one."""
    rung = [at for at in (rung_at_s(oldest) for _, oldest in lists) if at is not None]
    return FleetQueue(
        name=queue,
        pool=pool,
        depth=sum(length for length, _ in lists),
        oldest_age_s=max(0, now_ms // 1000 - min(rung)) if rung else None,
    )
