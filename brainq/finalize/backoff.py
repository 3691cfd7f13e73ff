"""Steps that may be what kills their workers: each runs in a process where nothing else runs."""

from __future__ import annotations

from collections.abc import Callable

from brainq.contracts.claim import FinalStepClaim

# A process that dies takes all its steps with it, and none of them shows which one did it. Whoever lost so many
# goes on alone: then its death is surely its own, and the others' steps end. As for turns (`state/turns.py`).
MAX_LOST_WORKERS = 2

RunInQuarantine = Callable[[FinalStepClaim, "float | None"], None]
"""Runs a claimed step in a process of its own, within so many seconds. Raises FailedAlone."""


class QuarantinedStepError(Exception):
    """A step that ran alone raised, or died. `error_type` is the class's name, `text` what it said."""

    def __init__(self, error_type: str, text: str) -> None:
        super().__init__(error_type, text)
        self.error_type = error_type
        self.text = text

    def __str__(self) -> str:
        return self.text


def error_type_name(failure: Exception) -> str:
    return failure.error_type if isinstance(failure, QuarantinedStepError) else type(failure).__name__
