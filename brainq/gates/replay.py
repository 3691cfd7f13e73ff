"""The gate against repeats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from brainq.contracts.outcome import ToolDenied

_MESSAGE = (
    "Not run: this exact call already brought its result in this turn, and no tool has changed anything since. "
    "Use that result, or call with other arguments."
)


@dataclass(frozen=True, slots=True)
class ReplayControl:
    """Denies a call that can bring nothing new.

    succeeded     fingerprint -> the write epoch as it stood after that call succeeded
    write_epoch   how many writes of this turn have taken effect so far

    A write raises the epoch and is recorded with the raised one: right after it, the same write again is a
    duplicate, while every read from before may be repeated, since the world may look different now.
    """

    succeeded: Mapping[str, int]
    write_epoch: int

    def judge(self, fingerprint: str) -> ToolDenied | None:
        """None: go on."""
        if self.succeeded.get(fingerprint) != self.write_epoch:
            return None
        return ToolDenied(reason="duplicate", message=_MESSAGE)
