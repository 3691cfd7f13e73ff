"""Reading a turn's events. Writing them is done inside the scripts that cause them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, cast

import redis

from brainq.contracts.event import EventKind, TurnEvent
from brainq.state.keys import Keys

READ_AT_ONCE = 500
LONGEST_BLOCK_S = 2.0  # under the client's socket timeout


class RedisEvents:
    """Events of turns, from any number on."""

    def __init__(self, client: redis.Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    def read(self, session_id: str, turn_id: str, after: int, block_s: float) -> list[TurnEvent]:
        """Events numbered above `after`; waits up to `block_s` (at most 2 s) for the first."""
        key = self._keys.turn(session_id, turn_id) + ":events"
        block_ms = max(1, int(min(block_s, LONGEST_BLOCK_S) * 1000)) if block_s > 0 else None
        found = cast(Any, self._client.xread({key: f"{after}-0"}, count=READ_AT_ONCE, block=block_ms))
        if not found:
            return []
        rows = found[key][0] if isinstance(found, dict) else found[0][1]
        return [_event(number, fields) for number, fields in rows]

    def now_ms(self) -> int:
        """What the clock says by which events are told."""
        seconds, micros = self._client.time()
        return seconds * 1000 + micros // 1000

    def known(self, session_id: str, turn_id: str) -> bool:
        return bool(self._client.exists(self._keys.turn(session_id, turn_id)))

    def is_out(self, session_id: str, turn_id: str) -> bool:
        """Whether the result is out, and with it the final event."""
        return bool(self._client.exists(self._keys.turn(session_id, turn_id) + ":result"))

    def result(self, session_id: str, turn_id: str) -> str | None:
        """The TurnResult as JSON, once it is out and until it expires."""
        return cast("str | None", self._client.get(self._keys.turn(session_id, turn_id) + ":result"))


def read_events(rows: Iterable[tuple[str, list[str]]]) -> list[TurnEvent]:
    """Events of the raw rows of a stream: a number, and its fields as a flat list."""
    return [_event(number, dict(zip(flat[::2], flat[1::2], strict=True))) for number, flat in rows]


def _event(number: str, fields: dict[str, str]) -> TurnEvent:
    return TurnEvent(
        seq=int(number.split("-")[0]),
        kind=EventKind(fields["kind"]),
        at_ms=int(fields["at"]),
        data=json.loads(fields["data"]),
    )
