"""The Redis adapters of one process on one client, and the destinations of doorbells."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING

from brainq.adapters.celery import names
from brainq.adapters.celery.envelope import template, with_trace_header
from brainq.adapters.redis.builds import RedisBuilds
from brainq.adapters.redis.bulks import RedisBulks
from brainq.adapters.redis.calls import RedisCalls
from brainq.adapters.redis.connection import Client, make_client
from brainq.adapters.redis.doorbells import Doorbell, Doorbells, Outbox
from brainq.adapters.redis.events import RedisEvents
from brainq.adapters.redis.failover import FailoverListener, ReplicaAcks
from brainq.adapters.redis.finals import RedisFinalChain
from brainq.adapters.redis.fleet import RedisFleet, RedisMetrics, RedisPresence, RedisWorkers
from brainq.adapters.redis.keys import Keys
from brainq.adapters.redis.listener import RedisStopSignals
from brainq.adapters.redis.money import RedisMoney
from brainq.adapters.redis.outside import RedisOutsideResults
from brainq.adapters.redis.people import RedisHolds, RedisSessions
from brainq.adapters.redis.rates import RedisRates
from brainq.adapters.redis.request_keys import RedisRequestKeys
from brainq.adapters.redis.scripts import Scripts
from brainq.adapters.redis.snapshots import RedisLiveTurns, RedisSnapshots
from brainq.adapters.redis.stops import RedisStops
from brainq.adapters.redis.sweeper import RedisSweeperState
from brainq.adapters.redis.transcripts import RedisRuntime, RedisTranscripts
from brainq.adapters.redis.turns import RedisTurns
from brainq.contracts.rate import parse_rates
from brainq.contracts.status import Effect
from brainq.engine.brain.brains import complete_request
from brainq.engine.finalize.steps import FIRST_STEP
from brainq.runtime.observe.tracing import tracer
from brainq.runtime.settings.cluster_url import REPLICATED_SCHEMES
from brainq.runtime.settings.deployment import Settings

if TYPE_CHECKING:
    from brainq.app.wiring.wiring import Wiring

# If no finalizer has claimed a turn for this long, the sweeper publishes its result.
UNSERVED_S = 15.0


def shares_limits(settings: Settings) -> bool:
    """Return whether this process serves one of several cells, which share models' limits."""
    return bool(settings.cell) and len(settings.all_cells()) > 1


def doorbells(settings: Settings, *, traces: bool = False) -> Doorbells:
    """Return where scripts put doorbells: into the broker's own lists, or into each session's outbox.

    traces   whether doorbells carry the trace of their turn
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
        bells_key=Keys(settings.key_prefix).bells,
        index_key=Keys(settings.key_prefix).index,
        outbox_prefix=settings.key_prefix,
        lanes_prefix=Keys(settings.key_prefix).lanes,
        lane_lease_ms=int(settings.lease_s * 1000),
        rering_ms=int(settings.rering_s * 1000),
    )


class RedisState:
    """The Redis adapters of a process, one of each. They connect when they are first used."""

    def __init__(self, wiring: Wiring) -> None:
        settings, build = wiring.settings, wiring.build
        self.redis = client = self._client(wiring.redis_url)
        self.keys = keys = Keys(settings.key_prefix)
        bells = self._doorbells(settings)
        self.scripts = scripts = Scripts(client, keys, bells, _outbox(settings, client, keys))
        lease_s, grace_s, keep_session_s = settings.lease_s, settings.cancel_grace_s, settings.keep_session_s
        # Messages that were published while it did not listen are replaced by heartbeats.
        self.stops = RedisStopSignals(wiring.redis_url, keys.stops, on_gap=wiring.beats.beat_now)
        broker = settings.broker_url.get_secret_value() if settings.broker_url else wiring.redis_url
        self.failovers = FailoverListener({wiring.redis_url, broker})
        in_cells = settings.in_cells
        rates = parse_rates(settings.rates)
        self.rates = RedisRates(scripts, rates, self.stops.listen, shared=shares_limits(settings), asker=wiring.owner)
        self.stops.hear(keys.limited, self.rates.receive_learned, self.rates.catch_up)
        self.money = RedisMoney(scripts, client, keys)
        self.stops.hear(keys.budgets, self.money.receive_set, self.money.catch_up)
        self.stop_switch = RedisStops(scripts, self.stops.listen)
        self.stops.hear(keys.stopped, self.stop_switch.receive_put, self.stop_switch.catch_up)
        self.turns = RedisTurns(
            scripts,
            lease_s=lease_s,
            keep_session_s=keep_session_s,
            grace_s=grace_s,
            first_step=FIRST_STEP,
            build=build,
            in_cells=in_cells,
        )
        self.calls = RedisCalls(
            scripts,
            lease_s=lease_s,
            serves=sorted(wiring.serves),
            build=build,
            acks=ReplicaAcks(scripts, lease_s) if wiring.redis_url.startswith(REPLICATED_SCHEMES) else None,
            opened=self.turns.opened,
        )
        self.finals = RedisFinalChain(
            scripts,
            lease_s=lease_s,
            keep_turn_s=settings.keep_turn_s,
            complete=partial(complete_request, wiring.brains),
            build=build,
        )
        self.events = RedisEvents(client, keys)
        self.runtime = RedisRuntime(scripts)
        self.snapshots = RedisSnapshots(client, keys, self.calls)
        self.live_turns = RedisLiveTurns(client, keys)
        self.transcripts = RedisTranscripts(scripts)
        self.holds = RedisHolds(scripts, keep_session_s=keep_session_s)
        self.sessions = RedisSessions(scripts, keep_session_s=keep_session_s, in_cells=in_cells)
        self.outside = RedisOutsideResults(scripts, lease_s=lease_s)
        self.workers = RedisWorkers(client, keys)
        self.presence = RedisPresence(scripts, self.stops, wiring.owner)
        self.sweeper = RedisSweeperState(
            scripts,
            self.workers,
            rering_s=settings.rering_s,
            failing_s=settings.result_after_failing_s,
            unserved_s=max(UNSERVED_S, settings.result_after_failing_s),
            grace_s=grace_s,
            lease_s=lease_s,
            beat_s=settings.beat_s,
        )
        self.fleet = RedisFleet(client, keys)
        self.builds = RedisBuilds(client, keys)
        self.metrics = RedisMetrics(scripts)
        self.request_keys = RedisRequestKeys(scripts)
        self.bulks = RedisBulks(client, keys)

    def _client(self, url: str) -> Client:
        return make_client(url)

    def _doorbells(self, settings: Settings) -> Doorbells:
        return doorbells(settings, traces=tracer() is not None)

    def close(self) -> None:
        """Stop listening, and close every connection."""
        self.stops.close()
        self.failovers.close()
        self.redis.close()
        self.redis.connection_pool.disconnect()


def _outbox(settings: Settings, client: Client, keys: Keys) -> Outbox | None:
    if settings.doorbell == "transactional":
        return None
    # Celery costs half a second to import, and transactional doorbells do not need it.
    from brainq.adapters.celery.app import make_app, publish_doorbell

    app = cache(lambda: make_app(settings, name="brainq-doorbells"))
    return Outbox(client, keys, lambda bell: publish_doorbell(app(), bell))
