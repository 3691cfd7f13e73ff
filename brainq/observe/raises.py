"""The traceback of what the user's code raised, in full: for whoever develops it.

Its last line may quote content, so it is printed only where BRAINQ_TRACEBACK is set, as `brainq dev` sets it for its
workers. No log has it.
"""

from __future__ import annotations

import os
import sys
import traceback

from brainq.errors import BrainqError
from brainq.observe.place import is_users

TRACEBACK = "BRAINQ_TRACEBACK"


def users_traceback(failure: BaseException) -> str:
    """From the first line of the user's code on, with the message; empty where none of it was run.

    What brainq refuses ends with the user's line that asked for it: how it was refused tells nothing.
    """
    frames = traceback.extract_tb(failure.__traceback__)
    users = [index for index, frame in enumerate(frames) if is_users(frame.filename)]
    if not users and not isinstance(failure, SyntaxError):
        return ""
    end = users[-1] + 1 if users and isinstance(failure, BrainqError) else len(frames)
    path = frames[users[0] : end] if users else []
    lines = [*traceback.format_list(path), *traceback.format_exception_only(failure)]
    return "Traceback (most recent call last):\n" + "".join(lines)


def tell_raise(failure: BaseException, what: str) -> None:
    """Print it on stderr after `what`, where it is wanted and there is one."""
    if os.environ.get(TRACEBACK) and (shown := users_traceback(failure)):
        sys.stderr.write(f"{what}\n{shown}")
        sys.stderr.flush()
