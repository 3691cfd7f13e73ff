"""What tests of failovers share: servers that a test owns, a fleet of workers on them, and a stream that goes on."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import redis

from brainq.adapters.redis.connection import Client as RedisClient
from brainq.adapters.redis.keys import Keys
from brainq.app.devserver.local_fleet import LocalFleet
from brainq.client.client import Client
from brainq.client.handle import TurnHandle
from brainq.contracts.ids import new_turn_id
from brainq.runtime.settings.deployment import load_settings
from tests.support.brains import obedient
from tests.support.brains.obedient import script
from tests.support.pump import sqlite_url
from tests.support.streams import reading, take, until
from tests.support.wait import insist, wait_until
from tests.support.world import APP, ROOT
from tests.support.zygote import fork_celery


class OwnServers:
    """Server processes by their ports, in a temporary directory that ends with them."""

    def __init__(self, prefix: str) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix=prefix))
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self) -> Self:
        """Start the servers, and wait until they work."""
        raise NotImplementedError

    def kill(self, port: int) -> None:
        """SIGKILL a server."""
        process = self._processes.pop(port)
        process.kill()
        process.wait()

    def stop(self) -> None:
        """SIGKILL all servers, and remove their directory."""
        for port in list(self._processes):
            self.kill(port)
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


@contextmanager
def fleet(url: str, directory: Path, **pace: float) -> Generator[Client]:
    """Yield a client of worker processes of all pools, on the Redis at `url`."""
    environment = {
        "BRAINQ_APP": APP,
        "BRAINQ_REDIS_URL": url,
        "BRAINQ_SQL_URL": sqlite_url(directory),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])),
        **{f"BRAINQ_{name.upper()}": str(seconds) for name, seconds in pace.items()},
    }
    settings = load_settings(redis_url=url, sql_url=environment["BRAINQ_SQL_URL"])
    with Client(settings, obedient.brain) as client, LocalFleet(directory / "workers", environment, spawn=fork_celery):
        yield client


def submit(client: Client, name: str, gate: str = "") -> TurnHandle:
    """Submit a turn of a read and a write."""
    calls = [[(tool, {"name": name, "gate": gate, "sleep_s": 0.1})] for tool in ("read", "write")]
    return insist(partial(client.submit, name, script(*calls), turn_id=new_turn_id()))


def follow_through(change: Callable[[], object], url: str, keys: Keys, client: RedisClient) -> list[int]:
    """Return the numbers of the events that a reader gets: three before the change of the primary, three after it."""
    events = keys.turn("s1", "t1") + ":events"

    def write(*numbers: int) -> None:
        for number in numbers:
            wait_until(partial(written, number), f"event {number} is written", 30)

    def written(number: int) -> bool:
        try:
            client.xadd(events, {"kind": "budget", "at": 1, "data": "{}"}, f"{number}-0")
        except redis.RedisError:
            return False
        return True

    async def follow() -> list[int]:
        async with reading(url, keys, patience_s=30.0) as reader:
            follower = reader.follow("s1", "t1", 0)
            seen = await take(follower, 3)
            waiting = asyncio.create_task(take(follower, 3, wait_s=60.0))
            await until(lambda: reader.streams == 1, "it waits")
            await asyncio.to_thread(change)
            await asyncio.to_thread(write, 4, 5, 6)
            return seen + await waiting

    client.hset(keys.turn("s1", "t1"), "state", "active")
    write(1, 2, 3)
    assert client.wait(1, 30_000) >= 1, "the replica has them before it becomes the primary"
    return asyncio.run(follow())
