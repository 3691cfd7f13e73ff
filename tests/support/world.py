"""A small deployment for tests: Redis, SQL and real worker processes of the obedient brain."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from brainq.app.devserver.local_fleet import POOLS, LocalFleet, LocalWorker
from brainq.app.wiring import Wiring
from brainq.client.client import Client
from brainq.client.connection import wiring_of
from brainq.client.handle import TurnHandle
from brainq.contracts.call import ToolTraceEntry
from brainq.contracts.typed_events import Event
from brainq.engine.brain.brains import load_brains
from brainq.runtime.settings.deployment import load_settings
from tests.support.brains import diary
from tests.support.proxy import Proxy
from tests.support.pump import sqlite_url
from tests.support.server import RedisServer
from tests.support.wait import wait_until
from tests.support.zygote import fork_celery

APP = "tests.support.brains.obedient:brain"
ROOT = Path(__file__).parents[2]
SHORT: Mapping[str, str] = {
    "BRAINQ_LEASE_S": "2.5",
    "BRAINQ_BEAT_S": "0.4",
    "BRAINQ_SWEEP_S": "0.2",
    "BRAINQ_RERING_S": "1.0",
    "BRAINQ_RESULT_AFTER_FAILING_S": "1.0",
}


class World:
    """Servers, a fleet and a client. The diary's directory is set in this process's environment, too."""

    def __init__(
        self,
        directory: Path,
        *,
        sql_url: str = "",
        workers: Mapping[str, int] | None = None,
        environment: Mapping[str, str] | None = None,
        log_level: str = "INFO",
        broker_database: int = 0,
        threads: Mapping[str, int] | None = None,
        pace: Mapping[str, float] | None = None,
        durable: bool = False,
        proxied: bool = False,
        pools: Sequence[str] = POOLS,
    ) -> None:
        """`threads` of each worker, and `pace`, settings in seconds, replace those of this file; `durable`: Redis.
        `proxied`: workers reach it through `proxy`. `pools`: as in LocalFleet."""
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.redis = RedisServer(durable=durable).start()
        if durable:  # it is killed, not the machine: nobody waits for a disk
            self.redis.command("CONFIG", "SET", "appendfsync", "no")
        port = int(self.redis.url.rpartition(":")[2].split("/")[0])
        self.proxy = Proxy(("127.0.0.1", port)) if proxied else None
        self.sql_url = sql_url or sqlite_url(directory)
        # A broker of its own: doorbells then go through the outbox.
        elsewhere: dict[str, Any] = {}
        if broker_database:
            elsewhere = {"doorbell": "outbox", "broker_url": f"{self.redis.url.removesuffix('0')}{broker_database}"}
        self.environment = {
            **SHORT,
            **{f"BRAINQ_{name.upper()}": value for name, value in elsewhere.items()},
            **{f"BRAINQ_{name.upper()}": str(value) for name, value in (pace or {}).items()},
            "BRAINQ_APP": APP,
            "BRAINQ_REDIS_URL": f"redis://127.0.0.1:{self.proxy.port}/0" if self.proxy else self.redis.url,
            "BRAINQ_SQL_URL": self.sql_url,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])),
            diary.DIRECTORY: str(directory),
            **(environment or {}),
        }
        counts = {"coordinator": 16, "parallel": 8, "finalizer": 4, **(threads or {})}
        self.fleet = LocalFleet(
            directory / "workers",
            self.environment,
            workers=workers,
            concurrency=counts,
            log_level=log_level,
            pools=pools,
            spawn=fork_celery,
        )
        own_pace = {"lease_s": 2.5, "beat_s": 0.4, "sweep_s": 0.2, "rering_s": 1.0, **(pace or {})}
        self.settings = load_settings(redis_url=self.redis.url, sql_url=self.sql_url, **own_pace, **elsewhere)
        self.client = Client(self.settings, load_brains(self.environment["BRAINQ_APP"]))
        os.environ[diary.DIRECTORY] = str(directory)

    @property
    def wiring(self) -> Wiring:
        return wiring_of(self.client)

    def start(self) -> World:
        self.fleet.start(timeout_s=200.0)
        return self

    def stop(self) -> None:
        self.fleet.stop(grace_s=2.0)
        self.client.close()
        if self.proxy is not None:
            self.proxy.close()
        self.redis.stop()

    def kill_the(self, pool: str, pid: int) -> None:
        """SIGKILL the worker of `pool` that is process `pid`; fails if none is."""
        running = {worker.process.pid: worker for worker in self.fleet.of_pool(pool) if worker.process is not None}
        assert pid in running, f"{pool} is {sorted(running)}, and the work was begun by {pid}"
        self._kill(running[pid])

    def kill_all(self, *pools: str) -> None:
        """SIGKILL every worker of these pools."""
        for pool in pools:
            for worker in self.fleet.of_pool(pool):
                if worker.is_running:
                    self._kill(worker)

    def _kill(self, worker: LocalWorker) -> None:
        self.fleet.kill(worker, signal.SIGKILL)
        assert worker.process is not None
        assert worker.process.returncode == -signal.SIGKILL

    def launch_dead(self) -> None:
        """Start the killed workers again, without waiting for them."""
        for worker in self.fleet.workers:
            if not worker.is_running:
                worker.launch()

    def owner_pid(self, handle: TurnHandle, index: int = 0) -> int:
        """The process that holds a call."""
        return int(self.trace(handle)[index].owner.split("-")[-2])

    def trace(self, handle: TurnHandle) -> tuple[ToolTraceEntry, ...]:
        return self.wiring.state.calls.trace(handle.session_id, handle.turn_id)

    def status(self, handle: TurnHandle, index: int = 0) -> str:
        found = self.trace(handle)
        return found[index].status if len(found) > index else ""

    def done(self, handle: TurnHandle, timeout_s: float = 60.0) -> None:
        """Wait until the finalizer chain and the jobs of its steps are over."""

        def over() -> bool:
            snapshot = handle.snapshot()
            is_over = snapshot is not None and snapshot.awaits == "nobody"
            return is_over and not self.wiring.store.step_jobs.steps_of(handle.turn_id)

        wait_until(over, f"the chain of {handle.turn_id} is finished", timeout_s)

    def all_events(self, handle: TurnHandle) -> list[Event]:
        """Every event of an ended turn; fails if they have gaps or not exactly one final one."""
        found = list(handle.events(timeout_s=60))
        assert [event.seq for event in found] == list(range(1, len(found) + 1))
        assert [event.is_final for event in found].count(True) == 1
        return found

    def row_counts(self, handle: TurnHandle) -> dict[str, Any]:
        """How many rows SQL has of the turn."""
        with self.wiring.store.engine.connect() as connection:
            return {
                table: connection.exec_driver_sql(
                    f"SELECT count(*) FROM {table} WHERE turn_id = '{handle.turn_id}'"
                ).scalar()
                for table in ("messages", "decisions", "calls")
            }
