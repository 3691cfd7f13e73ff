"""What a turn has gathered so far, read from Redis. Fits `turn.runtime_state.RuntimeStore`."""

from __future__ import annotations

import json
from typing import Any, cast

from brainq.contracts.message import Message
from brainq.contracts.usage import TokenUsage
from brainq.state.keys import Keys
from brainq.state.scripts import Scripts
from brainq.state.turn_view import usage_of


class RedisRuntime:
    """Reads of one turn's accumulated state, and its write gate."""

    def __init__(self, scripts: Scripts, keys: Keys) -> None:
        self._run = scripts
        self._keys = keys

    def fields(self, session_id: str, turn_id: str) -> dict[str, str]:
        """The turn's hash, empty when Redis does not know it."""
        return cast(dict[str, str], self._run.client.hgetall(self._keys.turn(session_id, turn_id)))

    def usage(self, session_id: str, turn_id: str) -> TokenUsage:
        row = cast(dict[str, Any], self._run.client.hgetall(self._keys.turn(session_id, turn_id) + ":budget"))
        return usage_of(row)

    def sources(self, session_id: str, turn_id: str) -> list[dict[str, str]]:
        """Citations and rendered paths, as tools left them."""
        key = self._keys.turn(session_id, turn_id) + ":sources"
        return [json.loads(row) for row in cast(list[str], self._run.client.lrange(key, 0, -1))]

    def blocked(self, session_id: str, turn_id: str) -> frozenset[str]:
        key = self._keys.turn(session_id, turn_id) + ":blocked"
        return frozenset(cast(set[str], self._run.client.smembers(key)))

    def results(self, session_id: str, turn_id: str) -> dict[str, str]:
        """Call id -> what the model read as its result, for the calls of this turn that have ended."""
        rows = cast(list[str], self._run.client.lrange(self._keys.of_session(session_id, "history"), 0, -1))
        told = (Message.model_validate_json(row) for row in rows)
        found = {item.call_id: item.content for item in told if item.role == "tool" and item.turn == turn_id}
        trace = cast(
            dict[str, str], self._run.client.hgetall(self._keys.turn(session_id, turn_id) + ":trace")
        )
        for field, value in trace.items():
            if field.endswith(":msg"):
                found[field.removesuffix(":msg")] = Message.model_validate_json(value).content
        return found

    def shut_gate(self, session_id: str, turn_id: str, by: str) -> bool:
        """True when this shut it; False when it was shut before, or the turn is over."""
        return self._run.gate_shut(turn=self._keys.turn(session_id, turn_id), by=by)[0] == "SHUT"
