"""From an outcome to what is recorded and what the model reads. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from brainq.contracts.claim import CallClaim
from brainq.contracts.message import Message
from brainq.contracts.outcome import (
    ToolDenied,
    ToolFailure,
    ToolOutcome,
    ToolSuccess,
    ToolTimeout,
    ToolUnknown,
)
from brainq.contracts.status import TraceStatus
from brainq.tools.context import SideOutputs
from brainq.tools.deadline import DeadlineToken
from brainq.tools.outcome_text import outcome_text


def status_of(outcome: ToolOutcome) -> TraceStatus:
    match outcome:
        case ToolSuccess():
            return TraceStatus.COMPLETED
        case ToolFailure():
            return TraceStatus.FAILED
        case ToolTimeout():
            return TraceStatus.TIMED_OUT
        case ToolDenied():
            return TraceStatus.DENIED
        case ToolUnknown():
            return TraceStatus.UNKNOWN
        case _:
            assert_never(outcome)


def detail_of(outcome: ToolOutcome) -> str:
    """A few words for people, without content."""
    match outcome:
        case ToolSuccess():
            return "partial" if outcome.partial else ""
        case ToolFailure():
            return outcome.error_type
        case ToolDenied():
            return outcome.reason
        case ToolTimeout():
            return "still running" if outcome.still_running else ""
        case ToolUnknown():
            return "worker lost"
        case _:
            assert_never(outcome)


def message_of(claim: CallClaim, outcome: ToolOutcome) -> Message:
    """The tool message that answers this call."""
    text, is_error = outcome_text(outcome)
    return Message(
        role="tool",
        content=text,
        call_id=claim.call_id,
        name=claim.tool,
        is_error=is_error,
        turn=claim.turn_id,
        step=claim.step,
    )


@dataclass(frozen=True, slots=True)
class Report:
    """What is recorded of a call's end."""

    status: TraceStatus
    message: Message
    detail: str


def report_of(claim: CallClaim, outcome: ToolOutcome) -> Report:
    return Report(status_of(outcome), message_of(claim, outcome), detail_of(outcome))


def was_cancelled(outcome: ToolOutcome, token: DeadlineToken) -> bool:
    """Whether the call was cut off because its turn no longer wants it, not because its time was up."""
    return isinstance(outcome, ToolTimeout) and token.is_cancelled


def cancelled(claim: CallClaim, outcome: ToolOutcome) -> Report:
    """The report of a call that was cut off by a cancel."""
    effect = "" if claim.effect.is_read else "; whether it took effect is not known"
    said = f"Cancelled after {outcome.latency_ms / 1000:.1f} s{effect}."
    message = message_of(claim, outcome).model_copy(update={"content": said})
    return Report(TraceStatus.CANCELLED, message, detail_of(outcome))


def notice_of(claim: CallClaim, outcome: ToolOutcome) -> Message:
    """What the model reads when a write ends after it was given up."""
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


def sources_of(outputs: SideOutputs) -> list[Mapping[str, str]]:
    """Citations and rendered paths as the rows kept with the turn."""
    cited = [("local", citation) for citation in outputs.local_citations]
    cited += [("web", citation) for citation in outputs.web_citations]
    rows: list[Mapping[str, str]] = [
        {"kind": kind, "source": citation.source, "title": citation.title, "quote": citation.quote[:500]}
        for kind, citation in cited
    ]
    rows.extend({"kind": "rendered", "source": path} for path in outputs.rendered_paths)
    return rows
