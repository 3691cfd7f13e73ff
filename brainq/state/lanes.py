"""Lanes in Redis: every lane is a line of calls, and a call holds its lanes when it is first in all of them.

All lanes live in one cluster slot (`{lanes}`), so that one script can join or leave several lines at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from brainq.contracts.claim import CallRef
from brainq.state.keys import Keys
from brainq.state.typed_scripts import Scripts


class RedisLanes:
    """The lane operations over one Redis, each one script. Fits `calls.ports.Lanes`."""

    def __init__(self, scripts: Scripts, keys: Keys, *, lease_s: float) -> None:
        self._run = scripts
        self._keys = keys
        self._lease_ms = int(lease_s * 1000)

    def take(self, ref: CallRef, lanes: Sequence[str]) -> bool:
        """True when the call now holds all its lanes; False when it waits in line. Asking again is harmless."""
        reply = self._run.lane_take(
            lanes=[self._keys.lane(name) for name in lanes],
            holder=ref.holder,
            lease_ms=self._lease_ms,
        )
        return reply == "GRANTED"

    def lapse(self, ref: CallRef) -> None:
        """Let the lease of a parked call lapse now: a sweeper leaves its lanes, unless it wants them again."""
        self._run.lane_lapse(holder=ref.holder)

    def free(self, ref: CallRef) -> list[CallRef]:
        """Leave all lines; the calls that hold their lanes because of it."""
        reply = self._run.lane_free(
            holder=ref.holder,
            lease_ms=self._lease_ms,
        )
        return [CallRef.of_holder(holder) for holder in reply.granted]

    def beat(self, ref: CallRef) -> str:
        return self._run.lane_beat(holder=ref.holder, lease_ms=self._lease_ms)

    def lapsed(self, most: int) -> tuple[str, list[CallRef]]:
        """Holders whose lease has lapsed, each handed to one sweeper for a lease's time, and the mark for `reap`."""
        reply = self._run.lane_lapsed(most=most, hold_ms=self._lease_ms, longest_lease_ms=self._lease_ms)
        return reply.mark, [CallRef.of_holder(holder) for holder in reply.holders]

    def reap(self, ref: CallRef, mark: str) -> list[CallRef]:
        """Leave all lines, unless the lease was renewed since it was found lapsed; as `free`."""
        reply = self._run.lane_reap(
            holder=ref.holder,
            mark=mark,
            lease_ms=self._lease_ms,
        )
        return [] if reply == "KEPT" else [CallRef.of_holder(holder) for holder in reply.granted]

    def line(self, lane: str) -> list[CallRef]:
        """Who holds a lane (first) and who waits for it."""
        kept = cast(list[str], self._run.client.lrange(self._keys.lane(lane), 0, -1))
        return [CallRef.of_holder(holder) for holder in kept]
