"""Build the machines that work after the answer: finalizer steps, judgements, manual retries, and the sender of
webhooks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from brainq.adapters.sql.jobs import JobTable
from brainq.adapters.sql.records import SqlRecords
from brainq.adapters.sql.store import Store
from brainq.app.wiring.services import configured_webhooks
from brainq.contracts.callbacks import TurnInfo
from brainq.contracts.status import WorkFailure
from brainq.contracts.view import EndedTurn
from brainq.engine.brain.brain import Brain
from brainq.engine.brain.brains import Brains, unknown_brain
from brainq.engine.finalize.finalizer import TurnFinalizer
from brainq.engine.finalize.late_steps import LateSteps
from brainq.engine.finalize.recall import Recall
from brainq.engine.finalize.rerun import StepRerunner
from brainq.engine.finalize.step_order import FinalizerRuntime, StepOrder
from brainq.engine.finalize.steps import (
    AppendCitations,
    CallTurnEnd,
    CallUsage,
    FinalStep,
    FinalStepRunner,
    LogAnswer,
    RecordDecision,
    RunInQuarantine,
    SendResult,
)
from brainq.engine.jobs import JobRunner
from brainq.engine.memory.judge_runner import JudgeRunner, JudgeRuntime
from brainq.engine.memory.steps import (
    ExtractMemories,
    MemoryServices,
    ObserveTurn,
    ScheduleJudges,
    make_memory_services,
)
from brainq.engine.models.asking.rate_permit import PermitPolicy
from brainq.engine.models.auxiliary import AuxiliaryModel
from brainq.engine.models.costs import cost_usd
from brainq.engine.models.providers import resolve_model
from brainq.engine.people.webhook_delivery import WebhookSender
from brainq.engine.turn.begin import system_prompt_of
from brainq.engine.turn.prompt.request_messages import render_hash
from brainq.engine.turn.reflection import PREFIXES
from brainq.errors import BrainqError, InvalidInput
from brainq.runtime.observe.logs import logger
from brainq.runtime.processes.later_threads import LATER_THREADS
from brainq.runtime.settings.deployment import Settings

if TYPE_CHECKING:
    from brainq.app.wiring.wiring import Wiring

log = logger("brainq.wiring")


def steps_of(brain: Brain, memory: MemoryServices, more: Sequence[FinalStep] = ()) -> list[FinalStep]:
    """Return the finalizer steps of this brain in their order, without steps that are not configured. `more` come
    before the last one."""
    steps: list[FinalStep] = [
        AppendCitations(),
        CallUsage(),
        LogAnswer(),
        SendResult(),
        ExtractMemories(memory),
        ObserveTurn(memory),
        ScheduleJudges(),
        RecordDecision(),
    ]
    return [step for step in (*steps, *more, CallTurnEnd()) if step.is_configured(brain)]


def make_sender(settings: Settings, store: Store) -> WebhookSender:
    return WebhookSender(webhooks=configured_webhooks(settings), rows=store.deliveries, request_of=store.turns.request)


def make_finalizer(wiring: Wiring, quarantine: RunInQuarantine | None) -> TurnFinalizer:
    """Build the finalizer.

    quarantine   runs a step that may kill its worker in another process; None in such a process
    """
    late = LateSteps(
        brains=wiring.brains.each(partial(finalizer_runtime, wiring=wiring)),
        rows=wiring.store.step_jobs,
        records=SqlRecords(wiring.store, configured_webhooks(wiring.settings)),
        recall=make_recall(wiring),
        steps=FinalStepRunner(quarantine),
        jobs=_job_runner(wiring, wiring.store.step_jobs, WorkFailure.STEP_FAILED),
        parents=wiring.people.children,
    )
    return TurnFinalizer(
        owner=wiring.owner,
        late=late,
        missing=_unknown_brain_runtime(),
        chain=wiring.state.finals,
        beats=wiring.beats,
        later=LATER_THREADS,
    )


def make_judge_runner(wiring: Wiring) -> JudgeRunner:
    return JudgeRunner(
        brains=wiring.brains.each(partial(judge_runtime, wiring=wiring)),
        brain_of=wiring.turn_brains.name,
        rows=wiring.store.judgements,
        recorded=make_recall(wiring).recorded,
        bells=wiring.state.finals,
        jobs=_job_runner(wiring, wiring.store.judgements, WorkFailure.JUDGE_FAILED),
        places=max(1, wiring.settings.concurrency.finalizer // 2),
        stops=wiring.state.stop_switch,
    )


def _job_runner(wiring: Wiring, rows: JobTable, failure: WorkFailure) -> JobRunner:
    return JobRunner(rows=rows, lease_s=wiring.settings.lease_s, failure=failure, beats=wiring.job_beats)


def make_rerunner(wiring: Wiring) -> StepRerunner:
    return StepRerunner(
        late=wiring.finalizer.late,
        brain_of=wiring.turn_brains.name,
        steps=wiring.store.steps.of_turn,
        judgements=wiring.store.judgements,
        judges=wiring.judge_runner,
    )


def make_recall(wiring: Wiring) -> Recall:
    store = wiring.store
    return Recall(
        wiring.state.finals,
        store.turns,
        store.transcripts.of_turn,
        store.traces.of_turn,
        wiring.decisions.get,
        partial(_system_prompt, wiring.brains),
    )


def _system_prompt(brains: Brains, turn: EndedTurn) -> str:
    """Return the turn's system prompt. Returns "" if the brain, or the result of its prompt function, has changed."""
    brain = brains.of(turn.request.brain)
    if brain is None:
        return ""
    try:
        info = TurnInfo.from_request(turn.request, turn.turn_number)
        text = turn.request.system_prompt or system_prompt_of(brain, info)
    except InvalidInput:
        return ""
    return text if render_hash(text, PREFIXES[brain.thinking]) == turn.prompt_hash else ""


def finalizer_runtime(brain: Brain, wiring: Wiring | None = None) -> FinalizerRuntime:
    memory = make_memory_services(brain, auxiliary_model(brain, wiring), cost_usd)
    return FinalizerRuntime(brain, StepOrder(steps_of(brain, memory, brain.final_steps)))


def judge_runtime(brain: Brain, wiring: Wiring | None = None) -> JudgeRuntime:
    model = auxiliary_model(brain, wiring)
    return JudgeRuntime(tuple(brain.judges.values()), model, brain.redact_logs, cost_usd, brain.name)


def _unknown_brain_runtime() -> FinalizerRuntime:
    brain = unknown_brain()
    return FinalizerRuntime(brain, StepOrder(steps_of(brain, make_memory_services(brain, None))))


def auxiliary_model(brain: Brain, wiring: Wiring | None) -> AuxiliaryModel | None:
    """Return the model for work after the turn. Returns None if there is no model, so that rules are used instead.

    wiring   provides the model's limits, budgets and stops; None for a model without them
    """
    held: dict[str, Any] = {}
    if wiring is not None:
        permits, budgets = PermitPolicy(wiring.state.rates), wiring.budgets
        held = {"permits": permits, "budgets": budgets, "brain": brain.name, "stops": wiring.state.stop_switch}
    try:
        return AuxiliaryModel(*resolve_model(brain.auxiliary_model or brain.model), **held)
    except BrainqError as failure:
        # A finalizer that does not have the model must still finish turns.
        log.warning("no model is available for extraction and judging, so rules are used", why=str(failure))
        return None
