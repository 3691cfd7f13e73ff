"""Where the user's code raised: a file and a line for logs, and the whole traceback for developers."""

from __future__ import annotations

import os
import sys
import sysconfig
import traceback

from brainq.errors import BrainqError
from brainq.text.failures import leaves

_BRAINQ = os.path.dirname(os.path.dirname(__file__)) + os.sep
_PATHS = sysconfig.get_paths()
_LIBRARIES = tuple(_PATHS[name] + os.sep for name in ("stdlib", "purelib", "platlib"))
TRACEBACK_VARIABLE = "BRAINQ_TRACEBACK"
"""Set by `brainq dev` for its workers. A traceback's last line may quote content, so no log has it."""


def where_raised(failure: BaseException) -> str:
    """`file:line`, relative to the working directory where it lies below that; empty where nothing was run.

    The innermost line of the user's own code; where there is none, of brainq's, and else of any. Of a group, the line
    of its first leaf.
    """
    failure = next(leaves(failure))
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(failure.__traceback__)]
    if not frames:
        return ""
    ours = [frame for frame in frames if frame[0].startswith(_BRAINQ)]
    own = [frame for frame in frames if is_user_code(frame[0])]
    file, line = (own or ours or frames)[-1]
    return f"{file.removeprefix(os.getcwd() + os.sep)}:{line}"


def is_user_code(file: str) -> bool:
    """Whether a file is the user's own: not brainq's, not a library's, not made while Python runs."""
    return not file.startswith(("<", _BRAINQ, *_LIBRARIES))


def user_traceback(failure: BaseException) -> str:
    """From the first line of the user's code on, with the message; empty where none of it was run.

    What brainq refuses ends with the user's line that asked for it: how it was refused tells nothing.
    """
    frames = traceback.extract_tb(failure.__traceback__)
    users = [index for index, frame in enumerate(frames) if is_user_code(frame.filename)]
    if not users and not isinstance(failure, SyntaxError):
        return ""
    end = users[-1] + 1 if users and isinstance(failure, BrainqError) else len(frames)
    path = frames[users[0] : end] if users else []
    lines = [*traceback.format_list(path), *traceback.format_exception_only(failure)]
    shown = "Traceback (most recent call last):\n" + "".join(lines)
    if isinstance(failure, BaseExceptionGroup):
        shown += "".join(map(user_traceback, leaves(failure)))
    return shown


def print_user_traceback(failure: BaseException, what: str) -> None:
    """Print it on stderr after `what`, where it is wanted and there is one."""
    if os.environ.get(TRACEBACK_VARIABLE) and (shown := user_traceback(failure)):
        sys.stderr.write(f"{what}\n{shown}")
        sys.stderr.flush()
