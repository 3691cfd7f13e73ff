"""The place where the user's code raised: a file and a line for logs, and the whole traceback for developers."""

from __future__ import annotations

import os
import sys
import sysconfig
import traceback

from brainq.errors import BrainqError
from brainq.runtime.text.failures import leaves

_BRAINQ = os.path.dirname(os.path.dirname(os.path.dirname(__file__))) + os.sep
_PATHS = sysconfig.get_paths()
_LIBRARIES = tuple(_PATHS[name] + os.sep for name in ("stdlib", "purelib", "platlib"))
TRACEBACK_VARIABLE = "BRAINQ_TRACEBACK"
"""`brainq dev` sets it for its workers. A traceback's last line may quote content, so it never goes into a log."""


def where_raised(failure: BaseException) -> str:
    """Return `file:line` of the innermost line of the user's own code, or else of brainq's, or else of any. Returns ""
    if no code ran. For a group, its first leaf counts.

    The path is relative to the working directory if it is inside it.
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
    """Return whether a file is the user's own: not brainq's, not a library's, and not generated while Python runs."""
    return not file.startswith(("<", _BRAINQ, *_LIBRARIES))


def user_traceback(failure: BaseException) -> str:
    """Return the traceback from the first line of the user's code, with the message, or "" if none of it ran.

    If brainq refused something, the traceback ends at the user's line that requested it.
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
    """Print the user's part of the traceback on stderr after `what`, if that is enabled and there is one."""
    if os.environ.get(TRACEBACK_VARIABLE) and (shown := user_traceback(failure)):
        sys.stderr.write(f"{what}\n{shown}")
        sys.stderr.flush()
