"""Each error that leaves brainq, said once: its word, its title, the exit code of `brainq`, the status over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from brainq.errors import (
    AlreadyRuns,
    ApprovalDecided,
    BrainNotLoaded,
    BrainqError,
    ContentNotKept,
    InvalidInput,
    MailboxFull,
    NoParsedOutput,
    NotFound,
    ProviderError,
    QueueFull,
    ResultRefused,
    ResultTimeout,
    SchedulesFull,
    ScriptError,
    SessionBusy,
    SetupError,
    StaleTurn,
    SubmitConflict,
    TokenRefused,
    ToolSchemaError,
    TurnFailed,
    TurnParked,
    TurnRejected,
    Unreachable,
)


class Exit(IntEnum):
    """The exit codes of `brainq`."""

    OK = 0
    FAILED = 1
    USAGE = 2
    TIMED_OUT = 3
    CANCELLED = 4
    NOT_FOUND = 5
    SETUP = 6
    WAITED_OUT = 7
    REFUSED = 8
    BUG = 70
    INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """How one kind of error is told.

    word            for programs: the end of a problem's `type`
    title           for people: what kind of trouble it is, the same each time
    exit            how a command ends by it
    status          how a request is answered
    retry_after_s   the same may work then; None: it will not by itself
    """

    word: str
    title: str
    exit: Exit
    status: int
    retry_after_s: int | None = None


ERROR_KINDS: dict[type[BrainqError], ErrorKind] = {
    InvalidInput: ErrorKind("invalid-input", "A field is wrong", Exit.USAGE, 422),
    NotFound: ErrorKind("not-found", "There is nothing of this id", Exit.NOT_FOUND, 404),
    ContentNotKept: ErrorKind("content-not-kept", "The content is not kept", Exit.FAILED, 410),
    TurnRejected: ErrorKind("turn-rejected", "The turn was refused", Exit.FAILED, 409),
    TurnFailed: ErrorKind("turn-failed", "The turn has no whole answer", Exit.FAILED, 409),
    TurnParked: ErrorKind("turn-parked", "The turn waits for somebody", Exit.REFUSED, 409),
    NoParsedOutput: ErrorKind("no-parsed-output", "No answer fits the schema", Exit.FAILED, 409),
    ResultTimeout: ErrorKind("no-result-yet", "There is no result yet", Exit.WAITED_OUT, 504, 1),
    SessionBusy: ErrorKind("session-busy", "The session has a live turn", Exit.REFUSED, 409),
    MailboxFull: ErrorKind("mailbox-full", "The turn has too much unread input", Exit.REFUSED, 429, 2),
    QueueFull: ErrorKind("queue-full", "Too many turns wait", Exit.REFUSED, 429, 5),
    SchedulesFull: ErrorKind("schedules-full", "The tenant has too many schedules", Exit.REFUSED, 409),
    StaleTurn: ErrorKind("stale-turn", "Another turn is live", Exit.REFUSED, 409),
    ApprovalDecided: ErrorKind("approval-decided", "The approval is decided otherwise", Exit.REFUSED, 409),
    TokenRefused: ErrorKind("token-refused", "No call waits for this token", Exit.REFUSED, 404),
    ResultRefused: ErrorKind("result-refused", "The call takes no result", Exit.REFUSED, 409),
    SubmitConflict: ErrorKind(
        "submit-conflict", "This key was used before with other content", Exit.USAGE, 409
    ),
    ToolSchemaError: ErrorKind("tool-schema", "A tool has no schema", Exit.FAILED, 500),
    ProviderError: ErrorKind("provider", "The model service failed", Exit.FAILED, 502),
    ScriptError: ErrorKind("script", "A script was called wrongly", Exit.FAILED, 500),
    Unreachable: ErrorKind("unreachable", "Redis or SQL does not answer", Exit.SETUP, 503, 2),
    BrainNotLoaded: ErrorKind("brain-not-loaded", "The brain could not be loaded", Exit.SETUP, 503, 30),
    AlreadyRuns: ErrorKind("already-runs", "It runs already", Exit.REFUSED, 503, 30),
    SetupError: ErrorKind("setup", "Something brainq needs is missing", Exit.SETUP, 503, 30),
    BrainqError: ErrorKind("error", "brainq refused it", Exit.FAILED, 500),
}


def kind_of(error: BrainqError) -> ErrorKind:
    """The kind of an error: its own class's, else that of the nearest class above."""
    return next(ERROR_KINDS[cls] for cls in type(error).__mro__ if cls in ERROR_KINDS)
