"""A call's beat: it renews the lease, and tells readers how far the call is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from brainq.contracts.claim import CallClaim
from brainq.contracts.progress import Progress
from brainq.ports.calls import Calls


@dataclass(eq=False, slots=True)
class CallBeat:
    """progress   gives the newest that the function said, or None"""

    calls: Calls
    claim: CallClaim
    progress: Callable[[], Progress | None] = lambda: None
    _telling: Progress | None = None
    _number: int = 0
    _is_told: bool = True

    def beat(self) -> str:
        word = self.calls.beat(self.claim)
        if word == "OK":
            self._tell(self.progress())
        return word

    def _tell(self, newest: Progress | None) -> None:
        if self._is_told and newest is not self._telling:
            self._telling, self._number, self._is_told = newest, self._number + 1, False
        if not self._is_told and self._telling is not None:
            # What Redis may have heard is said again under the same number.
            self.calls.tell_progress(self.claim, self._number, self._telling)
            self._is_told = True
