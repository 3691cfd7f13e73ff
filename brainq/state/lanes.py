"""Lanes in Redis: every lane is a line of calls, and a call holds its lanes when it is first in all of them.

Lanes are taken and left by the scripts that open waves and settle calls (`lua/lib/lanes.lua`, `lua/lib/leave.lua`).
What is here keeps the lanes of functions that were abandoned, and heals those of workers that died.
"""

from __future__ import annotations

from typing import Literal, cast

from brainq.contracts.claim import CallRef
from brainq.state.keys import Keys
from brainq.state.outbox import Outbox
from brainq.state.typed_scripts import Scripts


class RedisLanes:
    """The lane operations over one Redis, each one script. Fits `ports.lanes.Lanes`."""

    def __init__(self, scripts: Scripts, keys: Keys, outbox: Outbox, *, lease_s: float) -> None:
        self._run = scripts
        self._keys = keys
        self._outbox = outbox
        self._lease_ms = int(lease_s * 1000)

    def beat(self, ref: CallRef) -> Literal["OK", "LOST"]:
        """Keep the lanes of a function that still runs though its call was settled: `OK` or `LOST`."""
        return self._run.lane_beat(holder=ref.holder, lease_ms=self._lease_ms)

    def lapsed(self, most: int) -> tuple[str, list[CallRef]]:
        """Holders whose lease has lapsed, each handed to one sweeper for a lease's time, and the mark for `check`."""
        reply = self._run.lane_lapsed(most=most, hold_ms=self._lease_ms, longest_lease_ms=self._lease_ms)
        return reply.mark, [CallRef.of_holder(holder) for holder in reply.holders]

    def check(self, ref: CallRef, mark: str) -> str:
        """What becomes of lanes whose lease has lapsed: `KEPT` for a call that is queued or runs, else `LEFT`."""
        reply = self._run.lane_check(
            ref.session_id, ref.turn_id, call=ref.call_id, mark=mark, lease_ms=self._lease_ms
        )
        self._outbox.flush(ref.session_id)
        return reply

    def line(self, lane: str) -> list[CallRef]:
        """Who holds a lane (first) and who waits for it."""
        kept = cast(list[str], self._run.client.lrange(self._keys.lane(lane), 0, -1))
        return [CallRef.of_holder(holder) for holder in kept]
