"""From what a function raised to how its call ended. Pure."""

from __future__ import annotations

import os
import sysconfig
import traceback

from brainq.calls.values import jsonable, one_line
from brainq.contracts.outcome import ToolFailure, ToolUnknown
from brainq.tools.errors import OutcomeUnknown, ToolError

_PATHS = sysconfig.get_paths()
_LIBRARIES = tuple(_PATHS[name] + os.sep for name in ("stdlib", "purelib", "platlib"))
_CALLS = os.path.dirname(__file__) + os.sep


def outcome_of_raise(error: BaseException, latency_ms: int, *, block_tool: bool) -> ToolFailure | ToolUnknown:
    """A ToolError is the tool's own words, an OutcomeUnknown its doubt; anything else is told in one line."""
    if isinstance(error, OutcomeUnknown):
        return ToolUnknown(message=_words(error), why=OutcomeUnknown.__name__, latency_ms=latency_ms)
    own = isinstance(error, ToolError)
    return ToolFailure(
        error=_words(error) if own else one_line(error),
        error_type=type(error).__name__,
        latency_ms=latency_ms,
        retryable=getattr(error, "retryable", False) is True,
        block_tool=block_tool,
        own_words=own,
        where=where_raised(error),
    )


def where_raised(error: BaseException) -> str:
    """`file:line` of the raise: the innermost line that is no library's. Empty where nothing was run."""
    frames = [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not frame.f_code.co_filename.startswith(_CALLS)
    ]
    if not frames:
        return ""
    own = [(file, line) for file, line in frames if not file.startswith(_LIBRARIES)]
    file, line = (own or frames)[-1]
    here = os.getcwd() + os.sep
    return f"{file.removeprefix(here)}:{line}"


def _words(error: ToolError | OutcomeUnknown) -> str:
    return jsonable(str(error.text)).strip() or one_line(error)
