"""Rescues of lost calls: whether a call whose worker stopped beating runs again, or how it ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from opentelemetry.trace import INVALID_SPAN, Span

from brainq.contracts.call import (
    NOT_STARTED,
    ToolFailure,
    ToolOutcome,
    ToolSuccess,
    ToolTimeout,
    ToolUnknown,
)
from brainq.contracts.claim import CallFacts, CallRef
from brainq.contracts.rows import VoidResult, read_outcome
from brainq.contracts.status import CALL_FAILURES, Effect, TraceStatus, WorkFailure, WorkOutcome
from brainq.engine.tools.results import tool_message
from brainq.runtime.observe import telemetry_names as names
from brainq.runtime.observe.logs import logger
from brainq.runtime.observe.metrics import catalogue as m
from brainq.runtime.observe.metrics.counters import COUNTERS
from brainq.runtime.observe.spans import end_call, rescue_span
from brainq.runtime.observe.tracing import in_span, tracer
from brainq.runtime.observe.work_events import UNWATCHED, WorkEvents

if TYPE_CHECKING:
    from brainq.adapters.redis.calls import RedisCalls
    from brainq.adapters.sql.repositories.calls import Calls

log = logger("brainq.upkeep")
RESCUED = frozenset({"again", "settled"})  # set only by the rescue that acted, not by later ones
WORKERS_LOST = ToolFailure(error="its workers were lost each time it ran", error_type="WorkerLost", retryable=True)
UNKNOWN = ToolUnknown(
    message="The worker that ran this call was lost. It may or may not have taken effect; check before repeating it."
)


def rescue_verdict(
    effect: Effect, idempotent: bool, attempt: int, max_attempts: int, started: str, outcome_json: str | None
) -> ToolOutcome | None:
    """Return the outcome with which a lapsed call is settled, or None if its next attempt is dispatched. Pure.

    A read runs again, and so does a call that never started. A call that started runs again only if its tool is
    idempotent. Otherwise its outcome is the one that SQL recorded, or unknown.

    started: the state of a non-read call's intent in SQL: `void`, `started` or `done`.
    """
    if started == "done" and outcome_json:
        outcome = read_outcome(outcome_json)
        if isinstance(outcome, ToolTimeout) and outcome.after_ms > 0:
            return UNKNOWN  # it was abandoned, and cannot report its outcome any more
        if not (isinstance(outcome, ToolFailure) and outcome.error_type == NOT_STARTED):
            return outcome
        started = "void"  # its worker wrote the intent, and then did not start the call
    # An earlier attempt of an idempotent tool may have started, even if this one did not.
    surely_without_effect = effect.is_read or (started == "void" and not idempotent)
    if attempt < max_attempts and (surely_without_effect or idempotent):
        return None
    return WORKERS_LOST if surely_without_effect else UNKNOWN


@dataclass(eq=False, kw_only=True)
class Rescuer:
    """The rescue of lapsed calls: it decides how a call continues, and carries that out."""

    calls: RedisCalls
    intents: Calls
    max_attempts: int

    def rescue(self, ref: CallRef, attempt: int, watchers: WorkEvents = UNWATCHED) -> str:
        """Rescue the call, and return what was done in one word, such as `again` or `settled`.

        Returns `gone` if the attempt is no longer running.
        """
        facts = self.calls.facts(ref)
        if facts is None or facts.status is not TraceStatus.RUNNING or facts.attempt != attempt:
            return "gone"
        if tracer() is None:
            return self._rescue(ref, attempt, facts, INVALID_SPAN, watchers)
        with in_span(rescue_span(ref, self.calls.traceparent(ref), attempt, facts.tool)) as span:
            return self._rescue(ref, attempt, facts, span, watchers)

    def _rescue(self, ref: CallRef, attempt: int, facts: CallFacts, span: Span, watchers: WorkEvents) -> str:
        tool, effect, idempotent, step = facts.tool, facts.effect, facts.idempotent, facts.step
        started, outcome_json = "void", None
        if not effect.is_read:
            verdict = self._claim_intent(ref, attempt, tool, effect)
            started, outcome_json = verdict.state, verdict.outcome_json
            if started == "void" and facts.has_begun:
                started = "started"  # Redis lets a call begin only after its intent: a failover of SQL has lost that
        rung_again_ms = self.calls.rung_again_ms(ref)
        outcome = rescue_verdict(effect, idempotent, attempt, self.max_attempts, started, outcome_json)
        did = "dispatched again" if outcome is None else f"given up as {_status(outcome).value}"
        log.warning("call rescued", turn_id=ref.turn_id, call_id=ref.call_id, effect=effect, did=did)
        if outcome is None:
            did = WorkOutcome(self.calls.dispatch_again(ref, attempt).lower(), WorkFailure.CALL_LOST)
        else:
            end_call(span, _status(outcome))
            did = self._give_up(ref, attempt, tool, step, outcome)
        span.set_attribute(names.DID, did)
        if did in RESCUED:
            COUNTERS.add(m.LAPSED, "call")
            watchers.call(ref, attempt, tool, did, rung_again_ms)
        return did

    def _claim_intent(self, ref: CallRef, attempt: int, tool: str, effect: Effect) -> VoidResult:
        """Insert a void row for the attempt, which decides whether it started.

        If the row can be inserted, the call never started and never will. If its intent reached SQL after the worker
        had given the call up, Redis can prove that nothing followed, and the intent becomes void as well.
        """

        def insert() -> VoidResult:
            return self.intents.void(
                turn_id=ref.turn_id,
                call_id=ref.call_id,
                attempt=attempt,
                session_id=ref.session_id,
                tool=tool,
                effect=effect,
            )

        verdict = insert()
        if verdict.state == "started" and self.calls.fence_unstarted(ref, attempt, verdict.owner):
            self.intents.void_unstarted(ref.turn_id, ref.call_id, attempt)
            return insert()
        return verdict

    def _give_up(self, ref: CallRef, attempt: int, tool: str, step: int, outcome: ToolOutcome) -> WorkOutcome:
        status = _status(outcome)
        reply = self.calls.give_up(
            ref,
            attempt,
            status=status,
            message=tool_message(outcome, ref.call_id, tool, ref.turn_id, step),
            detail="worker lost",
            retryable=outcome.retryable,
            outcome=outcome,
        )
        return WorkOutcome(reply.word.lower(), CALL_FAILURES.get(status))


def _status(outcome: ToolOutcome) -> TraceStatus:
    match outcome:
        case ToolSuccess():
            return TraceStatus.COMPLETED
        case ToolUnknown():
            return TraceStatus.UNKNOWN
        case ToolTimeout():
            return TraceStatus.TIMED_OUT
        case _:
            return TraceStatus.FAILED
