"""How an outcome is reported after a cancel."""

from __future__ import annotations

import pytest

from brainq.contracts.call import ToolFailure, ToolOutcome, ToolSuccess, ToolTimeout, ToolUnknown
from brainq.contracts.claim import CallClaim
from brainq.contracts.status import Effect, TraceStatus
from brainq.engine.calls.report import OutcomeReport, late_notice, make_report, report_failure
from brainq.engine.tools.deadline import DeadlineToken

DIED = ToolFailure(error="ProcessDied: it was killed", error_type="ProcessDied", latency_ms=900)
CUT = ToolTimeout(after_ms=900, still_running=True, latency_ms=900)
GAVE_UP = ToolTimeout(after_ms=900, latency_ms=900)
AT_ONCE = ToolTimeout(after_ms=1)
NOT_STARTED = ToolTimeout(after_ms=0)


def claim_of(effect: Effect) -> CallClaim:
    return CallClaim("s", "turn", "c1-0", 1, "1@w", "tool", effect, 1, {}, "hash", 1000, 1000)


def final_report(claim: CallClaim, outcome: ToolOutcome, token: DeadlineToken) -> OutcomeReport:
    is_success = isinstance(outcome, ToolSuccess)
    return make_report(claim, outcome) if is_success else report_failure(claim, outcome, token)


def cancelled_token() -> DeadlineToken:
    token = DeadlineToken(60.0)
    token.cancel("cancelled")
    return token


@pytest.mark.parametrize(
    ("outcome", "of_read", "of_write", "kept"),
    [
        (CUT, TraceStatus.CANCELLED, TraceStatus.UNKNOWN, "unknown"),
        (GAVE_UP, TraceStatus.CANCELLED, TraceStatus.UNKNOWN, "unknown"),
        (AT_ONCE, TraceStatus.CANCELLED, TraceStatus.UNKNOWN, "unknown"),
        (DIED, TraceStatus.CANCELLED, TraceStatus.UNKNOWN, "unknown"),
        (NOT_STARTED, TraceStatus.CANCELLED, TraceStatus.CANCELLED, "failure"),
        (ToolSuccess(value=1), TraceStatus.COMPLETED, TraceStatus.COMPLETED, "success"),
        (ToolSuccess(value=1, partial=True), TraceStatus.COMPLETED, TraceStatus.COMPLETED, "success"),
        (ToolFailure(error="no", error_type="ValueError"), TraceStatus.FAILED, TraceStatus.FAILED, "failure"),
    ],
    ids=["cut", "gave up", "at once", "died", "not started", "returned", "partial", "raised before"],
)
def test_a_cancelled_call_is_reported_as_what_is_sure(
    outcome: ToolOutcome, of_read: TraceStatus, of_write: TraceStatus, kept: str
) -> None:
    for effect in Effect:
        report = final_report(claim_of(effect), outcome, cancelled_token())
        assert report.status is (of_read if effect.is_read else of_write)
        assert report.outcome.kind == (outcome.kind if effect.is_read else kept)
        assert report.message.is_error is (report.status is not TraceStatus.COMPLETED)


@pytest.mark.parametrize("outcome", [CUT, NOT_STARTED, DIED, ToolSuccess(value=1)])
def test_without_a_cancel_nothing_is_said_of_one(outcome: ToolOutcome) -> None:
    for effect in Effect:
        report = final_report(claim_of(effect), outcome, DeadlineToken(0.0))
        assert report.outcome == outcome
        assert "Cancelled" not in report.message.content


def test_a_change_that_was_stopped_at_its_deadline_is_unknown_and_a_read_has_timed_out() -> None:
    for effect in Effect:
        report = final_report(claim_of(effect), GAVE_UP, DeadlineToken(0.0))
        assert report.status is (TraceStatus.TIMED_OUT if effect.is_read else TraceStatus.UNKNOWN)
        assert report.outcome.kind == ("timeout" if effect.is_read else "unknown")
        assert report.outcome.latency_ms == 900
        assert ("unknown whether this call took effect" in report.message.content) is not effect.is_read


def test_only_a_definite_end_of_a_write_is_news() -> None:
    write, read = claim_of(Effect.NETWORK), claim_of(Effect.READ_ONLY)
    for outcome in (CUT, GAVE_UP, ToolUnknown()):
        assert late_notice(write, outcome) is None
    for outcome in (ToolSuccess(value=1), DIED):
        assert late_notice(write, outcome) is not None
        assert late_notice(read, outcome) is None
