"""Move all keys of a deployment, or of a cell, from one Redis to another: from plain Redis to a cluster, or back.

While the old Redis is closed, its key `epoch`, a string otherwise, is a hash. The look of a worker at Redis and the
comparison of SQL with Redis use `epoch` as a string, so both fail, also in a worker that was frozen during the move.
Such a worker consumes nothing. Builds whose look was only a PING consume there what is submitted there, but they queue
nothing that SQL has.
"""

from __future__ import annotations

import uuid
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, NamedTuple, cast

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from brainq.adapters.redis.connection import make_client, make_pool
from brainq.adapters.redis.fleet import RedisWorkers
from brainq.adapters.redis.key_contents import KeySpace, copy_keys, write_keys
from brainq.adapters.redis.keys import Keys
from brainq.adapters.redis.tenant_keys import SCAN_COUNT, glob_literal
from brainq.errors import MoveFailed

AT_ONCE = 50  # The number of keys that are copied in one round trip. A history may have megabytes.
TURNS_AT_ONCE = 500
HELD_MS = 60_000  # The old Redis opens again this long after the command was killed.
MOST_PASSES = 10
MOST_SKEW_MS = 1000
SHOWN = 3
ANSWER_S = 30.0
_OF_SERVER = ("epoch", "run", "sweeping", "presence", "workers")
_OF_PROCESSES = ("worker:", "draining:", "build:", "wake:")
"""What a server, and the processes on it, write about themselves. It stays."""
_CLAIMS = (("owner", "lease_until"), ("fin_owner", "fin_lease"))

Phase = Literal["copying", "comparing", "cleaning"]


class MoveProgress(NamedTuple):
    """The progress of a move: how many keys a phase has seen, and how many of them it has written or deleted."""

    phase: Phase
    seen: int
    changed: int


class MovePlace:
    """One of the two ends of a move.

    url: the address, with the login.
    shown: the address without a password, as messages and the other end name it.
    prefix: the prefix of all keys there.
    """

    def __init__(self, url: str, shown: str, prefix: str) -> None:
        self.shown = shown
        self.keys = Keys(prefix)
        self.client = make_client(url)
        once = Retry(NoBackoff(), 0)
        pool = make_pool(url, max_connections=4, socket_timeout=ANSWER_S, retry=once)
        self.space = KeySpace(redis.Redis(connection_pool=pool), self.keys)

    def close(self) -> None:
        self.client.close()
        self.space.client.close()
        self.space.client.connection_pool.disconnect()

    def mark(self) -> dict[str, str]:
        """Return what closes this Redis, or an empty dict if it is open.

        It has `state` (`moving`, `moved`, `arriving`), `other` (the address of the other end) and `by` (the run).
        """
        key = self.keys.epoch
        return cast("dict[str, str]", self.client.hgetall(key)) if self.client.type(key) == "hash" else {}

    def put_mark(self, seen: dict[str, str], state: str, other: str, by: str, for_ms: int | None = None) -> None:
        """Close this Redis. Raises MoveFailed if its mark is not `seen` any more."""
        key = self.keys.epoch
        with self.client.pipeline() as pipe:
            pipe.watch(key)
            if self.mark() != seen:
                raise MoveFailed(f"another process has begun to move {self.shown}; run the command again after it")
            pipe.multi()
            pipe.delete(key)
            pipe.hset(key, mapping={"state": state, "other": other, "by": by})
            if for_ms is not None:
                pipe.pexpire(key, for_ms)
            try:
                pipe.execute()
            except redis.WatchError:
                raise MoveFailed(
                    f"another process writes to {self.shown}; stop it, and run the command again"
                ) from None

    def open(self) -> None:
        """Remove the mark. The next sweeper compares all of SQL with this Redis."""
        if self.mark():
            self.client.delete(self.keys.epoch)

    def names(self) -> Iterator[list[bytes]]:
        """Yield the names of all keys that move, some at a time. A name may come twice."""
        found = self.space.client.scan_iter(match=glob_literal(self.keys.prefix) + "*", count=SCAN_COUNT)
        moved = (name for name in found if _moves(self.space.rest(name)))
        while some := list(islice(moved, AT_ONCE)):
            yield some

    def time_ms(self) -> int:
        seconds, micros = self.client.time()
        return seconds * 1000 + micros // 1000

    def at_work(self) -> str:
        """Return who still works here, for a message. Returns "" if nobody does."""
        reports = RedisWorkers(self.client, self.keys)
        names = {worker.name for worker in (*reports.alive(), *reports.draining())} | self._listening()
        if names:
            return f"{_some(sorted(names))} still run; stop all workers (SIGTERM lets them finish what runs)"
        held = self._held()
        if held:
            return f"dead workers still hold {_some(held)}; wait until their leases have ended, BRAINQ_LEASE_S at most"
        return ""

    def _listening(self) -> set[str]:
        """Return the processes that are connected, among them frozen ones."""
        try:
            found: Any = self.client.pubsub_channels(glob_literal(self.keys.alive) + "*")
        except redis.ResponseError:  # this user may not ask
            return set()
        return {str(channel).removeprefix(self.keys.alive) for channel in found}

    def _held(self) -> list[str]:
        """Return the turns and lanes with a lease that has not ended."""
        now, held = self.time_ms(), list[str]()
        members: Any = self.client.zrange(self.keys.index, 0, -1)
        for first in range(0, len(members), TURNS_AT_ONCE):
            some = [member.split(" ") for member in members[first : first + TURNS_AT_ONCE]]
            fields = [field for claim in _CLAIMS for field in claim]
            found = self.client.many([("HMGET", self.keys.turn(*turn), *fields) for turn in some])
            for turn, values in zip(some, found, strict=True):
                claims = zip(values[::2], values[1::2], strict=True)
                if any(owner and float(until or 0) > now for owner, until in claims):
                    held.append(f"turn {turn[1]}")
        lanes: Any = self.client.zrangebyscore(self.keys.lane_leases, f"({now}", "+inf")
        return held + [f"the lanes of {holder}" for holder in lanes]


@dataclass(frozen=True)
class ServerMove:
    """A move from one Redis to another. Run it again if it was interrupted.

    foreign: the lists of producers that know no prefix. Their messages would be left behind.
    """

    source: MovePlace
    target: MovePlace
    foreign: Sequence[str] = ()

    def run(self) -> Generator[MoveProgress]:
        """Move everything, and yield the progress.

        Raises MoveFailed, after which the old Redis is as before, and redis' errors.
        """
        mark = self.source.mark()
        if mark.get("state") != "moved":
            yield from self._move(mark)
        elif mark["other"] != self.target.shown:
            raise MoveFailed(f"{self.source.shown} has moved to {mark['other']}; move it from there")
        yield from self._clean()

    def _move(self, mark: dict[str, str]) -> Iterator[MoveProgress]:
        if mark.get("state") == "arriving":
            raise MoveFailed(f"{self.source.shown} has a part of {mark['other']}; finish that move first")
        if mark:
            raise MoveFailed(
                f"{self.source.shown} is being moved to {mark['other']}; if that command was killed, run this one "
                f"again after {HELD_MS // 1000} s"
            )
        self._require_rest()
        self._require_same_time()
        there = self.target.mark()
        self._require_room(there)
        by = uuid.uuid4().hex
        self.source.put_mark({}, "moving", self.target.shown, by, HELD_MS)
        try:
            self.target.put_mark(there, "arriving", self.source.shown, by)
            yield from self._copy(by)
            self._require_rest()
            self._hold(by)
            self.source.put_mark(self.source.mark(), "moved", self.target.shown, by)
        except BaseException:
            with suppress(redis.RedisError):
                if self.source.mark() == {"state": "moving", "other": self.target.shown, "by": by}:
                    self.source.open()
            raise

    def _require_rest(self) -> None:
        if why := self.source.at_work():
            raise MoveFailed(f"{self.source.shown} is in use: {why}")
        for name in self.foreign:
            if count := self.source.client.llen(name):
                raise MoveFailed(
                    f"{count} messages wait in {name!r}, whose producer knows no prefix; stop the producer, and let "
                    "workers take them first"
                )

    def _require_same_time(self) -> None:
        skew_ms = self.target.time_ms() - self.source.time_ms()
        if abs(skew_ms) > MOST_SKEW_MS:
            raise MoveFailed(
                f"the clock of {self.target.shown} differs by {skew_ms / 1000:+.1f} s, and deadlines would move by as "
                "much; run NTP on both machines"
            )

    def _require_room(self, mark: dict[str, str]) -> None:
        """Raise MoveFailed if the target is used, or holds anything but remains.

        Those are of an interrupted move from here, or of what has moved away from there.
        """
        if why := self.target.at_work():
            raise MoveFailed(f"{self.target.shown} is in use: {why}")
        if mark.get("state") == "arriving" and mark["other"] != self.source.shown:
            raise MoveFailed(f"{self.target.shown} has a part of {mark['other']}; finish that move, or empty it")
        if mark.get("state") == "moving":
            raise MoveFailed(f"{self.target.shown} is being moved to {mark['other']}")
        if not mark and (names := next(self.target.names(), [])):
            shown = ", ".join(name.decode("utf-8", "replace") for name in names[:SHOWN])
            raise MoveFailed(
                f"{self.target.shown} has keys under {self.target.keys.prefix!r} ({shown}); use an empty Redis"
            )

    def _copy(self, by: str) -> Iterator[MoveProgress]:
        """Copy, until a whole pass finds no difference between the two ends."""
        phase: Phase = "copying"
        for _ in range(MOST_PASSES):
            seen = changed = 0
            for names in self.source.names():
                self._hold(by)
                seen += len(names)
                changed += copy_keys(self.source.space, self.target.space, names).differed
                yield MoveProgress(phase, seen, changed)
            changed += self._delete_others()
            if not changed:
                return
            phase = "comparing"
        raise MoveFailed(f"the keys of {self.source.shown} change all the time; stop what writes them")

    def _delete_others(self) -> int:
        """Delete the target's keys that the source does not have. Returns their number."""
        deleted = 0
        for names in self.target.names():
            pipe = self.source.space.client.pipeline(transaction=False)
            for name in names:
                pipe.exists(self.target.space.name_in(self.source.space, name))
            gone = {name: None for name, exists in zip(names, pipe.execute(), strict=True) if not exists}
            if gone:
                write_keys(self.target.space.client, gone)
            deleted += len(gone)
        return deleted

    def _hold(self, by: str) -> None:
        """Keep the source closed for this run."""
        if self.source.mark().get("by") != by or not self.source.client.pexpire(self.source.keys.epoch, HELD_MS):
            raise MoveFailed(f"{self.source.shown} was closed for {HELD_MS // 1000} s without progress; run it again")

    def _clean(self) -> Iterator[MoveProgress]:
        """Open the target, and delete the source's keys."""
        if self.target.mark().get("state") == "arriving":
            self.target.open()
        seen = 0
        for names in self.source.names():
            write_keys(self.source.space.client, dict.fromkeys(names))
            seen += len(names)
            yield MoveProgress("cleaning", seen, seen)


def _moves(rest: bytes) -> bool:
    name = rest.decode("utf-8", "replace")
    return name not in _OF_SERVER and not name.startswith(_OF_PROCESSES)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
