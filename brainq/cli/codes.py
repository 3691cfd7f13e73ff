"""The exit codes of `brainq`, said once."""

from __future__ import annotations

from textwrap import fill

from brainq.error_kinds import Exit, kind_of
from brainq.errors import BrainqError

__all__ = ["HELP", "MEANINGS", "Exit", "of_ending", "of_error"]

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
    return kind_of(error).exit
