"""The settling of claimed calls: in SQL (files, intents), then with the middleware, then in Redis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from opentelemetry.trace import INVALID_SPAN, Span

from brainq.contracts.call import ChildTurn, ServerTask, ToolFailure, ToolOutcome, ToolSuccess, ToolTimeout
from brainq.contracts.callbacks import PostToolUse
from brainq.contracts.claim import CallClaim, SettleReply
from brainq.contracts.file import File, FileLimits
from brainq.contracts.message import ToolCall
from brainq.contracts.status import CALL_FAILURES, TraceStatus, WorkFailure, WorkOutcome
from brainq.engine.brain.brain import Brain
from brainq.engine.brain.middleware import notify_hooks
from brainq.engine.calls.function_run import CallReturn
from brainq.engine.calls.intents import IntentGate
from brainq.engine.calls.parking import Parker
from brainq.engine.calls.report import OutcomeReport, make_report, never_started_report, report_failure
from brainq.engine.tools.context import RunContext
from brainq.engine.tools.results import Pending
from brainq.engine.tools.tool import Tool
from brainq.engine.visit import AFTER_CALLS, Visit
from brainq.runtime.leases import LeaseRenewer
from brainq.runtime.observe import telemetry_names as names
from brainq.runtime.observe.logs import logger
from brainq.runtime.observe.spans import end_call
from brainq.runtime.observe.tracing import end_span

if TYPE_CHECKING:
    from brainq.adapters.redis.calls import RedisCalls
    from brainq.adapters.sql.repositories.blobs import Blobs

log = logger("brainq.calls")


@dataclass(frozen=True, slots=True)
class ResultFiles:
    """The store for the files that calls return. Equal bytes are kept once, so storing a file twice is harmless."""

    blobs: Blobs
    limits: FileLimits

    def store(self, claim: CallClaim, outcome: ToolSuccess, files: Sequence[File]) -> ToolSuccess:
        """Store the files and return the outcome with them, or with the reason why they are missing.

        Raises SQL's error if the call is a read, which can be run again. A write has had its effect, so its outcome is
        kept.
        """
        why = self.limits.problem_with(files)
        if not why:
            try:
                self.blobs.keep(claim.session_id, claim.turn_id, files)
            except Exception as failure:
                if claim.effect.is_read:
                    raise
                log.error("files of a result not kept", failure=failure, turn_id=claim.turn_id, call_id=claim.call_id)
                why = "SQL could not be reached"
        if why:
            return outcome.model_copy(update={"files_lost": why})
        return outcome.model_copy(update={"attachments": tuple(file.attachment for file in files)})


@dataclass(eq=False, slots=True)
class ClaimedCall:
    """One attempt at a call, from its claim to its settled result.

    visit       what its thread continues with, or None if it continues with nothing
    span        the call's span, which ends when the call is settled even if its function still runs
    did         the outcome as a word
    has_ended   whether a function that was cut off has ended since
    """

    claim: CallClaim
    tool: Tool
    brain: Brain
    context: RunContext
    visit: Visit | None = None
    span: Span = INVALID_SPAN
    did: str = "not settled"
    has_ended: bool = False

    @property
    def made_by_model(self) -> ToolCall:
        """Return the model's call with the arguments that it runs with."""
        claim = self.claim
        return ToolCall(id=claim.call_id, name=claim.tool, arguments=dict[str, object](claim.arguments))


@dataclass(frozen=True, slots=True)
class CallSettler:
    """The machine that records how calls ended.

    files   stores the files that tools return
    beats   renews the lanes of functions that were cut off and still run
    """

    calls: RedisCalls
    intents: IntentGate
    parker: Parker
    files: ResultFiles
    beats: LeaseRenewer

    def settle(self, call: ClaimedCall, ended: CallReturn) -> str:
        """Settle a call whose function has ended or was cut off: in SQL, then with the brain's middleware, then in
        Redis. Returns the outcome as a word."""
        claim, outputs = call.claim, call.context.outputs()
        # A function that was cut off still runs, whatever outcome is reported.
        still_runs = isinstance(ended, ToolTimeout) and ended.still_running
        if still_runs and claim.lanes:
            self.beats.renew(partial(self._keep_lanes, call), _ignore)
        try:
            if isinstance(ended, Pending | ChildTurn | ServerTask):
                parked = self.parker.park(claim, ended, outputs)
                if isinstance(parked, SettleReply):
                    return _note_settled(call, parked, None)
                ended = parked
            if outputs.files and isinstance(ended, ToolSuccess):
                ended = self.files.store(claim, ended, outputs.files)
            if isinstance(ended, ToolSuccess):
                report = make_report(claim, ended, outputs)
            else:
                report = report_failure(claim, ended, call.context.token, outputs)
            if not claim.effect.is_read:
                self.intents.record(claim, report.outcome)
            if call.brain.hooks.after_call and claim.step > 0:  # the opening wave was not requested by the model
                _notify_hooks(call, report.outcome)
            if call.span.is_recording():
                error_type = report.outcome.error_type if isinstance(report.outcome, ToolFailure) else ""
                result = None if call.brain.redact_logs else report.message.content
                end_call(call.span, report.status, error_type, result)
            # Another thread settles a call that was cut off.
            if call.visit is None or still_runs:
                reply = self.calls.settle(claim, report, still_runs=still_runs)
            else:
                with call.visit.offering(AFTER_CALLS) as offering:
                    reply = self.calls.settle(claim, report, offer=offering.offer)
                    offering.take(reply.opened)
            if reply.word == "LATE" and not claim.effect.is_read:
                self.intents.record(claim, report.outcome, late=True)
            return _note_settled(call, reply, report)
        finally:
            end_span(call.span)

    def settle_late(self, call: ClaimedCall, outcome: ToolOutcome) -> None:
        """Record the outcome of a function that was cut off and has ended since, as evidence, and release its lanes."""
        try:
            if not call.claim.effect.is_read:
                self.intents.record(call.claim, outcome, late=True)
            self.calls.settle(call.claim, make_report(call.claim, outcome))
        finally:
            call.has_ended = True

    def settle_unstarted(self, call: ClaimedCall) -> None:
        """Settle a call that never started. A turn that is being cancelled waits until all of its calls are settled."""
        report = never_started_report(call.claim)
        end_call(call.span, report.status)
        self.calls.settle(call.claim, report)

    def _keep_lanes(self, call: ClaimedCall) -> str:
        """Renew the lanes of a function that was cut off. Returns LOST once the function has ended."""
        return "LOST" if call.has_ended else self.calls.beat_lanes(call.claim.ref)


def _ignore(word: str) -> None:
    """Do nothing: lanes that were released, or taken over after a freeze, need no more heartbeats."""


def _notify_hooks(call: ClaimedCall, outcome: ToolOutcome) -> None:
    claim, hooks = call.claim, call.brain.hooks.after_call
    ended = PostToolUse(claim.turn_id, claim.session_id, call.made_by_model, call.tool.spec, outcome)
    notify_hooks(hooks, claim.turn_id, ended)


def _note_settled(call: ClaimedCall, reply: SettleReply, report: OutcomeReport | None) -> str:
    # A parked write keeps its open intent, because its outcome comes from outside.
    if reply.word == "PARKED":
        end_call(call.span, TraceStatus.PARKED)
    call.did = settled_as(reply.word.lower(), report)
    call.span.set_attribute(names.DID, str(call.did))
    return call.did


def settled_as(word: str, report: OutcomeReport | None) -> WorkOutcome:
    """Return the outcome word. If the call's Celery task is to be shown as failed, the word carries the failure."""
    if word == "lost":  # the sweeper has shown the task as failed, and a success would replace that
        return WorkOutcome(word, WorkFailure.CALL_LOST)
    if report is None:
        return WorkOutcome(word)
    # A failure's detail begins with the name of the error's class; other details may be a tool's own words.
    why = report.detail.partition(" ")[0] if report.status is TraceStatus.FAILED else ""
    return WorkOutcome(word, CALL_FAILURES.get(report.status), why)
