"""Builds what works after the answer: finalizer steps, judgements, and their retries by hand."""

from __future__ import annotations

from functools import partial

from brainq.beats import Beats
from brainq.brain import Brain
from brainq.brains import unknown_brain
from brainq.broker.later import LATER_THREADS
from brainq.errors import BrainqError
from brainq.finalize.alone import RunAlone
from brainq.finalize.brain_finals import BrainFinals
from brainq.finalize.brain_judges import BrainJudges
from brainq.finalize.finalizer import TurnFinalizer
from brainq.finalize.judging import JudgeRunner
from brainq.finalize.order import StepOrder
from brainq.finalize.parts import final_parts
from brainq.finalize.recall import Recall
from brainq.finalize.retry import StepRetrier
from brainq.finalize.steps import steps_of
from brainq.finalize.traced import TracedFinalizer
from brainq.observe.logs import logger
from brainq.observe.tracing import tracer
from brainq.providers.auxiliary import AuxiliaryModel
from brainq.providers.places import Taking
from brainq.providers.pricing import cost_usd
from brainq.providers.resolve import resolve_model
from brainq.store.records import SqlRecords
from brainq.wiring.before import Before
from brainq.wiring.decisions import DecisionReader
from brainq.wiring.parts import Parts
from brainq.wiring.webhooks import webhooks_of

log = logger("brainq.wiring")


def make_finalizer(parts: Parts, alone: RunAlone | None) -> TurnFinalizer:
    """
    alone   where steps run that may be what kills their workers; None: in this very process
    """
    kind = TurnFinalizer if tracer() is None else TracedFinalizer
    return kind(
        owner=parts.owner,
        brains=parts.brains.each(partial(finals_of, taking=Taking(parts.state.rates))),
        missing=_missing(),
        chain=parts.state.finals,
        records=SqlRecords(parts.store, webhooks_of(parts.settings)),
        beats=parts.beats,
        parents=parts.people.children,
        alone=alone,
        later=LATER_THREADS,
    )


def make_judge_runner(parts: Parts, beats: Beats) -> JudgeRunner:
    """
    beats   renews the judgements' leases, which are in SQL
    """
    return JudgeRunner(
        brains=parts.brains.each(partial(judges_of, taking=Taking(parts.state.rates))),
        brain_of=parts.turn_brains.name,
        rows=parts.store.judgements,
        recorded=make_recall(parts).recorded,
        beats=beats,
        lease_s=parts.settings.lease_s,
        places=max(1, parts.settings.concurrency.finalizer // 2),
    )


def make_retrier(parts: Parts, judges: JudgeRunner) -> StepRetrier:
    return StepRetrier(
        brains=parts.brains.each(partial(finals_of, taking=Taking(parts.state.rates))),
        brain_of=parts.turn_brains.name,
        chain=parts.state.finals,
        records=SqlRecords(parts.store, webhooks_of(parts.settings)),
        steps=parts.store.steps.of,
        judgements=parts.store.judgements,
        recall=make_recall(parts),
        judges=judges,
        parents=parts.people.children,
    )


def make_recall(parts: Parts) -> Recall:
    store = parts.store
    return Recall(
        parts.state.finals,
        store.turns,
        store.transcripts.of,
        store.traces.of,
        DecisionReader(parts.turn_brains, store.decisions).get,
        Before(parts.brains, store.turns),
    )


def finals_of(brain: Brain, taking: Taking | None = None) -> BrainFinals:
    order = StepOrder(steps_of(brain, brain.final_steps))
    return BrainFinals(brain, order, final_parts(brain, auxiliary_model(brain, taking), cost_usd))


def judges_of(brain: Brain, taking: Taking | None = None) -> BrainJudges:
    model = auxiliary_model(brain, taking)
    return BrainJudges(tuple(brain.judges.values()), model, brain.redact_logs, cost_usd)


def _missing() -> BrainFinals:
    brain = unknown_brain()
    return BrainFinals(brain, StepOrder(steps_of(brain)), final_parts(brain, None))


def auxiliary_model(brain: Brain, taking: Taking | None) -> AuxiliaryModel | None:
    """The model beside the steps of a turn that is over; None: what would ask it goes by rules."""
    try:
        return AuxiliaryModel(*resolve_model(brain.auxiliary_model or brain.model), taking)
    except BrainqError as failure:
        # A finalizer that does not know the model must still finish turns.
        log.warning("no model to extract and judge with", why=str(failure))
        return None
