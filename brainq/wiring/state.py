"""Redis, as one process reaches it: the adapters of `brainq.state` on one client, and where the scripts'
doorbells go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from brainq.broker import names
from brainq.broker.envelope import template, with_trace_header
from brainq.contracts.rate import parse_rates
from brainq.contracts.status import Effect
from brainq.contracts.turn import TurnRequest
from brainq.observe.tracing import tracer
from brainq.settings.deployment import Settings
from brainq.state.auxiliary import RedisAuxiliary
from brainq.state.budgets import RedisBudgets
from brainq.state.calls import RedisCalls, RedisLanes
from brainq.state.connection import Client, make_client
from brainq.state.events import RedisEvents
from brainq.state.finals import RedisFinalChain
from brainq.state.fleet import RedisCapacity, RedisFleet, RedisWorkers
from brainq.state.index import RedisSweepIndex
from brainq.state.keys import Keys
from brainq.state.metrics import RedisMetrics
from brainq.state.outbox import Outbox, PublishingOutbox
from brainq.state.outside import RedisOutside, RedisServerTasks
from brainq.state.people import RedisApprovals, RedisHolds, RedisMailbox, RedisSessions
from brainq.state.presence import RedisPresence
from brainq.state.rates import RedisRates
from brainq.state.request_keys import RedisRequestKeys
from brainq.state.scripts import Doorbell, Doorbells
from brainq.state.snapshots import RedisLiveTurns, RedisSnapshots
from brainq.state.stops import RedisStopSignals
from brainq.state.transcripts import RedisRuntime, RedisTranscripts
from brainq.state.turns import RedisTurns
from brainq.state.typed_scripts import Scripts

# Where the scripts' doorbells go.


def doorbells(settings: Settings, *, traces: bool = False) -> Doorbells:
    """Where scripts put doorbells: the broker's own lists, or each session's outbox.

    traces   they say where their turn's trace goes on
    """

    def of(task: str, queue: str, priority: int = 0) -> str:
        text = template(task, queue, priority)
        return with_trace_header(text) if traces else text

    tasks = {
        "turns": (names.TURN_ADVANCE, names.TURNS_QUEUE),
        "finalize": (names.FINALIZE_STEP, names.FINALIZE_QUEUE),
        "judges": (names.JUDGE_RUN, names.JUDGES_QUEUE),
    }
    tasks |= {effect.value: (names.CALL_RUN, names.tool_queue(effect)) for effect in Effect}
    direct = settings.doorbell == "transactional"
    queues = {
        word: Doorbell(names.queue_key(settings, queue) if direct else "", of(task, queue))
        for word, (task, queue) in tasks.items()
    }
    queues["finalize_later"] = Doorbell(
        names.later_key(settings, names.FINALIZE_QUEUE) if direct else "",
        of(names.FINALIZE_STEP, names.FINALIZE_QUEUE, names.LATER_PRIORITY),
    )
    return Doorbells(
        queues=queues,
        traces=traces,
        bells_key=Keys(settings.prefix).bells,
        index_key=Keys(settings.prefix).index,
        outbox_prefix=settings.prefix,
        lanes_prefix=Keys(settings.prefix).lanes,
        lane_lease_ms=int(settings.lease_s * 1000),
        rering_ms=int(settings.rering_s * 1000),
    )


# Redis, as one process reaches it: the adapters of `brainq.state`, on one client.

# When nobody has taken up the finalizer for this long, the sweeper sends the result itself.
UNSERVED_S = 15.0


@dataclass(frozen=True)
class RedisState:
    """One of each. Nothing is connected until it is first used."""

    redis: Client
    keys: Keys
    scripts: Scripts
    turns: RedisTurns
    calls: RedisCalls
    auxiliary: RedisAuxiliary
    lanes: RedisLanes
    finals: RedisFinalChain
    budgets: RedisBudgets
    index: RedisSweepIndex
    room: RedisCapacity
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
    stops: RedisStopSignals
    presence: RedisPresence
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
    owner: str,
    serves: Iterable[Effect],
    first_step: str,
    brains: Sequence[str],
    complete: Callable[[TurnRequest], TurnRequest],
    on_gap: Callable[[], None],
) -> RedisState:
    """
    owner        this process's name in leases
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
    workers = RedisWorkers(client, keys)
    stops = RedisStopSignals(url, keys.stops, on_gap)
    rates = RedisRates(scripts, keys, parse_rates(settings.rates), stops.listen)
    stops.hear(keys.limited, rates.receive_learned, rates.catch_up)
    calls = RedisCalls(scripts, keys, outbox, lease_s=lease_s, serves=sorted(serves), brains=brains)
    return RedisState(
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
        finals=RedisFinalChain(
            scripts, keys, outbox, lease_s=lease_s, keep_turn_s=settings.keep_turn_s, complete=complete, brains=brains
        ),
        budgets=RedisBudgets(scripts, keys),
        index=RedisSweepIndex(
            scripts,
            keys,
            outbox,
            rering_s=settings.rering_s,
            failing_s=settings.result_after_failing_s,
            unserved_s=max(UNSERVED_S, settings.result_after_failing_s),
            grace_s=grace_s,
            lease_s=lease_s,
        ),
        room=RedisCapacity(scripts, outbox),
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
        presence=RedisPresence(
            scripts, keys, stops, workers, owner, lease_s=lease_s, beat_s=settings.beat_s, rering_s=settings.rering_s
        ),
        workers=workers,
        fleet=RedisFleet(client, keys),
        metrics=RedisMetrics(client, scripts, keys),
        request_keys=RedisRequestKeys(client, scripts, keys),
        rates=rates,
    )


def _outbox(settings: Settings, client: Client, keys: Keys) -> Outbox:
    if settings.doorbell == "transactional":
        return Outbox()
    # Celery costs half a second to import, and transactional doorbells do without it.
    from brainq.broker.app import make_app, publish_doorbell

    app = cache(lambda: make_app(settings, name="brainq-doorbells"))
    return PublishingOutbox(client, keys, lambda bell: publish_doorbell(app(), bell))
