"""The fleet at one moment, and its last hour by minute. Both are read from Redis and SQL, without
contacting workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from brainq.adapters.celery import names
from brainq.adapters.redis.fleet import FleetFacts, rung_at_s
from brainq.adapters.sql.repositories.turn_records import count_given_up
from brainq.app.wiring import Wiring
from brainq.contracts import fleet
from brainq.contracts.rows import RecentTurn
from brainq.contracts.status import Ending
from brainq.fleet.troubles import fleet_troubles, longest_limits

MAX_OPEN_TURNS = 2_000  # The maximum number of turns whose states are read, which takes about 20 ms.
MINUTES = 60
WINDOW = timedelta(minutes=MINUTES)
MAX_RECENT_TURNS = 20_000
"""The maximum number of turns that are read, newest first."""
_POOL_OF = {queue: pool for pool, queues in names.POOL_QUEUES.items() for queue in queues}
_FAILED = (Ending.FAILED.value, Ending.TIMED_OUT.value)


@dataclass(frozen=True, slots=True)
class RedisFleetState:
    """The fleet's data in Redis. `queues`, `quarantined` and `unprefixed` are empty if the broker is another server."""

    facts: FleetFacts
    queues: tuple[fleet.FleetQueue, ...]
    workers: tuple[fleet.FleetWorker, ...]
    quarantined: int
    unprefixed: int
    troubles: tuple[fleet.FleetTrouble, ...]


def read_redis_fleet(wiring: Wiring) -> RedisFleetState:
    settings, state = wiring.settings, wiring.state
    is_here = settings.broker_url is None
    builds = sorted(state.builds.known()) if is_here else []
    own = [(queue, build) for build in builds for queue in names.ALL_QUEUES]
    of_builds = [names.queue_key(settings, names.build_queue(*each)) for each in own]
    lists = [key for queue in names.ALL_QUEUES for key in names.queue_keys(settings, queue)] if is_here else []
    poison = [names.queue_key(settings, names.POISON_LIST)] if is_here else []
    facts = state.fleet.look([*lists, *of_builds, *poison], list(names.TAKEN_IN_TURN.values()))
    lengths = dict(zip([*lists, *of_builds], facts.queues, strict=False))
    waiting = dict(zip(names.TAKEN_IN_TURN, facts.waiting, strict=True))
    queues = [
        _queue(
            pool,
            queue,
            [lengths[key] for key in names.queue_keys(settings, queue)],
            waiting.get(queue, 0),
            facts.now_ms,
        )
        for pool, served in names.POOL_QUEUES.items()
        for queue in served
        if is_here
    ]
    for (queue, build), key in zip(own, of_builds, strict=True):
        if lengths[key][0]:
            queues.append(_queue(_POOL_OF[queue], queue, [lengths[key]], 0, facts.now_ms, build))
    quarantined = facts.queues[-1][0] if poison else 0
    unprefixed = state.fleet.messages_in(names.unprefixed_lists(wiring.settings.key_prefix)) if is_here else 0
    workers = state.workers.of_builds()
    troubles = fleet_troubles(queues, workers, facts.sweeper, state.fleet.unannounced(), longest_limits(wiring.brains))
    return RedisFleetState(facts, tuple(queues), workers, quarantined, unprefixed, troubles)


def read_fleet(wiring: Wiring) -> fleet.Fleet:
    """See `Client.fleet`."""
    state, store = wiring.state, wiring.store
    live = read_redis_fleet(wiring)
    unended = store.turns.list(None, "accepted", MAX_OPEN_TURNS + 1)
    given_up, approvals = count_given_up(store.database)
    turns = [(turn.session_id, turn.turn_id) for turn in unended[:MAX_OPEN_TURNS]]
    states = Counter(state for state, _ in state.fleet.standing(turns))
    return fleet.Fleet(
        at_ms=live.facts.now_ms,
        pools=tuple(
            fleet.Pool(name=name, queues=served, workers=tuple(each for each in live.workers if each.pool == name))
            for name, served in names.POOL_QUEUES.items()
        ),
        queues=live.queues,
        lanes=live.facts.lanes,
        room=live.facts.room,
        turns=fleet.FleetTurns(
            accepted=states["accepted"],
            queued=states["queued"],
            active=states["active"],
            parked=states["parked"],
            closing=states["closing"],
            is_whole=len(unended) <= MAX_OPEN_TURNS,
            approvals=approvals,
        ),
        sweeper=live.facts.sweeper,
        given_up=given_up.model_copy(update={"quarantined": live.quarantined, "unprefixed": live.unprefixed}),
        models=state.rates.models(),
        stops=store.stops.standing(),
        troubles=live.troubles,
        redis=live.facts.redis,
    )


def _queue(
    pool: str, queue: str, lists: list[tuple[int, str | None]], waiting: int, now_ms: int, build: str = ""
) -> fleet.FleetQueue:
    """Return the lists of a queue as one queue, with the messages that wait for a place in them."""
    rung = [at for at in (rung_at_s(oldest) for _, oldest in lists) if at is not None]
    return fleet.FleetQueue(
        name=names.build_queue(queue, build) if build else queue,
        pool=pool,
        build=build,
        depth=waiting + sum(length for length, _ in lists),
        oldest_age_s=max(0, now_ms // 1000 - min(rung)) if rung else None,
    )


def fleet_activity(turns: Sequence[RecentTurn], now: datetime) -> fleet.FleetActivity:
    """Return the activity of the last hour, by minute. Pure.

    turns: the newest MAX_RECENT_TURNS that were accepted within WINDOW before `now`.
    """
    accepted = [0] * MINUTES
    ended: list[list[RecentTurn]] = [[] for _ in range(MINUTES)]
    for turn in turns:
        begun = _minute_index(turn.accepted_at, now)
        if begun is not None:
            accepted[begun] += 1
        over = None if turn.ended_at is None else _minute_index(turn.ended_at, now)
        if over is not None and turn.state != "rejected":
            ended[over].append(turn)
    minutes = tuple(_fleet_minute(count, over) for count, over in zip(accepted, ended, strict=True))
    return fleet.FleetActivity(minutes=minutes, is_whole=len(turns) < MAX_RECENT_TURNS)


def _minute_index(at: datetime, now: datetime) -> int | None:
    ago = int((now - at).total_seconds() // 60)
    place = MINUTES - 1 - max(0, ago)
    return place if place >= 0 else None


def _fleet_minute(accepted: int, ended: Sequence[RecentTurn]) -> fleet.FleetMinute:
    took = sorted((turn.ended_at - turn.accepted_at).total_seconds() for turn in ended if turn.ended_at is not None)
    return fleet.FleetMinute(
        accepted=accepted,
        ended=len(ended),
        failed=sum(turn.state in _FAILED for turn in ended),
        p95_s=took[min(len(took) - 1, len(took) * 95 // 100)] if took else None,
        cost_usd=sum(turn.cost_usd or 0.0 for turn in ended),
    )
