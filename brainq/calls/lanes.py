"""LaneKeeper: a call enters its queue only once it holds its lanes."""

from __future__ import annotations

from brainq.calls.ports import Calls, Lanes
from brainq.contracts.claim import CallRef


class LaneKeeper:
    """Moves calls through their lanes. Each step may be repeated: the sweeper does after a crash."""

    def __init__(self, calls: Calls, lanes: Lanes) -> None:
        self._calls = calls
        self._lanes = lanes

    def enter(self, ref: CallRef) -> None:
        """Have a waiting call take its lanes, or stand in line for them."""
        lanes = self._calls.lanes_of(ref)
        if not lanes or self._lanes.take(ref, lanes):
            self._dispatch(ref)

    def leave(self, ref: CallRef) -> None:
        """Free a call's lanes; whoever holds theirs because of it is dispatched."""
        for granted in self._lanes.free(ref):
            self._dispatch(granted)

    def reap(self, ref: CallRef, mark: str) -> None:
        """Free the lanes of a call whose lease lapsed, unless it was renewed since."""
        for granted in self._lanes.reap(ref, mark):
            self._dispatch(granted)

    def _dispatch(self, ref: CallRef) -> None:
        if self._calls.dispatch(ref) == "SETTLED":
            # Its turn ended while it stood in line: it will not run, so the next one may.
            self.leave(ref)
