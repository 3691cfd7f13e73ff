"""A clock that tests move: Redis' own, shifted, for scripts, for the client, and for SQL.

Redis' clock is read in one place, `lua/lib/now.lua`, in whose place another text is pasted. SQLite's clock is
`strftime('now')`, which a connection may define.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from redis import ResponseError

from brainq.adapters.redis.connection import Client
from brainq.adapters.redis.doorbells import Doorbells
from brainq.adapters.redis.script_text import Generated

SHIFT_KEY = "testing_clock_shift"
SHIFTED_NOW = f"""-- Redis TIME in ms, and how far a test has moved it.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000) + (redis.call('GET', '{SHIFT_KEY}') or 0)
"""


@dataclass(frozen=True, slots=True)
class ClockedDoorbells(Doorbells):
    """Those of production; what is generated for scripts has another clock beside it."""

    now: str = ""

    def generated(self) -> Generated:
        return (*Doorbells.generated(self), ("lib/now", self.now))


def with_clock(bells: Doorbells, now: str) -> ClockedDoorbells:
    """Return the doorbells with `now`, the Lua that takes the place of `lib/now`."""
    return ClockedDoorbells(**{name: getattr(bells, name) for name in Doorbells.__dataclass_fields__}, now=now)


def sql_strftime(now_ms: Callable[[], int], form: str, at: str = "now", *shifts: str) -> str:
    """Return SQLite's `strftime` as the tables use it: of `now`, in UTC, plus numbers of seconds."""
    assert at == "now", at
    moment_ms = now_ms()
    for shift in shifts:
        number, unit = shift.split()
        assert unit == "seconds", shift
        moment_ms += round(float(number) * 1000)
    if form == "%s":
        return str(moment_ms // 1000)
    return f"{datetime.fromtimestamp(moment_ms // 1000, UTC):%Y-%m-%d %H:%M:%S}.{moment_ms % 1000:03}"


class MovedClock:
    """The time of one run: that of this machine, plus `shift_ms`."""

    def __init__(self) -> None:
        self.shift_ms = 0

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self.shift_ms

    def moved(self, reply: Any) -> tuple[int, int]:
        """Return a reply of Redis to TIME as if it had been given now."""
        micros = int(reply[0]) * 1_000_000 + int(reply[1]) + self.shift_ms * 1000
        return micros // 1_000_000, micros % 1_000_000


class ClockedClient(Client):
    """brainq's client. TIME is answered by the clock of a run."""

    def follow(self, clock: MovedClock) -> None:
        self._clock = clock
        self.set_response_callback("TIME", clock.moved)

    def replies(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        found = super().replies(commands)
        return [
            self._clock.moved(reply) if command[0] == "TIME" and not isinstance(reply, ResponseError) else reply
            for command, reply in zip(commands, found, strict=True)
        ]


def move(client: Client, clock: MovedClock, by_ms: int) -> None:
    """Move the clock forward, and with it the ends of all lifetimes of keys."""
    clock.shift_ms += by_ms
    client.many([("SET", SHIFT_KEY, clock.shift_ms)])
    keys = cast("list[str]", list(client.scan_iter(count=1000)))
    left = client.many([("PTTL", key) for key in keys]) if keys else []
    ends = [("PEXPIRE", key, max(1, ms - by_ms)) for key, ms in zip(keys, left, strict=True) if ms > 0]
    if ends:
        client.many(ends)
