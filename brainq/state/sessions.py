"""Sessions in Redis: which turn is live, which wait, and whether the queue stands still."""

from __future__ import annotations

from typing import cast

from brainq.state.attention import GOING_ON_S, look_within
from brainq.state.keys import Keys
from brainq.state.outbox import Outbox
from brainq.state.scripts import Scripts


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

    def waiting(self, session_id: str) -> list[str]:
        """The ids of the turns that wait, the next one first."""
        key = self._keys.of_session(session_id, "waiting")
        return cast(list[str], self._run.client.lrange(key, 0, -1))

    def pause(self, session_id: str) -> bool:
        """No further turn begins. False when it was paused before."""
        reply = self._run.session_pause.on(self._keys, session_id, "", keep_session_ms=self._keep_session_ms)
        return reply[0] == "PAUSED"

    def resume(self, session_id: str) -> tuple[bool, str]:
        """(False when it was not paused, the turn that became live or "")."""
        reply = self._run.session_resume.on(
            self._keys, session_id, "", base=self._keys.turns_base(session_id)
        )
        self._outbox.flush(session_id)
        begun = reply[1] if len(reply) > 1 else ""
        if begun:
            look_within(self._run, self._keys, session_id, begun, GOING_ON_S)
        return reply[0] == "RESUMED", begun

    def _field(self, session_id: str, name: str) -> str:
        found = self._run.client.hget(self._keys.of_session(session_id, "session"), name)
        return cast("str | None", found) or ""
