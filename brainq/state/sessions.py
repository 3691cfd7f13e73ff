"""Sessions in Redis: which turn is live, which wait, and whether the queue stands still."""

from __future__ import annotations

from typing import cast

from brainq.state.keys import Keys
from brainq.state.outbox import Outbox
from brainq.state.typed_scripts import Scripts


class RedisSessions:
    """The session operations over one Redis."""

    def __init__(self, scripts: Scripts, keys: Keys, outbox: Outbox, *, keep_session_s: float) -> None:
        self._run = scripts
        self._keys = keys
        self._outbox = outbox
        self._keep_session_ms = int(keep_session_s * 1000)

    def live(self, session_id: str) -> str:
        """The live turn's id; "" when none is."""
        return self._field(session_id, "live")

    def is_paused(self, session_id: str) -> bool:
        return self._field(session_id, "paused") == "1"

    def why_paused(self, session_id: str) -> str | None:
        """What whoever paused it said, or ""; None: it is not paused."""
        key = self._keys.of_session(session_id, "session")
        paused, why = cast("list[str | None]", self._run.client.hmget(key, ["paused", "paused_why"]))
        return (why or "") if paused == "1" else None

    def waiting(self, session_id: str) -> list[str]:
        """The ids of the turns that wait, the next one first."""
        key = self._keys.of_session(session_id, "waiting")
        return cast(list[str], self._run.client.lrange(key, 0, -1))

    def waiting_counts(self, session_id: str) -> tuple[int, int]:
        """How many turns of the session wait, and how many sessions of its tenant wait for room, or for their brain."""
        pipe = self._run.client.pipeline(transaction=False)
        pipe.llen(self._keys.of_session(session_id, "waiting"))
        pipe.zcard(self._keys.room_line(session_id))
        pipe.hget(self._keys.room, "caps")
        of_session, of_tenant, caps = pipe.execute()
        if caps:
            pipe = self._run.client.pipeline(transaction=False)
            for brain in caps.split():
                pipe.zcard(self._keys.room_aside(brain, session_id))
            of_tenant += sum(pipe.execute())
        return of_session, of_tenant

    def pause(self, session_id: str, why: str = "") -> bool:
        """No further turn begins. False when it was paused before."""
        reply = self._run.session_pause(session_id, keep_session_ms=self._keep_session_ms, why=why)
        return reply == "PAUSED"

    def resume(self, session_id: str) -> tuple[bool, str]:
        """(False when it was not paused, the turn that became live or "")."""
        reply = self._run.session_resume(session_id)
        self._outbox.flush(session_id)
        if reply == "ALREADY":
            return False, ""
        return True, reply.turn

    def _field(self, session_id: str, name: str) -> str:
        found = self._run.client.hget(self._keys.of_session(session_id, "session"), name)
        return cast("str | None", found) or ""
