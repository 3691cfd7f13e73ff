"""Whether a directory takes files."""

from __future__ import annotations

import errno
import tempfile
from pathlib import Path

from brainq.preflight.check import Check, fail, ok

PROBE_BYTES = 1_000_000

_FULL = {errno.ENOSPC, errno.EDQUOT}


def check_room(directory: Path) -> Check:
    """Whether a megabyte can be written there. Nothing is left behind, and the directory is not made."""
    there = directory.absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    try:
        with tempfile.TemporaryFile(dir=there) as probe:
            probe.write(b"\0" * PROBE_BYTES)
            probe.flush()
    except OSError as error:
        return fail("disk", f"{directory.absolute()} {no_room(error)}", remedy(error))
    return ok("disk", f"{directory.absolute()} can be written")


def no_room(error: OSError) -> str:
    """What an error of the file system means, to be said after a path."""
    if error.errno in _FULL:
        return f"is on a disk that is full ({error.strerror})"
    return f"cannot be written ({error.strerror})"


def remedy(error: OSError) -> str:
    return "free some room there" if error.errno in _FULL else "use a directory of yours: set BRAINQ_DATA_DIR"
