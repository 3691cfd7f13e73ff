"""A stage: an embedded Redis, a SQLite file, the four pools as processes, and a client. One for each scenario."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from brainq.app.devserver.local_fleet import ALL, POOLS, LocalFleet
from brainq.app.devserver.redis_server import EmbeddedServer, socket_path
from brainq.app.wiring.finalizer import finalizer_runtime
from brainq.client.client import Client
from brainq.client.connection import wiring_of
from brainq.engine.brain.brains import load_brains
from brainq.errors import SetupError
from brainq.runtime.settings.deployment import ENV_PREFIX, load_settings
from lab.bench import brain as reference
from lab.bench.noop_task import DONE_IN

APP = "lab.bench.brain:brain"
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Stage:
    """The Redis, database, client and workers of a scenario."""

    client: Client
    fleet: LocalFleet
    redis_pid: int
    done_in: Path

    @property
    def redis_url(self) -> str:
        return wiring_of(self.client).settings.redis_url.get_secret_value()  # type: ignore[union-attr]

    def pids(self) -> dict[str, int]:
        """Return the process ids by name: each worker, and `redis`."""
        found = {w.name: w.process.pid for w in self.fleet.workers if w.process is not None}
        return {**found, "redis": self.redis_pid}

    def check_alive(self) -> None:
        """Raise SetupError, with the end of the log, if a worker has ended."""
        for worker in self.fleet.workers:
            if not worker.is_running:
                raise SetupError(f"the {worker.name} worker ended:\n{worker.log_tail()}")


def forget_settings() -> None:
    """Take BRAINQ_... out of this process's environment: the benchmark measures the defaults."""
    for name in [name for name in os.environ if name.startswith(ENV_PREFIX)]:
        del os.environ[name]


@contextmanager
def open_client(
    directory: Path, *, task_events: bool = False, app: str = APP
) -> Generator[tuple[Client, dict[str, str]]]:
    """Open a client of `app` on its own Redis (append-only file, synced every second) and SQLite file in `directory`.

    Yields the client, and the environment with which workers share both.
    """
    with EmbeddedServer(directory / "redis", unix_socket=socket_path(directory / "redis")) as server:
        sql_url = f"sqlite:///{directory.absolute() / 'bench.db'}"
        settings = load_settings(app=app, redis_url=server.url, sql_url=sql_url, task_events=task_events)
        environment = {
            "BRAINQ_APP": app,
            "BRAINQ_REDIS_URL": server.url,
            "BRAINQ_SQL_URL": sql_url,
            "BRAINQ_TASK_EVENTS": "true" if task_events else "false",
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])),
        }
        with Client(settings, load_brains(app)) as client:
            wiring_of(client).warm_up()
            yield client, environment


@contextmanager
def stage(
    directory: Path,
    *,
    task_events: bool = False,
    latencies_s: Mapping[str, float] | None = None,
    concurrency: Mapping[str, int] | None = None,
    workers: Mapping[str, int] | None = None,
    rates: str = "",
    app: str = APP,
    environment: Mapping[str, str] | None = None,
) -> Generator[Stage]:
    """Start everything, wait until it serves, and stop it again.

    latencies_s   `model`, `read`, `write`
    concurrency   threads a process by pool, and `workers` processes a pool; the defaults unless given. With `all` among
                  `workers`, so many processes serve all pools, in place of a process for each pool
    rates         limits of models, as in BRAINQ_RATES
    environment   more variables of the workers'
    """
    with open_client(directory, task_events=task_events, app=app) as (client, shared):
        steps = finalizer_runtime(wiring_of(client).brains.default).order.names
        if app == APP and steps != reference.FINALIZER_STEPS:
            raise SetupError(
                f"the reference turn has other finalizer steps now: {', '.join(steps)}; "
                "bring FINALIZER_STEPS and final_steps of lab/bench/brain.py in line, two of them writing SQL"
            )
        done_in = directory / "done"
        done_in.mkdir()
        slow = {f"BENCH_{name.upper()}_S": str(value) for name, value in (latencies_s or {}).items()}
        fleet = LocalFleet(
            directory / "workers",
            {**shared, **slow, DONE_IN: str(done_in), "BRAINQ_RATES": rates, **(environment or {})},
            workers=workers,
            concurrency=concurrency,
            pools=(ALL,) if ALL in (workers or {}) else POOLS,
        )
        with fleet:
            yield Stage(client, fleet, int(wiring_of(client).state.redis.info("server")["process_id"]), done_in)
