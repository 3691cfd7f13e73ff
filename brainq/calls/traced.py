"""Calls in a process whose spans somebody records."""

from __future__ import annotations

from dataclasses import dataclass

from brainq.calls.brain_calls import BrainCalls
from brainq.calls.ended import Ended
from brainq.calls.report import Report
from brainq.calls.run import NOT_STARTED, CallRunner
from brainq.calls.running import RunningCall
from brainq.calls.settle import CallSettler
from brainq.contracts.claim import CallClaim, SettleReply
from brainq.contracts.did import Did
from brainq.contracts.outcome import ToolFailure, ToolOutcome
from brainq.contracts.status import TraceStatus
from brainq.observe import telemetry_names as names
from brainq.observe.content import keeping_out
from brainq.observe.tracing import Span
from brainq.observe.turn_spans import call_span, end_call
from brainq.tools.context import RunContext, SideOutputs
from brainq.tools.tool import Tool


@dataclass(frozen=True, slots=True)
class TracedSettler(CallSettler):
    """Settles one attempt by `plain`. `span` ends when it is settled, whatever its function does then."""

    plain: CallSettler
    span: Span

    def end(self, claim: CallClaim, tool: Tool, context: RunContext, ended: Ended) -> Did:
        try:
            did = CallSettler.end(self, claim, tool, context, ended)
            if did == TraceStatus.PARKED:
                end_call(self.span, TraceStatus.PARKED)
            self.span.note({names.DID: str(did)})
            return did
        finally:
            self.span.end()

    def end_late(self, claim: CallClaim, outcome: ToolOutcome) -> None:
        self.plain.end_late(claim, outcome)

    def settle(
        self,
        claim: CallClaim,
        outcome: ToolOutcome,
        report: Report,
        outputs: SideOutputs | None = None,
        *,
        still_runs: bool = False,
    ) -> SettleReply:
        error_type = outcome.error_type if isinstance(outcome, ToolFailure) else ""
        said = None if self.brain.redact_logs else report.message.content
        end_call(self.span, report.status, error_type, said)
        return self.plain.settle(claim, outcome, report, outputs, still_runs=still_runs)


class TracedCallRunner(CallRunner):
    """Opens a span for each attempt at a call."""

    def _start(self, work: BrainCalls, call: RunningCall, *, runs_alone: bool) -> str:
        redacts = work.brain.redact_logs
        span, plain = call_span(call.claim, work.brain.name, content=not redacts), call.settler
        call.settler = TracedSettler(
            plain.brain, plain.calls, plain.starts, plain.parker, plain.files, plain, span
        )
        with span, keeping_out(redacts):
            did = super()._start(work, call, runs_alone=runs_alone)
            if did == NOT_STARTED:
                span.note({names.DID: did})
            return did
