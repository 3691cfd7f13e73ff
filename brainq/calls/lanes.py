"""LaneKeeper: a call enters its queue only once it holds its lanes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from brainq.calls.ports import Calls, Lanes
from brainq.contracts.claim import CallRef


class LaneKeeper:
    """Moves calls through their lanes. Each step may be repeated: the sweeper does after a crash."""

    def __init__(self, calls: Calls, lanes: Lanes) -> None:
        self._calls = calls
        self._lanes = lanes

    def enter(self, ref: CallRef) -> None:
        """Have a waiting call take its lanes, or stand in line for them."""
        if self._holds_its_lanes(ref):
            self._dispatch([ref])

    def enter_all(self, session_id: str, turn_id: str, call_ids: Iterable[str]) -> None:
        """`enter` for the calls that a reply says want their lanes now."""
        for call_id in call_ids:
            self.enter(CallRef(session_id, turn_id, call_id))

    def leave(self, ref: CallRef) -> None:
        """Free a call's lanes; whoever holds theirs because of it is dispatched."""
        self._dispatch(self._lanes.free(ref))

    def reap(self, ref: CallRef, mark: str) -> None:
        """Free the lanes of a call whose lease lapsed, unless it was renewed since."""
        self._dispatch(self._lanes.reap(ref, mark))

    def _holds_its_lanes(self, ref: CallRef) -> bool:
        lanes = self._calls.lanes_of(ref)
        return not lanes or self._lanes.take(ref, lanes)

    def _dispatch(self, refs: Iterable[CallRef]) -> None:
        # A queue, not a recursion: a hold that denies may answer for one call after another.
        ready = deque(refs)
        while ready:
            ref = ready.popleft()
            reply = self._calls.dispatch(ref)
            if reply.word == "SETTLED":
                # Its turn ended while it stood in line: it will not run, so the next one may.
                ready.extend(self._lanes.free(ref))
            elif reply.word == "HELD":
                self._lanes.lapse(ref)
            wanted = (CallRef(ref.session_id, ref.turn_id, call_id) for call_id in reply.wants)
            ready.extend(other for other in wanted if self._holds_its_lanes(other))
