"""The machines of workers: coordinator, calls, finalizer, sweeper."""

from __future__ import annotations

from functools import cached_property

from brainq.calls.executor import BoundedToolExecutor
from brainq.calls.run import CallRunner
from brainq.contracts.memory import MemoryRetriever
from brainq.contracts.usage import TokenUsage
from brainq.errors import BrainqError, SetupError, Unreachable
from brainq.finalize.finalizer import TurnFinalizer
from brainq.finalize.judging import JudgeRunner
from brainq.finalize.parts import FinalParts, final_parts
from brainq.finalize.recall import Recall
from brainq.finalize.retry import StepRetrier
from brainq.observe.logs import logger
from brainq.observe.urls import without_password
from brainq.providers.auxiliary import AuxiliaryModel
from brainq.providers.pricing import cost_usd
from brainq.providers.resolve import resolve_model, warm_up
from brainq.state.connection import AWAY
from brainq.store.records import SqlRecords
from brainq.tools.rankers import ranker_named
from brainq.turn.advance import Coordinator
from brainq.turn.auxiliary import AuxiliaryWork
from brainq.turn.begin import Beginner
from brainq.turn.context.selection import SemanticToolSelector
from brainq.turn.ending import Ender
from brainq.turn.patience import Patience
from brainq.turn.think import Thinker
from brainq.upkeep.compare import Comparer
from brainq.upkeep.judges import JudgeBells
from brainq.upkeep.parks import Parks
from brainq.upkeep.rescue import Rescuer
from brainq.upkeep.sweeper import Sweeper
from brainq.wiring.alone import AloneProcesses
from brainq.wiring.away import is_away
from brainq.wiring.before import Before
from brainq.wiring.people import People

log = logger("brainq.wiring")


SHARE_OF_GRACE = 0.75  # of a cancelled turn's: a function may use so much of it


class Wiring(People):
    """The machines of one process, each built when first used."""

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
    def auxiliary_model(self) -> AuxiliaryModel | None:
        """The model beside the steps of a turn that is over; None: what would ask it goes by rules."""
        try:
            return AuxiliaryModel(*resolve_model(self.brain.auxiliary_model or self.brain.model))
        except BrainqError as failure:
            # A finalizer that does not know the model must still finish turns.
            log.warning("no model to extract and judge with", why=str(failure))
            return None

    @cached_property
    def alone(self) -> AloneProcesses | None:
        """Where turns go on that may be what kills their workers."""
        return AloneProcesses(self.settings, self.redis_url, self.turns)

    @cached_property
    def coordinator(self) -> Coordinator:
        auxiliary = AuxiliaryWork(self.brain, self.auxiliary, self.store.transcripts.archive, cost_usd)
        thinker = Thinker(
            brain=self.brain,
            turns=self.turns,
            budgets=self.budgets,
            beginner=Beginner(self.brain, self.turns, self.store.messages.log_user, self.store.turns),
            auxiliary=auxiliary,
            approvals=self.store.approvals,
            brakes=self.brakes,
            price=cost_usd,
            selector=self.selector,
        )
        return Coordinator(
            owner=self.owner,
            brain=self.brain,
            turns=self.turns,
            thinker=thinker,
            auxiliary=auxiliary,
            beats=self.beats,
            stops=self.stops,
            brakes=self.brakes,
            ender=Ender(
                turns=self.turns,
                bounce=self.inputs.bounce,
                children=self.children,
                first_final_step=self.order.first,
            ),
            alone=None if self.alone is None else self.alone.advance,
            is_away=is_away,
            patience=Patience(is_away),
        )

    @cached_property
    def runner(self) -> CallRunner:
        return CallRunner(
            owner=self.owner,
            brain=self.brain,
            calls=self.calls,
            lanes=self.lanes,
            intents=self.store.calls,
            budgets=self.budgets,
            beats=self.beats,
            executor=BoundedToolExecutor(
                brain_ref=self.settings.app,
                # The rest is for hearing of the cancel, and for recording how the call ended.
                cancel_grace_s=self.settings.cancel_grace_s * SHARE_OF_GRACE,
            ),
            retriever=self.retriever,
            stops=self.stops,
            holds=self.holds,
            outside=self.outside,
            children=self.children,
            brakes=self.brakes,
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
            parents=self.children,
        )

    @cached_property
    def final_parts(self) -> FinalParts:
        return final_parts(self.brain, self.auxiliary_model)

    @cached_property
    def recall(self) -> Recall:
        store = self.store
        return Recall(
            self.finals,
            store.turns,
            store.transcripts.of,
            store.traces.of,
            store.decisions.get,
            Before(self.brain, store.turns),
        )

    @cached_property
    def judge_runner(self) -> JudgeRunner:
        return JudgeRunner(
            own=tuple(self.brain.judges.values()),
            auxiliary=self.auxiliary_model,
            rows=self.store.judgements,
            recorded=self.recall.recorded,
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
            steps=self.store.steps.of,
            judgements=self.store.judgements,
            recall=self.recall,
            judges=self.judge_runner,
            parts=self.final_parts,
            parents=self.children,
        )

    @cached_property
    def sweeper(self) -> Sweeper:
        return Sweeper(
            every_s=self.settings.sweep_s,
            index=self.index,
            lanes=self.lanes,
            rescuer=Rescuer(
                calls=self.calls,
                intents=self.store.calls,
                max_attempts=self.settings.max_attempts,
            ),
            comparer=Comparer(
                index=self.index,
                accepted=self.store.turns,
                admission=self.admission,
            ),
            judges=JudgeBells(self.store.judgements, self.finals),
            advance=self.coordinator.advance,
            deliver=self.finalizer.deliver,
            auxiliary=self.auxiliary,
            parks=Parks(calls=self.calls, cancel=self.turns.cancel),
            children=self.children,
            heal_inputs=self.inputs.heal,
            brakes=self.brakes,
            heal_approvals=self.approval_desk.heal,
        )

    def warm_up(self) -> None:
        """Open Redis and SQL now, so that the first turn does not wait for it and a wrong URL shows at start.

        Raises Unreachable when one of them does not answer, SetupError for what is wrong.
        """
        self.look(sql=False)
        if self.client.info("cluster").get("cluster_enabled"):
            raise SetupError(
                "Redis is a Cluster, which brainq does not work on; put one primary into BRAINQ_REDIS_URL"
            )
        _ = self.store

    def warm_up_models(self) -> None:
        """Import the price list and the SDK of the brain's model, which takes up to a second of CPU.

        For processes that ask models. Raises SetupError and InvalidInput for what is wrong with the model.
        """
        cost_usd("openai", "warm-up", TokenUsage(input_tokens=1))
        provider, _model = resolve_model(self.brain.model)
        warm_up(provider)

    def look(self, *, sql: bool) -> None:
        """Raise when Redis does not answer, or SQL where `sql` asks for it."""
        try:
            self.client.ping()
        except AWAY as error:
            where = without_password(self.redis_url)
            raise Unreachable(f"Redis at {where} does not answer ({type(error).__name__})") from error
        if sql:
            self.store.ping()

    def close(self) -> None:
        """Stop beating and close every connection that was opened."""
        built = self.__dict__
        if "runner" in built:
            self.runner.close()
        if "beats" in built:
            self.beats.stop()
        if "judge_beats" in built:
            self.judge_beats.stop()
        if built.get("alone") is not None:
            built["alone"].close()
        if "stops" in built:
            self.stops.close()
        if "store" in built:
            self.store.close()
        if "client" in built:
            self.client.close()
            self.client.connection_pool.disconnect()
