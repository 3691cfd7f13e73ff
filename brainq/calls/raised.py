"""From what a function raised to how its call ended. Pure."""

from __future__ import annotations

from brainq.calls.values import jsonable, one_line
from brainq.contracts.outcome import ToolFailure, ToolUnknown
from brainq.observe.place import where_raised
from brainq.tools.errors import OutcomeUnknown, ToolError


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


def _words(error: ToolError | OutcomeUnknown) -> str:
    return jsonable(str(error.text)).strip() or one_line(error)
