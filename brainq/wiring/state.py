"""Redis, as one process reaches it: the adapters of `brainq.state`, on one client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from brainq.contracts.effect import Effect
from brainq.contracts.rate import read_rates
from brainq.contracts.turn import TurnRequest
from brainq.observe.tracing import tracer
from brainq.settings import Settings
from brainq.state.approvals import RedisApprovals
from brainq.state.auxiliary import RedisAuxiliary
from brainq.state.budgets import RedisBudgets
from brainq.state.calls import RedisCalls
from brainq.state.connection import Client, make_client
from brainq.state.events import RedisEvents
from brainq.state.finals import RedisFinals
from brainq.state.fleet import RedisFleet
from brainq.state.holds import RedisHolds
from brainq.state.index import RedisIndex
from brainq.state.keys import Keys
from brainq.state.lanes import RedisLanes
from brainq.state.live_turns import RedisLiveTurns
from brainq.state.mailbox import RedisMailbox
from brainq.state.metrics import RedisMetrics
from brainq.state.outbox import NoOutbox, Outbox, PublishingOutbox
from brainq.state.outside import RedisOutside
from brainq.state.rates import RedisRates
from brainq.state.request_keys import RedisRequestKeys
from brainq.state.room import RedisRoom
from brainq.state.runtime import RedisRuntime
from brainq.state.server_tasks import RedisServerTasks
from brainq.state.sessions import RedisSessions
from brainq.state.snapshots import RedisSnapshots
from brainq.state.stops import RedisStops
from brainq.state.transcripts import RedisTranscripts
from brainq.state.turns import RedisTurns
from brainq.state.typed_scripts import Scripts
from brainq.state.workers import RedisWorkers
from brainq.wiring.bells import doorbells

# When nobody has taken up the finalizer for this long, the sweeper sends the result itself.
UNSERVED_S = 15.0


@dataclass(frozen=True)
class State:
    """One of each. Nothing is connected until it is first used."""

    redis: Client
    keys: Keys
    scripts: Scripts
    turns: RedisTurns
    calls: RedisCalls
    auxiliary: RedisAuxiliary
    lanes: RedisLanes
    finals: RedisFinals
    budgets: RedisBudgets
    index: RedisIndex
    room: RedisRoom
    events: RedisEvents
    runtime: RedisRuntime
    snapshots: RedisSnapshots
    live_turns: RedisLiveTurns
    transcripts: RedisTranscripts
    mailbox: RedisMailbox
    holds: RedisHolds
    approvals: RedisApprovals
    sessions: RedisSessions
    outside: RedisOutside
    server_tasks: RedisServerTasks
    stops: RedisStops
    workers: RedisWorkers
    fleet: RedisFleet
    metrics: RedisMetrics
    request_keys: RedisRequestKeys
    rates: RedisRates

    def close(self) -> None:
        """Stop listening, and close every connection."""
        self.stops.close()
        self.redis.close()
        self.redis.connection_pool.disconnect()


def make_state(
    settings: Settings,
    url: str,
    *,
    serves: Iterable[Effect],
    first_step: str,
    brains: Sequence[str],
    complete: Callable[[TurnRequest], TurnRequest],
    on_gap: Callable[[], None],
) -> State:
    """
    serves       the effects of the calls that run in this process; a doorbell of any other is dropped
    first_step   of the finalizer, which is that of every brain
    brains       the names of those that this process has
    complete     fills in what a request leaves to its brain
    on_gap       called when cancels may have been published unheard
    """
    client, keys = make_client(url), Keys(settings.prefix)
    outbox = _outbox(settings, client, keys)
    scripts = Scripts(client, keys, doorbells(settings, traces=tracer() is not None))
    lease_s, grace_s, keep_session_s = settings.lease_s, settings.cancel_grace_s, settings.keep_session_s
    stops = RedisStops(url, keys.stops, on_gap)
    rates = RedisRates(scripts, keys, read_rates(settings.rates), stops.listen)
    stops.hear(keys.limited, rates.heard, rates.catch_up)
    calls = RedisCalls(scripts, keys, outbox, lease_s=lease_s, serves=sorted(serves), brains=brains)
    return State(
        redis=client,
        keys=keys,
        scripts=scripts,
        turns=RedisTurns(
            scripts,
            keys,
            outbox,
            lease_s=lease_s,
            keep_session_s=keep_session_s,
            grace_s=grace_s,
            first_step=first_step,
            brains=brains,
        ),
        calls=calls,
        auxiliary=RedisAuxiliary(scripts, keys, outbox),
        lanes=RedisLanes(scripts, keys, outbox, lease_s=lease_s),
        finals=RedisFinals(
            scripts,
            keys,
            outbox,
            lease_s=lease_s,
            keep_turn_s=settings.keep_turn_s,
            complete=complete,
            brains=brains,
        ),
        budgets=RedisBudgets(scripts, keys),
        index=RedisIndex(
            scripts,
            keys,
            outbox,
            rering_s=settings.rering_s,
            failing_s=settings.result_after_failing_s,
            unserved_s=max(UNSERVED_S, settings.result_after_failing_s),
            grace_s=grace_s,
            lease_s=lease_s,
        ),
        room=RedisRoom(scripts, outbox),
        events=RedisEvents(client, keys),
        runtime=RedisRuntime(scripts, keys),
        snapshots=RedisSnapshots(client, keys, calls),
        live_turns=RedisLiveTurns(client, keys),
        transcripts=RedisTranscripts(scripts, keys),
        mailbox=RedisMailbox(scripts, keys),
        holds=RedisHolds(scripts, keys, outbox, keep_session_s=keep_session_s),
        approvals=RedisApprovals(scripts, keys, outbox),
        sessions=RedisSessions(scripts, keys, outbox, keep_session_s=keep_session_s),
        outside=RedisOutside(scripts, keys, outbox),
        server_tasks=RedisServerTasks(client, scripts, keys, lease_s=lease_s),
        stops=stops,
        workers=RedisWorkers(client, keys),
        fleet=RedisFleet(client, keys),
        metrics=RedisMetrics(client, scripts, keys),
        request_keys=RedisRequestKeys(client, scripts, keys),
        rates=rates,
    )


def _outbox(settings: Settings, client: Client, keys: Keys) -> Outbox:
    if settings.doorbell == "transactional":
        return NoOutbox()
    # Celery costs half a second to import, and transactional doorbells do without it.
    from brainq.broker.app import make_app
    from brainq.broker.dispatch import publish_doorbell

    app = cache(lambda: make_app(settings, name="brainq-doorbells"))
    return PublishingOutbox(client, keys, lambda bell: publish_doorbell(app(), bell))
