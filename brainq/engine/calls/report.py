"""Reports of calls: the outcome that is recorded, and the message that the model reads. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from brainq.contracts.call import (
    NOT_STARTED,
    CallReport,
    ToolDenied,
    ToolFailure,
    ToolOutcome,
    ToolSuccess,
    ToolTimeout,
    ToolUnknown,
)
from brainq.contracts.claim import CallClaim
from brainq.contracts.message import Message
from brainq.contracts.status import TraceStatus
from brainq.engine.tools.context import NO_OUTPUTS, SideOutputs
from brainq.engine.tools.deadline import DeadlineToken
from brainq.engine.tools.results import (
    OutcomeUnknown,
    cancelled_text,
    edited_note,
    outcome_text,
    tool_message,
    unknown_outcome,
    unreported_text,
)

NEVER_STARTED = ToolFailure(
    error="never started: the call was no longer wanted when its turn came", error_type=NOT_STARTED
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeReport(CallReport):
    """The report of a call, together with the outcome that SQL keeps as evidence."""

    outcome: ToolOutcome


def make_report(claim: CallClaim, outcome: ToolOutcome, outputs: SideOutputs = NO_OUTPUTS) -> OutcomeReport:
    """Return the report of a call from its outcome and the side outputs of its function."""
    match outcome:
        case ToolSuccess():
            status, detail = TraceStatus.COMPLETED, "partial" if outcome.partial else ""
        case ToolFailure():
            where = f" at {outcome.where}" if outcome.where else ""
            status, detail = TraceStatus.FAILED, f"{outcome.error_type}{where}"
        case ToolTimeout():
            status, detail = TraceStatus.TIMED_OUT, "still running" if outcome.still_running else ""
        case ToolDenied():
            status, detail = TraceStatus.DENIED, outcome.reason
        case ToolUnknown():
            status, detail = TraceStatus.UNKNOWN, outcome.why or "worker lost"
        case _:
            assert_never(outcome)
    prefix = edited_note(claim.arguments) if claim.edited else ""
    message = tool_message(outcome, claim.call_id, claim.tool, claim.turn_id, claim.step, prefix)
    asks_block = isinstance(outcome, ToolSuccess | ToolFailure) and outcome.block_tool
    return OutcomeReport(
        status,
        message,
        detail,
        outcome.latency_ms,
        outcome.retryable,
        notice=None if claim.effect.is_read else late_notice(claim, outcome),
        block_tool=asks_block or outputs.block_tool,
        sources=[] if outputs is NO_OUTPUTS else source_rows(outputs, claim.call_id, claim.step),
        changes=[change.row() for change in outputs.changes],
        outcome=outcome,
    )


def report_failure(
    claim: CallClaim, outcome: ToolOutcome, token: DeadlineToken, outputs: SideOutputs = NO_OUTPUTS
) -> OutcomeReport:
    """Return the report of a call that did not succeed, with the outcome that is recorded.

    If a cancel cut the call off, the report is `cancelled` for a call that certainly changed nothing. A write that had
    begun is reported as `unknown`, because its outcome is never guessed.
    """
    if token.is_cancelled and _is_cut(outcome):
        return _report_cancelled(claim, outcome, outputs)
    return make_report(claim, _with_doubt(claim, outcome), outputs)


def _is_cut(outcome: ToolOutcome) -> bool:
    """Return whether the outcome was caused by a cancel. The caller has checked that the call's token was cancelled."""
    return (
        isinstance(outcome, ToolTimeout)
        # A child process was killed by the cancel before it could report.
        or (isinstance(outcome, ToolFailure) and outcome.error_type == "ProcessDied")
        or (isinstance(outcome, ToolUnknown) and outcome.why == "ProcessDied")
    )


def _report_cancelled(claim: CallClaim, outcome: ToolOutcome, outputs: SideOutputs) -> OutcomeReport:
    is_read = claim.effect.is_read
    after_ms = outcome.after_ms if isinstance(outcome, ToolTimeout) else max(1, outcome.latency_ms)
    if after_ms == 0:
        report = never_started_report(claim)
        return replace(report, outcome=outcome, latency_ms=outcome.latency_ms) if is_read else report
    unknown = ToolUnknown(message=cancelled_text(after_ms, is_read=is_read), latency_ms=outcome.latency_ms)
    report = make_report(claim, unknown, outputs)
    if is_read:
        detail = make_report(claim, outcome).detail
        return replace(report, outcome=outcome, status=TraceStatus.CANCELLED, detail=detail)
    return replace(report, detail="cancelled")


def never_started_report(claim: CallClaim) -> OutcomeReport:
    """Return the report of a call that was cancelled before its function began."""
    # The message of an unknown outcome is shown as it is, so it can hold this text.
    unknown = ToolUnknown(message=cancelled_text(0, is_read=claim.effect.is_read))
    return replace(
        make_report(claim, unknown),
        outcome=NEVER_STARTED,
        status=TraceStatus.CANCELLED,
        detail="",
        notice=late_notice(claim, NEVER_STARTED),
    )


def _with_doubt(claim: CallClaim, outcome: ToolOutcome) -> ToolOutcome:
    """Return the outcome. It becomes `unknown` for a write that was stopped at its deadline, or gave up, without
    reporting a result. A write that still runs may yet report one, so its outcome stays a timeout."""
    if isinstance(outcome, ToolUnknown) and outcome.why == OutcomeUnknown.__name__:
        return unknown_outcome(outcome, is_read=claim.effect.is_read)
    if claim.effect.is_read or not isinstance(outcome, ToolTimeout):
        return outcome
    if outcome.still_running or outcome.after_ms == 0:
        return outcome
    text = unreported_text(f"it was stopped at its deadline, after {outcome.after_ms / 1000:.1f} s,")
    return ToolUnknown(message=text, why="deadline", latency_ms=outcome.latency_ms)


def late_notice(claim: CallClaim, outcome: ToolOutcome) -> Message | None:
    """Return the notice for the model about a write that ended after its call was given up. Returns None for a read,
    and for an outcome that is neither a success nor a failure."""
    if claim.effect.is_read or not isinstance(outcome, ToolSuccess | ToolFailure):
        return None
    text, _ = outcome_text(outcome)
    arguments = json.dumps(claim.arguments, ensure_ascii=False)[:500]
    word = "succeeded" if isinstance(outcome, ToolSuccess) else "ended with an error"
    return Message(
        role="user",
        content=(
            f"[Notice from the runtime: the earlier call {claim.tool}({arguments}), reported as not finished, "
            f"{word} after all. Its result: {text[:2000]}]"
        ),
        extra={"note": "late write"},
    )


def source_rows(outputs: SideOutputs, call_id: str, step: int) -> list[Mapping[str, str]]:
    """Return citations and rendered paths as rows of the turn. Rows of step 0 are marked, because the model did not
    request that step's calls. Each row names its call, because rows are sorted by the order of the calls and not by
    when they ended."""
    cited = [("local", citation) for citation in outputs.local_citations]
    cited += [("web", citation) for citation in outputs.web_citations]
    rows: list[Mapping[str, str]] = [
        {"kind": kind, "source": citation.source, "title": citation.title, "quote": citation.quote[:500]}
        for kind, citation in cited
    ]
    rows.extend({"kind": "rendered", "source": path} for path in outputs.rendered_paths)
    of_call = {"call": call_id, "opening": "1"} if step == 0 else {"call": call_id}
    return [{**row, **of_call} for row in rows]
