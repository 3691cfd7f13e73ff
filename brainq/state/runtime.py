"""What a turn has gathered so far, read from Redis. Fits `ports.runtime.Runtime`."""

from __future__ import annotations

import json
from typing import Any

from brainq.contracts.usage import TokenUsage
from brainq.errors import TurnNotFound
from brainq.state.connection import as_mapping
from brainq.state.keys import Keys
from brainq.state.transcripts import RedisTranscripts
from brainq.state.turn_view import read_newest_text, usage_of
from brainq.state.typed_scripts import Scripts


class RedisRuntime:
    """Reads of one turn's accumulated state, and its write gate."""

    def __init__(self, scripts: Scripts, keys: Keys) -> None:
        self._run = scripts
        self._keys = keys

    def fields(self, session_id: str, turn_id: str) -> dict[str, str]:
        """The turn's hash. Raises TurnNotFound when Redis does not know it, or knows it no more."""
        return as_mapping(self._of(session_id, turn_id, ("HGETALL", self._keys.turn(session_id, turn_id))))

    def usage(self, session_id: str, turn_id: str) -> TokenUsage:
        key = self._keys.named("budget", session_id, turn_id)
        return usage_of(as_mapping(self._of(session_id, turn_id, ("HGETALL", key))))

    def sources(self, session_id: str, turn_id: str) -> list[dict[str, str]]:
        """Citations and rendered paths, as tools left them."""
        key = self._keys.named("sources", session_id, turn_id)
        return [json.loads(row) for row in self._of(session_id, turn_id, ("LRANGE", key, "0", "-1"))]

    def blocked(self, session_id: str, turn_id: str) -> frozenset[str]:
        key = self._keys.named("blocked", session_id, turn_id)
        return frozenset(self._of(session_id, turn_id, ("SMEMBERS", key)))

    def results(self, session_id: str, turn_id: str) -> dict[str, str]:
        """Call id -> what the model read as its result, for the calls of this turn that have ended."""
        self.fields(session_id, turn_id)
        _, told = RedisTranscripts(self._run, self._keys).calls(session_id, turn_id)
        return {message.call_id: message.content for message in told if message.role == "tool"}

    def newest_text(self, session_id: str, turn_id: str) -> str:
        """The newest text of the turn's model; of one that was cut off what it had said last."""
        turn = self.fields(session_id, turn_id)
        if "ending" in turn:
            return turn.get("last_agent_message") or turn.get("text", "")
        return read_newest_text(
            self._run.client, self._keys, session_id, turn_id, turn.get("isolated") == "1"
        )

    def _of(self, session_id: str, turn_id: str, read: tuple[str, ...]) -> Any:
        """The reply to a read of a turn that Redis knows: of one that it does not, all would be empty."""
        known, reply = self._run.client.many([("EXISTS", self._keys.turn(session_id, turn_id)), read])
        if not known:
            raise TurnNotFound(
                f"turn {turn_id!r} of session {session_id!r} is not in Redis; it may have expired there, and "
                "`client.handle(turn_id).result()` still has its result"
            )
        return reply

    def shut_gate(self, session_id: str, turn_id: str, by: str) -> bool:
        """True when this shut it; False when it was shut before, or the turn is over."""
        return self._run.gate_shut(session_id, turn_id, by=by) == "SHUT"
