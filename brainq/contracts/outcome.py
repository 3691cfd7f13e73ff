"""How a call ended. A closed union: every reader matches all five."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from brainq.contracts.attachment import Attachment
from brainq.contracts.base import Wire

DenialReason = Literal[
    "duplicate", "blocked", "pre_hook", "validation", "budget", "approval", "hold", "cut", "too_many"
]


class ToolSuccess(Wire):
    """The function returned. `partial` says that a cooperative tool stopped early and gave what it had.

    attachments   the files it returned, once they are kept
    files_lost    why they were not kept
    """

    kind: Literal["success"] = "success"
    value: JsonValue = None
    partial: bool = False
    latency_ms: int = 0
    retryable: bool = False
    block_tool: bool = False  # the tool asked not to be called again in this turn
    attachments: tuple[Attachment, ...] = ()
    files_lost: str = ""


class ToolFailure(Wire):
    """The function raised, or its process died. `error` is one line for the model.

    own_words   `error` is what the tool wrote for the model, of any length
    where       `file:line` of the raise, for people; empty where that is not known
    """

    kind: Literal["failure"] = "failure"
    error: str
    error_type: str = ""
    latency_ms: int = 0
    retryable: bool = False
    block_tool: bool = False
    own_words: bool = False
    where: str = ""


NOT_STARTED = "brainq.NotStarted"
"""The `error_type` of a call whose intent stands in SQL and whose function was surely never called. No exception's name
has a dot, so no tool can say this."""


class ToolTimeout(Wire):
    """The deadline passed first. A function that ignores its token may still be running."""

    kind: Literal["timeout"] = "timeout"
    after_ms: int
    still_running: bool = False
    latency_ms: int = 0
    retryable: bool = True


class ToolDenied(Wire):
    """A gate refused the call before it started. `repairs` of its arguments were tried."""

    kind: Literal["denied"] = "denied"
    reason: DenialReason
    message: str = ""
    repairs: int = 0
    latency_ms: int = 0
    retryable: bool = False


class ToolUnknown(Wire):
    """A non-read call started and did not report its end: it may or may not have taken effect.

    why   a word for people: what kept it from reporting; empty: its worker was lost
    """

    kind: Literal["unknown"] = "unknown"
    message: str = ""
    why: str = ""
    latency_ms: int = 0
    retryable: bool = False


ToolOutcome = Annotated[
    ToolSuccess | ToolFailure | ToolTimeout | ToolDenied | ToolUnknown, Field(discriminator="kind")
]


def attachments_of(outcome: ToolOutcome) -> tuple[Attachment, ...]:
    """The files that came with it."""
    return outcome.attachments if isinstance(outcome, ToolSuccess) else ()
