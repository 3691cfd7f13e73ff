"""The exit codes of `brainq`, said once."""

from __future__ import annotations

from enum import IntEnum
from textwrap import fill

from brainq.errors import (
    AlreadyRuns,
    ApprovalDecided,
    BrainqError,
    InvalidInput,
    MailboxFull,
    ResultTimeout,
    SessionBusy,
    SetupError,
    StaleTurn,
    SubmitConflict,
    TokenRefused,
    TurnNotFound,
)


class Exit(IntEnum):
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


MEANINGS = {
    Exit.OK: "completed, or done",
    Exit.FAILED: "the turn failed or was rejected; a check of doctor failed; finalize retry failed again",
    Exit.USAGE: "wrong usage or input",
    Exit.TIMED_OUT: "the turn timed out",
    Exit.CANCELLED: "the turn was cancelled",
    Exit.NOT_FOUND: "no such turn, approval, hold, token or dead delivery",
    Exit.SETUP: "Redis, SQL, the brain, a key, an extra, a port or room on the disk is missing",
    Exit.WAITED_OUT: "--timeout-s ran out; the turn goes on",
    Exit.REFUSED: "the session is busy, another turn is live, a turn has too much unread input, the approval is "
    "decided otherwise, a token is not taken, or it runs already",
    Exit.BUG: "a bug in brainq; BRAINQ_TRACEBACK=1 shows where",
    Exit.INTERRUPTED: "Ctrl+C",
}

_INDENT = " " * 7
HELP = "\b\nExit codes:\n" + "\n".join(
    fill(meaning, 78, initial_indent=f"  {code.value:<4} ", subsequent_indent=_INDENT)
    for code, meaning in MEANINGS.items()
)
"""For `--help`."""

_ENDINGS = {
    "completed": Exit.OK,
    "failed": Exit.FAILED,
    "timed_out": Exit.TIMED_OUT,
    "cancelled": Exit.CANCELLED,
}


def of_ending(ending: str) -> Exit:
    """The code for how a turn ended."""
    return _ENDINGS[ending]


def of_error(error: BrainqError) -> Exit:
    """The code for an error that stopped a command."""
    match error:
        case InvalidInput() | SubmitConflict():
            return Exit.USAGE
        case TurnNotFound():
            return Exit.NOT_FOUND
        case SessionBusy() | StaleTurn() | MailboxFull() | ApprovalDecided() | AlreadyRuns() | TokenRefused():
            return Exit.REFUSED
        case SetupError():
            return Exit.SETUP
        case ResultTimeout():
            return Exit.WAITED_OUT
        case _:
            return Exit.FAILED
