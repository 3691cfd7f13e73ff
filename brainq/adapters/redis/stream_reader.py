"""The events of many turns, read by one task with one blocking read.

The set of streams changes while the read blocks, so the read also waits for the reader's own stream: an entry in it
ends the read at once. CLIENT UNBLOCK is not used for this. It would need a right with which any client, including
workers, could be unblocked, and brainq's ACL grants it to no user. It has no effect if it comes a moment before the
read, whereas an entry stays until it is read. And it needs the connection's id again after each reconnect.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import redis

from brainq.adapters.redis.async_connection import FIRST_BACKOFF_S, LONGEST_BACKOFF_S, AsyncConnection, CommandBatcher
from brainq.adapters.redis.connection import Command
from brainq.adapters.redis.events import READ_BATCH, Follower, read_events
from brainq.adapters.redis.keys import Keys
from brainq.errors import SetupError
from brainq.runtime.observe.logs import OutageLog, logger
from brainq.runtime.observe.tasks import KeptTask

log = logger("brainq.streams")

BLOCK_S = 2.0  # This is below the socket timeout.

DOUBT_EVERY_S = 2.0

OUTAGE_PATIENCE_S = 10.0  # a failover of Sentinel takes about as long

LIVE_BATCH = 100  # The maximum number of events per stream and read.

WAKE_KEPT_S = 60
# A read of 500 streams costs Redis and this process about a millisecond, even if little is new. After a read that found
# much, a pause collects more events for the next; after one that found little, there is no pause.
PAUSE_A_STREAM_S, PAUSE_AN_EVENT_S, LONGEST_PAUSE_S = 0.00001, 0.0001, 0.02

PARSE_BATCH = 200  # After this many events, other tasks of the loop get their turn.


@dataclass(frozen=True, slots=True)
class StreamState:
    """The events of a turn above a number. `is_out` was read before `rows`."""

    is_known: bool
    is_out: bool
    rows: list[Any]


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """The last number of a turn's events, and its result as JSON if it is published.

    A later result has a later event.
    """

    is_known: bool
    seq: int
    result: str | None


def pause_s(streams: int, found: int) -> float:
    """Return the seconds to let events gather before the next read, after a read of `streams` streams found `found`
    events."""
    return min(LONGEST_PAUSE_S, streams * PAUSE_A_STREAM_S + found * PAUSE_AN_EVENT_S) if found else 0.0


class StreamReader:
    """The reader of one event loop. Its task starts with the first follower and lasts until `close` or the loop's end.

    patience_s   how long a broken connection is reopened before followers fail
    """

    def __init__(self, url: str, keys: Keys, *, patience_s: float = OUTAGE_PATIENCE_S) -> None:
        self.patience_s = patience_s
        self._keys = keys
        self._line = AsyncConnection(url)
        self._asks = CommandBatcher(AsyncConnection(url))
        self._live: dict[str, list[Follower]] = {}
        self._wake_key = keys.wake(uuid4().hex)
        self._woken = "0-0"
        self._has_woken = self._is_reading = self._is_waking = False
        self._changed = asyncio.Event()
        self._closed: SetupError | None = None
        self._task = KeptTask("brainq-streams", self._run)
        self._outage = OutageLog(log, "reading streams")
        self._away_since: float | None = None
        self._backoff_s = FIRST_BACKOFF_S
        self._doubt_at = 0.0

    @property
    def streams(self) -> int:
        """The number of streams that are currently read."""
        return len(self._live)

    def follow(self, session_id: str, turn_id: str, after: int) -> Follower:
        """Return a follower of the events above `after`. Call its `close` when it is no longer needed. Raises
        SetupError once closed."""
        self._start()
        return Follower(self, session_id, turn_id, after)

    async def newest(self, session_id: str, turn_id: str, patience_s: float = 0.0) -> StreamEnd:
        """Return the newest number of the turn's events. Raises redis' errors, and SetupError once closed."""
        self._start()
        turn = self._keys.turn(session_id, turn_id)
        known, last, result = await self._asks.run(
            ("EXISTS", turn),
            ("XREVRANGE", turn + ":events", "+", "-", "COUNT", 1),
            ("GET", turn + ":result"),
            patience_s=patience_s,
        )
        return StreamEnd(bool(known), int(last[0][0].split("-")[0]) if last else 0, result)

    async def look(self, follower: Follower, patience_s: float) -> StreamState:
        """Return a page of the events above those that the follower has. Raises redis' errors, and SetupError once
        closed."""
        turn = self._keys.turn(follower.session_id, follower.turn_id)
        read = ("XREAD", "COUNT", READ_BATCH, "STREAMS", turn + ":events", f"{follower.after}-0")
        known, out, found = await self._asks.run(
            ("EXISTS", turn), ("EXISTS", turn + ":result"), read, patience_s=patience_s
        )
        return StreamState(bool(known), bool(out), found[0][1] if found else [])

    def add_follower(self, follower: Follower) -> None:
        """Begin to feed this follower with new events."""
        if self._closed is not None:
            follower.fail(self._closed)
            return
        self._live.setdefault(self._key(follower), []).append(follower)
        self._change()

    def remove_follower(self, follower: Follower) -> None:
        """Stop feeding this follower."""
        key = self._key(follower)
        others = [other for other in self._live.pop(key, []) if other is not follower]
        if others:
            self._live[key] = others
        else:
            self._change()

    async def close(self) -> None:
        """End the task, the followers and the connections."""
        if self._closed is not None:
            return
        self._closed = SetupError("the AsyncClient was closed; open another one to go on")
        for follower in self._followers():
            follower.fail(self._closed)
        if self._has_woken:
            with suppress(TimeoutError, redis.RedisError, OSError):  # The entry also expires by itself.
                async with asyncio.timeout(LONGEST_BACKOFF_S):
                    await self._asks.run(("DEL", self._wake_key))
        await self._task.stop()

    def _start(self) -> None:
        if self._closed is not None:
            raise self._closed
        self._task.ensure()

    def _key(self, follower: Follower) -> str:
        return self._keys.turn(follower.session_id, follower.turn_id) + ":events"

    def _followers(self) -> list[Follower]:
        return [follower for followers in self._live.values() for follower in followers]

    def _change(self) -> None:
        self._changed.set()
        if self._is_reading and not self._is_waking:
            self._is_waking = self._has_woken = True
            # A lost entry costs the rest of the block: two seconds at most.
            add = ("XADD", self._wake_key, "MAXLEN", 1, "*", "w", "")
            self._asks.run_unawaited(("MULTI",), add, ("EXPIRE", self._wake_key, WAKE_KEPT_S), ("EXEC",))

    async def _run(self) -> None:
        task = asyncio.current_task()
        try:
            # Check this as well: while it queries sentinels, redis-py may lose a cancel (asyncio.wait_for, Python
            # 3.11).
            while task is not None and not task.cancelling():
                if not self._live:
                    self._changed.clear()
                    await self._changed.wait()
                    continue
                try:
                    await self._read()
                    await self._doubt_quiet()
                except Exception as failure:
                    await self._failed(failure)
        finally:
            if task is not None and task.cancelling():  # Otherwise the task failed, and runs again.
                await self._asks.close(self._closed or SetupError("the event loop of these events has ended"))
                await self._line.close()

    async def _read(self) -> None:
        positions = {key: min(one.after for one in followers) for key, followers in self._live.items()}
        self._is_reading = True
        try:
            found = await self._execute(_read_command({self._wake_key: self._woken}, positions))
        finally:
            self._is_reading = self._is_waking = False
        self._outage.worked()
        self._away_since, self._backoff_s = None, FIRST_BACKOFF_S
        total = since_others = 0
        for key, rows in found or ():
            if key == self._wake_key:
                self._woken = rows[-1][0]
                continue
            self._feed(key, positions[key], rows)
            total += len(rows)
            since_others += len(rows)
            if since_others >= PARSE_BATCH:
                since_others = 0
                await asyncio.sleep(0)
        await asyncio.sleep(pause_s(len(positions), total))

    def _feed(self, key: str, asked_after: int, rows: list[Any]) -> None:
        followers = self._live.get(key)
        if not followers:
            return
        try:
            events = read_events(rows)
        except Exception as failure:  # The error concerns this turn only, for example events that a newer brainq wrote.
            for follower in list(followers):
                follower.fail(failure)
            return
        for follower in list(followers):
            follower.feed(asked_after, events)

    async def _doubt_quiet(self) -> None:
        """Make followers of quiet turns check their turn, which may have expired or ended without a final event."""
        now = time.monotonic()
        if now < self._doubt_at:
            return
        self._doubt_at = now + DOUBT_EVERY_S
        quiet = [follower for follower in self._followers() if not follower.was_fed]
        for follower in self._followers():
            follower.was_fed = False
        if not quiet:
            return
        turns = [self._keys.turn(follower.session_id, follower.turn_id) for follower in quiet]
        results = [turn + ":result" for turn in turns]
        known, out = await self._execute(("EXISTS", *turns), ("EXISTS", *results), one=False)
        if known == len(quiet) and not out:
            return
        exists = await self._execute(*[("EXISTS", key) for key in turns + results], one=False)
        for follower, is_known, is_out in zip(quiet, exists[: len(quiet)], exists[len(quiet) :], strict=True):
            if is_out or not is_known:
                follower.check_stream()

    async def _execute(self, *commands: Command, one: bool = True) -> Any:
        replies = await self._line.run(commands)
        for reply in replies:
            if isinstance(reply, redis.ResponseError):
                raise reply
        return replies[0] if one else replies

    async def _failed(self, failure: Exception) -> None:
        """Wait a little before the next try. If failures have lasted too long, report the failure to the followers."""
        now = time.monotonic()
        self._outage.failed(failure)
        self._away_since = self._away_since or now
        self._woken = "0-0"  # Another server's clock may be behind.
        if now - self._away_since >= self.patience_s:
            self._away_since = None
            for follower in self._followers():
                follower.fail(failure)
        await asyncio.sleep(self._backoff_s)
        self._backoff_s = min(self._backoff_s * 2, LONGEST_BACKOFF_S)


def _read_command(*after: dict[str, Any]) -> Command:
    """Return the command for a blocking read of these streams above these numbers."""
    ids = {key: number for numbers in after for key, number in numbers.items()}
    given = [number if isinstance(number, str) else f"{number}-0" for number in ids.values()]
    head = ("XREAD", "COUNT", LIVE_BATCH, "BLOCK", int(BLOCK_S * 1000), "STREAMS")
    return (*head, *ids, *given)


class StreamReaders:
    """The readers of a program, one for each event loop, made at the first use on the loop. A program usually has one
    loop, but one that calls `asyncio.run` again gets another reader."""

    def __init__(self, redis_url: str, prefix: str) -> None:
        self._url = redis_url
        self._keys = Keys(prefix)
        self._readers: dict[asyncio.AbstractEventLoop, StreamReader] = {}

    @property
    def reader(self) -> StreamReader:
        """Return the reader of the running loop."""
        loop = asyncio.get_running_loop()
        found = self._readers.get(loop)
        if found is None:
            # A closed loop has cancelled its reader's task, which closed the connection.
            for closed in [known for known in list(self._readers) if known.is_closed()]:
                self._readers.pop(closed, None)
            found = self._readers[loop] = StreamReader(self._url, self._keys)
        return found

    async def close(self) -> None:
        """End the running loop's reader and its followers."""
        reader = self._readers.get(asyncio.get_running_loop())
        if reader is not None:
            await reader.close()
