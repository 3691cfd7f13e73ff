"""From an outcome to what is recorded and what the model reads. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
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
