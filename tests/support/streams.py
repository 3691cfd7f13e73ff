"""Streams of events written by hand, and the server's view of their readers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

from brainq.adapters.redis.events import Follower
from brainq.adapters.redis.keys import Keys
from brainq.adapters.redis.stream_reader import StreamReader
from brainq.contracts.event import TurnEvent
from tests.support.server import RedisServer

KEYS = Keys("bq:")
SESSION = "s1"


class Tellers:
    """A writer of events of turns of one session, numbered as the scripts do."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self._told: dict[str, int] = {}

    def begin(self, *turns: str) -> None:
        """Make the turns known to Redis."""
        for turn in turns:
            self._server.command("HSET", KEYS.turn(SESSION, turn), "state", "active")

    def tell(self, turn: str, count: int = 1, kind: str = "budget") -> None:
        for _ in range(count):
            number = self._told[turn] = self._told.get(turn, 0) + 1
            key = KEYS.turn(SESSION, turn) + ":events"
            self._server.command("XADD", key, f"{number}-0", "kind", kind, "at", "1", "data", "{}")

    def end(self, turn: str) -> None:
        """Publish the result, and its event."""
        self._server.command("SET", KEYS.turn(SESSION, turn) + ":result", "{}")
        self.tell(turn, kind="result")


@asynccontextmanager
async def reading(url: str, keys: Keys = KEYS, *, patience_s: float = 10.0) -> AsyncGenerator[StreamReader]:
    """Yield a reader. Fails if it leaves a task behind."""
    before = asyncio.all_tasks()
    reader = StreamReader(url, keys, patience_s=patience_s)
    try:
        yield reader
    finally:
        await reader.close()
        assert asyncio.all_tasks() <= before


async def take(follower: Follower, count: int, wait_s: float = 20.0) -> list[int]:
    """Return the numbers of the next events, at least `count`. Fails if nothing comes for `wait_s`."""
    taken: list[int] = []
    while len(taken) < count:
        events = await follower.next(wait_s)
        assert isinstance(events, list), f"{events} after {taken}"
        taken += numbers(events)
    return taken


def numbers(events: Sequence[TurnEvent]) -> list[int]:
    return [event.seq for event in events]


async def until(predicate: Callable[[], object], description: str, timeout_s: float = 20.0) -> None:
    """Wait like `wait_until`, in an event loop."""
    end = time.monotonic() + timeout_s
    while not predicate():
        assert time.monotonic() < end, f"waited {timeout_s:g} s in vain: {description}"
        await asyncio.sleep(0.005)


def readers(server: RedisServer) -> list[str]:
    """Return the ids of the connections that read streams, or that look for their reader."""
    return [line for line in _clients(server) if " lib-name=redis-py(brainq-streams_v" in line]


def blocked(server: RedisServer) -> list[str]:
    """Return the ids of the connections that wait in a blocking read."""
    found = [line for line in readers(server) if "b" in line.split(" flags=")[1].split()[0]]
    return [line.split("id=")[1].split()[0] for line in found]


def kill(server: RedisServer, client_id: str) -> None:
    """Cut a connection off. Fails if there is none."""
    assert server.command("CLIENT", "KILL", "ID", client_id) == ["1"]


def _clients(server: RedisServer) -> list[str]:
    return "".join(server.command("CLIENT", "LIST")).splitlines()
