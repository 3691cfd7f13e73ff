"""Where an exception was raised: a file and a line, and nothing of what it says."""

from __future__ import annotations

import os
import sysconfig
import traceback

_BRAINQ = os.path.dirname(os.path.dirname(__file__)) + os.sep
_PATHS = sysconfig.get_paths()
_LIBRARIES = tuple(_PATHS[name] + os.sep for name in ("stdlib", "purelib", "platlib"))


def where_raised(failure: BaseException) -> str:
    """`file:line`, relative to the working directory where it lies below that; empty where nothing was run.

    The innermost line of the user's own code; where there is none, of brainq's, and else of any.
    """
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(failure.__traceback__)]
    if not frames:
        return ""
    ours = [found for found in frames if found[0].startswith(_BRAINQ)]
    own = [found for found in frames if is_users(found[0])]
    file, line = (own or ours or frames)[-1]
    return f"{file.removeprefix(os.getcwd() + os.sep)}:{line}"


def is_users(file: str) -> bool:
    """Whether a file is the user's own: not brainq's, not a library's, not made while Python runs."""
    return not file.startswith(("<", _BRAINQ, *_LIBRARIES))
