"""Recording how calls ended: in SQL, in Redis, and to the brain's hook."""

from __future__ import annotations

from dataclasses import dataclass

from brainq.brain import Brain
from brainq.calls.ended import Ended
from brainq.calls.files import ResultFiles
from brainq.calls.parking import Parker
from brainq.calls.report import Report, changes_of, ending_of, notice_of, report_of, sources_of
from brainq.calls.start import Starts
from brainq.contracts.callbacks import PostToolUse
from brainq.contracts.child_turn import ChildTurn
from brainq.contracts.claim import CallClaim, SettleReply
from brainq.contracts.did import OF_CALL, Did, Failed
from brainq.contracts.message import ToolCall
from brainq.contracts.outcome import ToolFailure, ToolOutcome, ToolSuccess, ToolTimeout
from brainq.contracts.server_task import ServerTask
from brainq.contracts.status import TraceStatus
from brainq.observe.logs import logger
from brainq.observe.metrics import catalogue as m
from brainq.observe.metrics.counters import COUNTERS
from brainq.ports.calls import Calls
from brainq.tools.context import RunContext, SideOutputs
from brainq.tools.pending import Pending
from brainq.tools.tool import Tool

log = logger("brainq.calls")


@dataclass(frozen=True, slots=True)
class CallSettler:
    """Settles calls. `starts` has the intents of those that change something, `files` keeps what they return."""

    brain: Brain
    calls: Calls
    starts: Starts
    parker: Parker
    files: ResultFiles

    def end(self, claim: CallClaim, tool: Tool, context: RunContext, ended: Ended) -> Did:
        """Its function has ended, or was cut off. Returns what was done, in a word."""
        outputs = context.outputs()
        if isinstance(ended, Pending | ChildTurn | ServerTask):
            parked = self.parker.park(claim, ended, outputs)
            if isinstance(parked, SettleReply):
                # A write's intent stays open: its outcome is what comes from outside.
                return did_of(parked.word.lower(), None)
            ended = parked
        if outputs.files and isinstance(ended, ToolSuccess):
            ended = self.files.kept(claim, ended, outputs.files)
        outcome, report = ending_of(claim, ended, context.token)
        if not claim.effect.is_read:
            self.starts.record(claim, outcome, late=False)
        if self.brain.callbacks.on_post_tool_use is not None:
            self._tell(claim, tool, outcome)
        # What was cut off still runs, whatever is said of it.
        still_runs = isinstance(ended, ToolTimeout) and ended.still_running
        reply = self.settle(claim, outcome, report, outputs, still_runs=still_runs)
        if reply.word == "LATE" and not claim.effect.is_read:
            self.starts.record(claim, outcome, late=True)
        return did_of(reply.word.lower(), report)

    def end_late(self, claim: CallClaim, outcome: ToolOutcome) -> None:
        """A function that was cut off has ended by itself: its lanes are left, and what it did is evidence."""
        if not claim.effect.is_read:
            self.starts.record(claim, outcome, late=True)
        self.settle(claim, outcome, report_of(claim, outcome))

    def settle(
        self,
        claim: CallClaim,
        outcome: ToolOutcome,
        report: Report,
        outputs: SideOutputs | None = None,
        *,
        still_runs: bool = False,
    ) -> SettleReply:
        """Record it in Redis, with what the function left beside its result."""
        asked_block = isinstance(outcome, ToolSuccess | ToolFailure) and outcome.block_tool
        reply = self.calls.settle(
            claim,
            status=report.status,
            message=report.message,
            detail=report.detail,
            latency_ms=outcome.latency_ms,
            retryable=report.retryable,
            sources=sources_of(outputs, claim.call_id, claim.step) if outputs else (),
            block_tool=asked_block or bool(outputs and outputs.block_tool),
            notice=None if claim.effect.is_read else notice_of(claim, outcome),
            changes=changes_of(outputs) if outputs and outputs.changes else (),
            still_runs=still_runs,
        )
        if reply.word == "LATE":
            COUNTERS.add(m.LATE, claim.effect.value)
        return reply

    def _tell(self, claim: CallClaim, tool: Tool, outcome: ToolOutcome) -> None:
        hook = self.brain.callbacks.on_post_tool_use
        # What a turn begins with is not a tool use of the model's.
        if hook is None or claim.step == 0:
            return
        call = ToolCall(id=claim.call_id, name=claim.tool, arguments=dict[str, object](claim.arguments))
        try:
            hook(PostToolUse(claim.turn_id, claim.session_id, call, tool.spec, outcome))
        except Exception as failure:
            log.error(
                "on_post_tool_use raised", failure=failure, turn_id=claim.turn_id, call_id=claim.call_id
            )


def did_of(word: str, report: Report | None) -> Did:
    """What was done, and whether the call's task is to be shown as failed."""
    if word == "lost":  # the sweeper showed it as failed; a success of the same task would stand in its place
        return Did(word, Failed.CALL_LOST)
    if report is None:
        return Did(word)
    # A failure's detail begins with the name of the error's class; others may be a tool's own words.
    why = report.detail.partition(" ")[0] if report.status is TraceStatus.FAILED else ""
    return Did(word, OF_CALL.get(report.status), why)
