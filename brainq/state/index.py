"""Which turns the sweeper looks at next, and what one look finds."""

from __future__ import annotations

from typing import cast

from brainq.contracts.sweep import Due, Look
from brainq.state.attention import look_within
from brainq.state.connection import Client
from brainq.state.keys import Keys
from brainq.state.outbox import Outbox
from brainq.state.typed_scripts import Scripts, TurnSweepLook

LONGEST_IN_RERINGS = 12  # as turn_sweep puts a look off at most
LONGEST_MS = 60_000  # as anybody else does


class RedisIndex:
    """The sweeper's view of all turns. Fits `ports.index.Index`."""

    def __init__(
        self,
        scripts: Scripts,
        keys: Keys,
        outbox: Outbox,
        *,
        rering_s: float,
        failing_s: float,
        unserved_s: float,
        grace_s: float = 2.0,
        lease_s: float = 10.0,
    ) -> None:
        self._longest_lease_ms = int(lease_s * 1000)
        self._run = scripts
        self._keys = keys
        self._outbox = outbox
        self._rering_ms = int(rering_s * 1000)
        self._failing_ms = int(failing_s * 1000)
        self._unserved_ms = int(unserved_s * 1000)
        self._grace_ms = int(grace_s * 1000)

    def due(self, most: int, hold_s: float) -> Due:
        """Up to `most` turns that are due; no other sweeper gets them for `hold_s`."""
        reply = self._run.index_take(
            most=most,
            hold_ms=int(hold_s * 1000),
            longest_ms=max(self._rering_ms * LONGEST_IN_RERINGS, LONGEST_MS),
        )
        members = tuple(cast(tuple[str, str], tuple(member.split(" "))) for member in reply.members)
        return Due(members, reply.mark, reply.stepped)

    def look(self, session_id: str, turn_id: str) -> Look:
        """Look at one turn: lost bells are rung again by the script itself."""
        reply = self._run.turn_sweep(
            session_id,
            turn_id,
            rering_ms=self._rering_ms,
            failing_ms=self._failing_ms,
            unserved_ms=self._unserved_ms,
            grace_ms=self._grace_ms,
            longest_lease_ms=self._longest_lease_ms,
        )
        self._outbox.flush(session_id)
        if isinstance(reply, TurnSweepLook):
            return Look("LOOK", reply.after_ms, reply.fence, reply.actions)
        return Look(reply)

    def again(self, session_id: str, turn_id: str, mark: str, after_ms: int) -> None:
        """The turn was looked at, and is in `after_ms` again; but sooner if somebody asked for that meanwhile."""
        member = f"{session_id} {turn_id}"
        self._run.index_again(member=member, mark=mark, after_ms=after_ms)

    def look_within(self, session_id: str, turn_id: str, after_s: float) -> None:
        """The sweeper looks at the turn in `after_s` at the latest."""
        look_within(self._run, self._keys, session_id, turn_id, after_s)

    def drop(self, session_id: str, turn_id: str) -> None:
        self._run.client.zrem(self._keys.index, f"{session_id} {turn_id}")

    def known(self, turns: list[tuple[str, str]]) -> list[bool]:
        """Whether Redis knows each (session, turn)."""
        pipe = self._run.client.pipeline(transaction=False)
        for session_id, turn_id in turns:
            pipe.exists(self._keys.turn(session_id, turn_id))
        return [bool(found) for found in cast(list[int], pipe.execute())] if turns else []

    def take_comparing(self, for_s: float) -> bool:
        """One sweeper at a time compares SQL with Redis; True when it is this one, for `for_s`."""
        return bool(self._run.client.set(self._keys.sweeping, "1", nx=True, px=int(for_s * 1000)))


def overdue_s(client: Client, keys: Keys) -> float:
    """For how long the look that is due longest has been due; 0.0 when none is."""
    found = cast("list[tuple[str, float]]", client.zrange(keys.index, 0, 0, withscores=True))
    seconds, micros = client.time()
    return max(0.0, seconds + micros / 1e6 - found[0][1] / 1000) if found else 0.0
