"""The start and the end of calls: intents of those that change something, outcomes in SQL and Redis, files of
results, and middleware.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Literal

from opentelemetry.trace import INVALID_SPAN, Span

from brainq.brain.brain import Brain
from brainq.brain.middleware import notify_hooks
from brainq.calls.attempt import Abandon, CallReturn
from brainq.calls.parking import Parker
from brainq.calls.report import (
    NEVER_STARTED,
    CallReport,
    change_rows,
    late_notice,
    make_report,
    report_failure,
    source_rows,
)
from brainq.contracts.call import ChildTurn, Intent, ServerTask, ToolFailure, ToolOutcome, ToolSuccess, ToolTimeout
from brainq.contracts.callbacks import PostToolUse
from brainq.contracts.claim import CallClaim, SettleReply
from brainq.contracts.file import File, FileLimits
from brainq.contracts.message import ToolCall
from brainq.contracts.status import CALL_FAILURES, TraceStatus, WorkFailure, WorkOutcome
from brainq.leases import LeaseRenewer
from brainq.observe import telemetry_names as names
from brainq.observe.logs import logger
from brainq.observe.metrics import catalogue as m
from brainq.observe.metrics.counters import COUNTERS
from brainq.observe.spans import end_call
from brainq.observe.tracing import end_span
from brainq.ports.people import Brakes
from brainq.ports.redis_calls import Calls
from brainq.ports.sql import Blobs, CallRows
from brainq.tools.context import RunContext, SideOutputs
from brainq.tools.results import Pending
from brainq.tools.tool import Tool

# Starting a call that changes something: its intent, then its leases once more.

log = logger("brainq.calls")

StartWord = Literal["started", "closed", "left"]

"""closed   its turn wants no more calls: it is over, and never started
left     somebody else goes on with it: its lanes are the next attempt's, or were left by whoever gave it up
"""


@dataclass(frozen=True, slots=True)
class IntentGate:
    """Starts such calls, once an attempt at most, and writes down how they ended."""

    brain: Brain
    calls: Calls
    intents: CallRows
    brakes: Brakes | None

    def start(self, claim: CallClaim) -> StartWord:
        """Only after `started` may its function be called."""
        if not self._intend(claim):
            log.warning("call did not start", turn_id=claim.turn_id, call_id=claim.call_id)
            return _not_started_word(self.calls.beat(claim))
        try:
            word = self.calls.start(claim)
        except Exception:
            # Redis is away. The intent is stored, and only we know that nothing came of it: a rescue reads that.
            self.record_outcome(claim, NEVER_STARTED, late=False)
            raise
        if word == "OK":
            return "started"
        self.record_outcome(claim, NEVER_STARTED, late=False)
        return _not_started_word(word)

    def record_outcome(self, claim: CallClaim, outcome: ToolOutcome, *, late: bool) -> None:
        """How a call of those ended; `late`: after it was settled as something else."""
        try:
            self.intents.record_outcome(claim.turn_id, claim.call_id, claim.attempt, outcome, late)
        except Exception as failure:
            # The effect has happened; Redis still gets its result. Only the evidence in SQL is thinner.
            log.error("outcome not recorded in SQL", failure=failure, turn_id=claim.turn_id, call_id=claim.call_id)

    def _intend(self, claim: CallClaim) -> bool:
        """False: a rescue took the call from us, or a brake holds that Redis had lost. Then it is asked for again once
        our lease has lapsed, and meets the brake that was put back."""
        intent = Intent(
            turn_id=claim.turn_id,
            call_id=claim.call_id,
            attempt=claim.attempt,
            session_id=claim.session_id,
            tool=claim.tool,
            effect=claim.effect,
            args_hash=claim.args_hash,
            args_json=None if self.brain.redact_logs else json.dumps(claim.arguments),
            idempotency_key=claim.idempotency_key,
            owner=claim.owner,
        )
        if self.brakes is None:
            return self.intents.start(**intent)
        if self.intents.start_unless_braked(**intent):
            return True
        # What Redis knows of, it has judged when the call was claimed, by its own clock.
        return not self.brakes.restore(claim.session_id, claim.turn_id) and self.intents.start(**intent)


def _not_started_word(word: str) -> StartWord:
    """What a beat says of a call that did not start."""
    return "closed" if word == "CLOSED" else "left"


@dataclass(frozen=True, slots=True)
class ResultFiles:
    """Keeps the files of results. Doing it again is harmless: bytes are kept once."""

    blobs: Blobs
    limits: FileLimits

    def store(self, claim: CallClaim, outcome: ToolSuccess, files: Sequence[File]) -> ToolSuccess:
        """The outcome with its files, or with the reason why they are missing: what was done is done.

        Raises what SQL raises where nothing was changed: the call is run again.
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


# A claimed call from the start of its function to its settled result.


@dataclass(frozen=True, slots=True)
class CallRuntime:
    """What the calls of one brain's tools are run with.

    intents   of calls that change something
    files     keeps what tools return beside a value
    memory    reads what the brain remembers
    """

    brain: Brain
    calls: Calls
    intents: IntentGate
    parker: Parker
    files: ResultFiles
    memory: Tool | None

    def settle(
        self, claim: CallClaim, report: CallReport, outputs: SideOutputs | None = None, *, still_runs: bool = False
    ) -> SettleReply:
        """Record the call's end in Redis, with what the function left beside its result."""
        outcome = report.outcome
        asked_block = isinstance(outcome, ToolSuccess | ToolFailure) and outcome.block_tool
        reply = self.calls.settle(
            claim,
            status=report.status,
            message=report.message,
            detail=report.detail,
            latency_ms=outcome.latency_ms,
            retryable=report.retryable,
            sources=source_rows(outputs, claim.call_id, claim.step) if outputs else (),
            block_tool=asked_block or bool(outputs and outputs.block_tool),
            notice=None if claim.effect.is_read else late_notice(claim, outcome),
            changes=change_rows(outputs) if outputs and outputs.changes else (),
            still_runs=still_runs,
        )
        if reply.word == "LATE":
            COUNTERS.add(m.LATE, claim.effect.value)
        return reply


@dataclass(eq=False, slots=True)
class RunningCall:
    """One call. Where its function is cut off, it is settled in another thread, while the function has this one.

    held   what goes on until the call is settled: beats for its lease, a listener for stops
    span   ends when the call is settled, whatever its function does then
    did    what was done, in a word
    """

    claim: CallClaim
    tool: Tool
    context: RunContext
    work: CallRuntime
    beats: LeaseRenewer
    calls: Calls
    held: ExitStack
    abandon: Abandon
    span: Span = INVALID_SPAN
    did: str = "not settled"
    has_ended: bool = False

    def settle(self, ended: CallReturn) -> str:
        """Its function has ended, or was cut off: SQL, the brain's middlewares and Redis are told, in this order.
        Returns what was done, in a word."""
        claim, work, outputs = self.claim, self.work, self.context.outputs()
        # What was cut off still runs, whatever is reported of it.
        still_runs = isinstance(ended, ToolTimeout) and ended.still_running
        if still_runs and claim.lanes:
            self.beats.renew(self._keep_lanes, _ignore)
        try:
            if isinstance(ended, Pending | ChildTurn | ServerTask):
                parked = work.parker.park(claim, ended, outputs)
                if isinstance(parked, SettleReply):
                    return self._settled_as(parked, None)
                ended = parked
            if outputs.files and isinstance(ended, ToolSuccess):
                ended = work.files.store(claim, ended, outputs.files)
            success = isinstance(ended, ToolSuccess)
            report = make_report(claim, ended) if success else report_failure(claim, ended, self.context.token)
            if not claim.effect.is_read:
                work.intents.record_outcome(claim, report.outcome, late=False)
            if work.brain.hooks.after_call and claim.step > 0:  # what a turn begins with is not the model's tool use
                self._call_hooks(report.outcome)
            error_type = report.outcome.error_type if isinstance(report.outcome, ToolFailure) else ""
            result = None if work.brain.redact_logs else report.message.content
            end_call(self.span, report.status, error_type, result)
            reply = work.settle(claim, report, outputs, still_runs=still_runs)
            if reply.word == "LATE" and not claim.effect.is_read:
                work.intents.record_outcome(claim, report.outcome, late=True)
            return self._settled_as(reply, report)
        finally:
            end_span(self.span)

    def cut_off(self, timeout: ToolTimeout) -> None:
        """The function had its time, and keeps its thread."""
        with self.held:
            self.abandon(partial(self.settle, timeout))

    def end_late(self, outcome: ToolOutcome) -> None:
        """A function that was cut off has ended by itself: its lanes are left, and what it did is evidence."""
        try:
            if not self.claim.effect.is_read:
                self.work.intents.record_outcome(self.claim, outcome, late=True)
            self.work.settle(self.claim, make_report(self.claim, outcome))
        finally:
            self.has_ended = True

    def _settled_as(self, reply: SettleReply, report: CallReport | None) -> str:
        # A write that is parked has its intent open: its outcome is what comes from outside.
        if reply.word == "PARKED":
            end_call(self.span, TraceStatus.PARKED)
        self.did = settled_as(reply.word.lower(), report)
        self.span.set_attribute(names.DID, str(self.did))
        return self.did

    def _call_hooks(self, outcome: ToolOutcome) -> None:
        claim = self.claim
        ended = PostToolUse(claim.turn_id, claim.session_id, model_call(claim), self.tool.spec, outcome)
        notify_hooks(self.work.brain.hooks.after_call, claim.turn_id, ended)

    def _keep_lanes(self) -> str:
        """A beat for the lanes of a function that was cut off, until it has ended."""
        return "LOST" if self.has_ended else self.calls.beat_lanes(self.claim.ref)


def _ignore(word: str) -> None:
    """The lanes were left, or taken from us after a freeze: there is nothing to beat for."""


def model_call(claim: CallClaim) -> ToolCall:
    """The call as the model made it, with the arguments it runs with."""
    return ToolCall(id=claim.call_id, name=claim.tool, arguments=dict[str, object](claim.arguments))


def settled_as(word: str, report: CallReport | None) -> WorkOutcome:
    """What was done, and whether the call's task is to be shown as failed."""
    if word == "lost":  # the sweeper showed it as failed; a success of the same task would stand in its place
        return WorkOutcome(word, WorkFailure.CALL_LOST)
    if report is None:
        return WorkOutcome(word)
    # A failure's detail begins with the name of the error's class; others may be a tool's own words.
    why = report.detail.partition(" ")[0] if report.status is TraceStatus.FAILED else ""
    return WorkOutcome(word, CALL_FAILURES.get(report.status), why)
