"""What to say of an error that is not brainq's own."""

from __future__ import annotations

import errno

from brainq.cli.codes import Exit
from brainq.observe.raises import TRACEBACK

_AWAY = ("ConnectionError", "TimeoutError", "BusyLoadingError")
_SERVICES = ("redis", "kombu", "sqlalchemy", "psycopg", "sqlite3")
_FILES = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.ENOTDIR,
}


def said_of(error: Exception) -> tuple[str, Exit]:
    """One sentence with its remedy, and the exit code: a disk, a service that went away, or a bug."""
    said = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}".rstrip(":. ")
    if isinstance(error, OSError) and error.errno in _FILES:
        from brainq.preflight.room import no_room, remedy

        return f"{error.filename or 'the disk'} {no_room(error)}; {remedy(error)}", Exit.SETUP
    source = type(error).__module__.partition(".")[0]
    if source in _SERVICES:
        driver = getattr(error, "orig", None)
        if type(driver).__module__ == "sqlite3" or source == "sqlite3":
            where = "the file that BRAINQ_SQL_URL or BRAINQ_DATA_DIR names, and the room on its disk"
            return f"SQLite reports: {driver or error}; look at {where}", Exit.SETUP
        if source == "redis" and type(error).__name__ in _AWAY:
            return (
                f"Redis went away ({said}); turns go on when it is back, and `brainq doctor` looks",
                Exit.SETUP,
            )
        return f"{source} reports {said}; is it running? `brainq doctor` looks", Exit.SETUP
    return f"{said}; this is a bug in brainq, {TRACEBACK}=1 shows where", Exit.BUG
