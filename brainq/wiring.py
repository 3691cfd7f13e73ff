"""Builds the machines of one process from its settings: the only place where all layers meet."""

from __future__ import annotations

import os
import socket
from functools import cached_property

from brainq.admission import Admission
from brainq.beats import Beats
from brainq.brain import Brain
from brainq.broker import names
from brainq.broker.envelope import template
from brainq.calls.executor import BoundedToolExecutor
from brainq.calls.lanes import LaneKeeper
from brainq.calls.run import CallRunner
from brainq.contracts.effect import Effect
from brainq.contracts.memory import MemoryRetriever
from brainq.contracts.usage import TokenUsage
from brainq.errors import BrainqError, SetupError
from brainq.finalize.again import StepRetrier
from brainq.finalize.finalizer import TurnFinalizer
from brainq.finalize.judging import JudgeRunner
from brainq.finalize.order import StepOrder
from brainq.finalize.parts import FinalParts, final_parts
from brainq.finalize.recall import Recall
from brainq.finalize.steps import steps_of
from brainq.observe.logs import logger
from brainq.providers.aside import Aside
from brainq.providers.pricing import cost_usd
from brainq.providers.resolve import resolve_model
from brainq.settings import Settings
from brainq.state.asides import RedisAsides
from brainq.state.budgets import RedisBudgets
from brainq.state.calls import RedisCalls
from brainq.state.connection import Client, make_client
from brainq.state.events import RedisEvents
from brainq.state.finals import RedisFinals
from brainq.state.index import RedisIndex
from brainq.state.keys import Keys
from brainq.state.lanes import RedisLanes
from brainq.state.outbox import NoOutbox, Outbox, PublishingOutbox
from brainq.state.runtime import RedisRuntime
from brainq.state.scripts import Doorbell, Doorbells, Scripts
from brainq.state.snapshots import RedisSnapshots
from brainq.state.turns import RedisTurns
from brainq.store.records import SqlRecords
from brainq.store.store import Store
from brainq.tools.rankers import ranker_named
from brainq.turn.advance import Coordinator
from brainq.turn.begin import Beginner
from brainq.turn.beside import Beside
from brainq.turn.selection import SemanticToolSelector
from brainq.turn.think import Thinker
from brainq.upkeep.compare import Comparer
from brainq.upkeep.judges import JudgeBells
from brainq.upkeep.rescue import Rescuer
from brainq.upkeep.sweeper import Sweeper

log = logger("brainq.wiring")

# When nobody has taken up the finalizer for this long, the sweeper sends the result itself.
UNSERVED_S = 15.0


class Wiring:
    """The machines of one process, each built when first used."""

    def __init__(self, settings: Settings, brain: Brain, *, redis_url: str = "", owner: str = "") -> None:
        self.settings = settings
        self.brain = brain
        self.owner = owner or f"{socket.gethostname()}-{os.getpid()}"
        self._redis_url = redis_url

    @cached_property
    def client(self) -> Client:
        url = self._redis_url or (
            self.settings.redis_url.get_secret_value() if self.settings.redis_url else ""
        )
        if not url:
            raise SetupError(
                "no Redis: set BRAINQ_REDIS_URL (such as redis://127.0.0.1:6379/0), or run `brainq dev`, which "
                "brings one of its own"
            )
        return make_client(url)

    @cached_property
    def keys(self) -> Keys:
        return Keys(self.settings.prefix)

    @cached_property
    def outbox(self) -> Outbox:
        if self.settings.doorbell == "transactional":
            return NoOutbox()
        # Celery costs half a second to import, and transactional doorbells do without it.
        from brainq.broker.app import make_app
        from brainq.broker.dispatch import publish_doorbell

        app = make_app(self.settings, name="brainq-doorbells")
        return PublishingOutbox(self.client, self.keys, lambda bell: publish_doorbell(app, bell))

    @cached_property
    def scripts(self) -> Scripts:
        return Scripts(self.client, doorbells(self.settings))

    @cached_property
    def store(self) -> Store:
        return Store.open(self.settings.sql_url.get_secret_value())

    @cached_property
    def turns(self) -> RedisTurns:
        return RedisTurns(
            self.scripts,
            self.keys,
            self.outbox,
            lease_s=self.settings.lease_s,
            keep_session_s=self.settings.keep_session_s,
        )

    @cached_property
    def calls(self) -> RedisCalls:
        return RedisCalls(self.scripts, self.keys, self.outbox, lease_s=self.settings.lease_s)

    @cached_property
    def asides(self) -> RedisAsides:
        return RedisAsides(self.scripts, self.keys, self.outbox)

    @cached_property
    def retriever(self) -> MemoryRetriever | None:
        memory = self.brain.memory
        if memory is None:
            return None
        if memory.retriever == "sql":
            from brainq.store.retriever import SqlMemoryRetriever

            return SqlMemoryRetriever(self.store.memories, memory.scope_of)
        return memory.retriever

    @cached_property
    def selector(self) -> SemanticToolSelector | None:
        selection = self.brain.selection
        if selection is None:
            return None
        return SemanticToolSelector(
            selection.max_tools_per_turn, selection.pinned, ranker_named(selection.ranking)
        )

    @cached_property
    def aside(self) -> Aside | None:
        """The model beside the steps of a turn that is over; None: what would ask it goes by rules."""
        try:
            return Aside(*resolve_model(self.brain.aside_model or self.brain.model))
        except BrainqError as failure:
            # A finalizer that does not know the model must still finish turns.
            log.warning("no model to extract and judge with", why=str(failure))
            return None

    @cached_property
    def lanes(self) -> RedisLanes:
        return RedisLanes(self.scripts, self.keys, lease_s=self.settings.lease_s)

    @cached_property
    def finals(self) -> RedisFinals:
        return RedisFinals(
            self.scripts,
            self.keys,
            self.outbox,
            lease_s=self.settings.lease_s,
            keep_turn_s=self.settings.keep_turn_s,
        )

    @cached_property
    def budgets(self) -> RedisBudgets:
        return RedisBudgets(self.scripts, self.keys)

    @cached_property
    def index(self) -> RedisIndex:
        return RedisIndex(
            self.scripts,
            self.keys,
            self.outbox,
            rering_s=self.settings.rering_s,
            failing_s=self.settings.result_after_failing_s,
            unserved_s=max(UNSERVED_S, self.settings.result_after_failing_s),
        )

    @cached_property
    def events(self) -> RedisEvents:
        return RedisEvents(self.client, self.keys)

    @cached_property
    def runtime(self) -> RedisRuntime:
        return RedisRuntime(self.scripts, self.keys)

    @cached_property
    def snapshots(self) -> RedisSnapshots:
        return RedisSnapshots(self.client, self.keys, self.calls)

    @cached_property
    def beats(self) -> Beats:
        return Beats(self.settings.beat_s)

    @cached_property
    def judge_beats(self) -> Beats:
        """Judgements' leases are in SQL: a slow database must not keep those in Redis from being renewed."""
        return Beats(self.settings.beat_s)

    @cached_property
    def keeper(self) -> LaneKeeper:
        return LaneKeeper(self.calls, self.lanes)

    @cached_property
    def admission(self) -> Admission:
        return Admission(self.store.turns, self.turns, self.brain.limits)

    @cached_property
    def order(self) -> StepOrder:
        return StepOrder(steps_of(self.brain, self.brain.final_steps))

    @cached_property
    def coordinator(self) -> Coordinator:
        beside = Beside(self.brain, self.asides, self.store.transcripts, cost_usd, self.index)
        thinker = Thinker(
            brain=self.brain,
            turns=self.turns,
            budget=self.budgets,
            beginner=Beginner(self.brain, self.turns, self.store.messages, self.store.turns),
            beside=beside,
            price=cost_usd,
            selector=self.selector,
        )
        return Coordinator(
            owner=self.owner,
            brain=self.brain,
            turns=self.turns,
            thinker=thinker,
            beside=beside,
            lanes=self.keeper,
            beats=self.beats,
            attention=self.index,
            first_final_step=self.order.first,
        )

    @cached_property
    def runner(self) -> CallRunner:
        return CallRunner(
            owner=self.owner,
            brain=self.brain,
            calls=self.calls,
            lanes=self.lanes,
            keeper=self.keeper,
            intents=self.store.calls,
            budgets=self.budgets,
            beats=self.beats,
            executor=BoundedToolExecutor(brain_ref=self.settings.app),
            retriever=self.retriever,
        )

    @cached_property
    def finalizer(self) -> TurnFinalizer:
        return TurnFinalizer(
            owner=self.owner,
            brain=self.brain,
            order=self.order,
            chain=self.finals,
            records=SqlRecords(self.store),
            beats=self.beats,
            parts=self.final_parts,
        )

    @cached_property
    def final_parts(self) -> FinalParts:
        return final_parts(self.brain, self.aside)

    @cached_property
    def recall(self) -> Recall:
        store = self.store
        return Recall(self.finals, store.turns, store.transcripts, store.traces, store.decisions)

    @cached_property
    def judge_runner(self) -> JudgeRunner:
        return JudgeRunner(
            own=tuple(self.brain.judges.values()),
            aside=self.aside,
            rows=self.store.judgements,
            conversations=self.recall,
            beats=self.judge_beats,
            lease_s=self.settings.lease_s,
            places=max(1, self.settings.concurrency.finalizer // 2),
            redact=self.brain.redact_logs,
        )

    @cached_property
    def retrier(self) -> StepRetrier:
        return StepRetrier(
            brain=self.brain,
            order=self.order,
            chain=self.finals,
            records=SqlRecords(self.store),
            steps=self.store.steps,
            judgements=self.store.judgements,
            recall=self.recall,
            judges=self.judge_runner,
            parts=self.final_parts,
        )

    @cached_property
    def sweeper(self) -> Sweeper:
        return Sweeper(
            every_s=self.settings.sweep_s,
            index=self.index,
            calls=self.calls,
            lanes=self.lanes,
            keeper=self.keeper,
            rescuer=Rescuer(
                calls=self.calls,
                intents=self.store.calls,
                lanes=self.keeper,
                max_attempts=self.settings.max_attempts,
            ),
            comparer=Comparer(
                index=self.index,
                accepted=self.store.turns,
                intents=self.store.calls,
                admission=self.admission,
            ),
            judges=JudgeBells(self.store.judgements, self.finals),
            coordinator=self.coordinator,
            finalizer=self.finalizer,
            opening=self.asides,
        )

    def warm_up(self) -> None:
        """Open Redis and SQL now, so that the first turn does not wait for it and a wrong URL shows at start."""
        self.client.ping()
        _ = self.store
        cost_usd("openai", "warm-up", TokenUsage(input_tokens=1))
        provider, _model = resolve_model(self.brain.model)
        warm_up = getattr(provider, "warm_up", None)
        if warm_up is not None:
            warm_up()

    def close(self) -> None:
        """Stop beating and close every connection that was opened."""
        built = self.__dict__
        if "beats" in built:
            self.beats.stop()
        if "judge_beats" in built:
            self.judge_beats.stop()
        if "store" in built:
            self.store.close()
        if "client" in built:
            self.client.close()
            self.client.connection_pool.disconnect()


def doorbells(settings: Settings) -> Doorbells:
    """Where scripts put doorbells: the broker's own lists, or each session's outbox."""
    tasks = {
        "turns": (names.TURN_ADVANCE, names.TURNS_QUEUE),
        "finalize": (names.FINALIZE_STEP, names.FINALIZE_QUEUE),
        "judges": (names.JUDGE_RUN, names.JUDGES_QUEUE),
    }
    tasks |= {effect.value: (names.CALL_RUN, names.tool_queue(effect)) for effect in Effect}
    direct = settings.doorbell == "transactional"
    queues = {
        word: Doorbell(names.queue_key(settings, queue) if direct else "", template(task, queue))
        for word, (task, queue) in tasks.items()
    }
    queues["finalize_later"] = Doorbell(
        names.later_key(settings, names.FINALIZE_QUEUE) if direct else "",
        template(names.FINALIZE_STEP, names.FINALIZE_QUEUE, names.LATER_PRIORITY),
    )
    return Doorbells(
        queues=queues,
        bells_key=Keys(settings.prefix).bells,
        outbox_prefix=settings.prefix,
    )
