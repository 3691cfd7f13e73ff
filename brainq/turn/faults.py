"""What a turn comes to when the coordinator's own work on it raises what nobody foresaw."""

from __future__ import annotations

from brainq.contracts.status import Ending, StopReason
from brainq.observe.place import where_raised
from brainq.turn.decide import End


def end_of_fault(failure: Exception) -> End:
    """The error names the exception's type and place, and nothing of what it says: that may be content."""
    place = where_raised(failure)
    return End(
        Ending.FAILED,
        StopReason.INTERNAL_ERROR,
        "the coordinator failed",
        f"the coordinator raised {type(failure).__name__}" + (f" at {place}" if place else ""),
    )
