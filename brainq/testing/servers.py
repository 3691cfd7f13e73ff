"""The Redis and the SQLite of the tests of one process: started once, and empty for each run."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache, partial
from pathlib import Path
from typing import Any

from sqlalchemy import event

from brainq.adapters.redis.connection import Client, make_pool
from brainq.adapters.redis.doorbells import Doorbells
from brainq.adapters.sql.store import Store
from brainq.app.devserver.redis_server import EmbeddedServer
from brainq.app.wiring import Wiring
from brainq.app.wiring.state import RedisState
from brainq.runtime.settings.deployment import Settings
from brainq.testing.clock import SHIFTED_NOW, ClockedClient, MovedClock, sql_strftime, with_clock

RAM = Path("/dev/shm")


class TestServers:
    """An embedded Redis that keeps nothing, and a template of the tables. They end with the process."""

    __test__ = False

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="brainq-", dir=RAM if RAM.is_dir() else None))
        self._redis = EmbeddedServer(self.directory, unix_socket=self.directory / "s", durable=False)
        atexit.register(self._stop)
        self.redis_url = self._redis.start()
        self._template = self.directory / "template.db"
        Store.open(f"sqlite:///{self._template}").close()

    def empty(self) -> None:
        """Remove what earlier runs left in Redis and SQLite."""
        path = self.directory / "brainq.db"
        for old in self.directory.glob("brainq.db*"):
            old.unlink()
        shutil.copyfile(self._template, path)
        client = Client(connection_pool=make_pool(self.redis_url))
        client.flushall()
        client.close()
        client.connection_pool.disconnect()

    @property
    def sql_url(self) -> str:
        return f"sqlite:///{self.directory / 'brainq.db'}"

    def _stop(self) -> None:
        self._redis.stop()
        shutil.rmtree(self.directory, ignore_errors=True)


@cache
def test_servers() -> TestServers:
    """Return those of this process. Raises SetupError if there is no Redis server to start."""
    return TestServers()


class ClockedState(RedisState):
    """The Redis adapters of a test run, whose scripts and events read the clock that the test moves."""

    def __init__(self, wiring: Wiring, clock: MovedClock) -> None:
        self._clock = clock
        super().__init__(wiring)

    def _client(self, url: str) -> Client:
        client = ClockedClient(connection_pool=super()._client(url).connection_pool)
        client.follow(self._clock)
        return client

    def _doorbells(self, settings: Settings) -> Doorbells:
        return with_clock(super()._doorbells(settings), SHIFTED_NOW)


def follow_clock(wiring: Wiring, clock: MovedClock) -> None:
    """Build the wiring's Redis and SQL by the clock of a run. Call it before either is used."""
    built: dict[str, Any] = wiring.__dict__
    store = built["store"] = Store.open(wiring.settings.sql_address, migrate=False)

    def on_connect(connection: Any, _record: Any) -> None:
        connection.create_function("strftime", -1, partial(sql_strftime, clock.now_ms))
        connection.execute("PRAGMA synchronous=OFF")

    event.listen(store.engine, "connect", on_connect)
    store.engine.dispose()  # what was connected before goes by another clock
    built["state"] = ClockedState(wiring, clock)
