"""The exit codes of `brainq`, and the sentence it prints for an error that is not brainq's own."""

from __future__ import annotations

import errno
from textwrap import fill

from brainq.errors import BrainqError, ExitCode, kind_of
from brainq.observe.tracebacks import TRACEBACK_VARIABLE

__all__ = ["EXIT_CODE_HELP", "MEANINGS", "ExitCode", "exit_of_ending", "exit_of_error"]

MEANINGS = {
    ExitCode.OK: "completed, or done",
    ExitCode.FAILED: "the turn failed or was rejected; a check of doctor failed; finalize retry failed again",
    ExitCode.USAGE: "wrong usage or input",
    ExitCode.TIMED_OUT: "the turn timed out",
    ExitCode.CANCELLED: "the turn was cancelled",
    ExitCode.NOT_FOUND: "no such turn, approval, hold, token or dead delivery",
    ExitCode.SETUP: "Redis, SQL, the brain, a key, an extra, a port or room on the disk is missing",
    ExitCode.WAITED_OUT: "--timeout-s ran out; the turn goes on",
    ExitCode.REFUSED: "the session is busy, another turn is live, a turn has too much unread input, the approval is "
    "decided otherwise, a token is not taken, or it runs already",
    ExitCode.BUG: "a bug in brainq; BRAINQ_TRACEBACK=1 shows where",
    ExitCode.INTERRUPTED: "Ctrl+C",
}

_INDENT = " " * 7
EXIT_CODE_HELP = "\b\nExit codes:\n" + "\n".join(
    fill(meaning, 78, initial_indent=f"  {code.value:<4} ", subsequent_indent=_INDENT)
    for code, meaning in MEANINGS.items()
)
"""For `--help`."""

_ENDINGS = {
    "completed": ExitCode.OK,
    "failed": ExitCode.FAILED,
    "timed_out": ExitCode.TIMED_OUT,
    "cancelled": ExitCode.CANCELLED,
}
_UNREACHABLE_ERRORS = ("ConnectionError", "TimeoutError", "BusyLoadingError")
_SERVICES = ("redis", "kombu", "sqlalchemy", "psycopg", "sqlite3")
_FILE_ERRNOS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR}


def exit_of_ending(ending: str) -> ExitCode:
    """The code for how a turn ended."""
    return _ENDINGS[ending]


def exit_of_error(error: BrainqError) -> ExitCode:
    """The code for an error that stopped a command."""
    return kind_of(error).exit


def describe_error(error: Exception) -> tuple[str, ExitCode]:
    """One sentence with its remedy, and the exit code: a disk, a service that went away, or a bug."""
    message = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}".rstrip(":. ")
    if isinstance(error, OSError) and error.errno in _FILE_ERRNOS:
        from brainq.wiring.preflight import disk_problem, disk_remedy

        return f"{error.filename or 'the disk'} {disk_problem(error)}; {disk_remedy(error)}", ExitCode.SETUP
    source = type(error).__module__.partition(".")[0]
    if source in _SERVICES:
        driver = getattr(error, "orig", None)
        if type(driver).__module__ == "sqlite3" or source == "sqlite3":
            where = "the file that BRAINQ_SQL_URL or BRAINQ_DATA_DIR names, and the room on its disk"
            return f"SQLite reports: {driver or error}; look at {where}", ExitCode.SETUP
        if source == "redis" and type(error).__name__ in _UNREACHABLE_ERRORS:
            return (
                f"Redis went away ({message}); turns go on when it is back; `brainq doctor` checks it",
                ExitCode.SETUP,
            )
        return f"{source} reports {message}; is it running? `brainq doctor` checks it", ExitCode.SETUP
    return f"{message}; this is a bug in brainq, {TRACEBACK_VARIABLE}=1 shows where", ExitCode.BUG
