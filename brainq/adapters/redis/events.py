"""Reads of a turn's events, which scripts write: from any number on, or by a follower that catches up and then gets new
events.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, cast

import redis

from brainq.adapters.redis.keys import Keys

if TYPE_CHECKING:
    from brainq.adapters.redis.stream_reader import StreamReader
    from brainq.contracts.typed_events import Event

READ_BATCH = 500
MAX_BLOCK_S = 2.0  # under the client's socket timeout
MAX_BUFFERED = 500  # The maximum number of buffered events. A slower follower reads events from Redis again.


class RedisEvents:
    """The events of turns, from any number on. Scripts write them together with what they report."""

    def __init__(self, client: redis.Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    def read(self, session_id: str, turn_id: str, after: int, block_s: float) -> list[Event]:
        """Return the events above number `after`. Waits up to `block_s` seconds (at most 2) for the first."""
        key = self._keys.turn(session_id, turn_id) + ":events"
        block_ms = max(1, int(min(block_s, MAX_BLOCK_S) * 1000)) if block_s > 0 else None
        found = cast(Any, self._client.xread({key: f"{after}-0"}, count=READ_BATCH, block=block_ms))
        if not found:
            return []
        rows = found[key][0] if isinstance(found, dict) else found[0][1]
        return [_read_event(number, fields) for number, fields in rows]

    def now_ms(self) -> int:
        """Return the time on the clock that paces events."""
        seconds, micros = self._client.time()
        return seconds * 1000 + micros // 1000

    def known(self, session_id: str, turn_id: str) -> bool:
        return bool(self._client.exists(self._keys.turn(session_id, turn_id)))

    def is_out(self, session_id: str, turn_id: str) -> bool:
        """Return whether the result and the final event are published."""
        return bool(self._client.exists(self._keys.turn(session_id, turn_id) + ":result"))

    def result(self, session_id: str, turn_id: str) -> str | None:
        """Return the TurnResult as JSON, from its publication until it expires."""
        return cast("str | None", self._client.get(self._keys.turn(session_id, turn_id) + ":result"))


def read_events(rows: Iterable[tuple[str, list[str]]]) -> list[Event]:
    """Convert the raw rows of a stream to events. A row is a number and a flat list of fields."""
    return [_read_event(number, dict(zip(flat[::2], flat[1::2], strict=True))) for number, flat in rows]


def _read_event(number: str, fields: dict[str, str]) -> Event:
    from brainq.contracts.typed_events import make_event  # 32 classes, of which a worker needs none

    return make_event(int(number.split("-")[0]), fields["kind"], int(fields["at"]), json.loads(fields["data"]))


class NoEvents(Enum):
    """The reason why there are no events."""

    SILENT = auto()  # No event came in the given time.
    UNKNOWN = auto()  # Redis does not have the turn: it has expired, or is not queued yet.
    OVER = auto()  # The result is published, and its event was already read.


class Follower:
    """A follower of a turn's events above `after`, each once and in order. `StreamReader.follow` makes it.

    At first it is *behind*: it reads pages by itself until it has caught up, and then gets events from the reader. A
    follower that does not consume its events is behind again, so that its buffer stays bounded.
    """

    def __init__(self, reader: StreamReader, session_id: str, turn_id: str, after: int) -> None:
        self._reader = reader
        self.session_id = session_id
        self.turn_id = turn_id
        self.after = after
        """The number of the newest event that the follower got, whether consumed or in its buffer."""
        self.was_fed = False
        """Since the reader last asked whether quiet turns are still there."""
        self._buffer: list[Event] = []
        self._is_live = False
        self._met = False
        self._failure: Exception | None = None
        self._news = asyncio.Event()

    async def next(self, wait_s: float | None = None) -> list[Event] | NoEvents:
        """Return the next events as soon as there is at least one, or the reason why there are none.

        Raises redis' errors if Redis has not answered for the reader's patience, and SetupError if the reader was
        closed. It may be called again afterwards.
        """
        while True:
            if self._buffer:
                events, self._buffer = self._buffer, []
                return events
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise failure
            if not self._is_live:
                quiet = await self._catch_up(wait_s)
                if quiet is not None:
                    return quiet
                continue
            self._news.clear()
            try:
                async with asyncio.timeout(wait_s):
                    await self._news.wait()
            except TimeoutError:
                if not self._news.is_set():
                    return NoEvents.SILENT

    def feed(self, asked_after: int, events: Sequence[Event]) -> None:
        """Give it the events that a read of those above `asked_after` found."""
        if not self._is_live or self.after < asked_after:
            return  # The follower joined during the read, and needs the events before these.
        new = [event for event in events if event.seq > self.after]
        if len(self._buffer) + len(new) > MAX_BUFFERED:
            self.close()
            return
        if new:
            self._buffer += new
            self.after, self.was_fed = new[-1].seq, True
            if new[-1].is_final:
                self.close()
            self._news.set()

    def check_stream(self) -> None:
        """Make the follower check its stream itself, because the turn may have expired or ended."""
        self.close()
        self._news.set()

    def fail(self, failure: Exception) -> None:
        """Make `next` raise this error after it has returned the buffered events."""
        self._failure = failure
        self.check_stream()

    def close(self) -> None:
        """Stop following. Idempotent."""
        if self._is_live:
            self._is_live = False
            self._reader.remove_follower(self)

    async def _catch_up(self, wait_s: float | None) -> NoEvents | None:
        # If the follower has reached Redis before, it is patient; at first it reports a failure at once.
        patience_s = self._reader.patience_s if self._met else 0.0
        look = await self._reader.look(self, patience_s if wait_s is None else min(patience_s, wait_s))
        self._met = True
        events = read_events(look.rows)
        if events:
            self._buffer, self.after = events, events[-1].seq
        if (events and events[-1].is_final) or len(events) >= READ_BATCH:
            return None
        if look.is_out and not events:
            return NoEvents.OVER
        self._is_live = self.was_fed = True
        self._reader.add_follower(self)
        return None if look.is_known or events else NoEvents.UNKNOWN
