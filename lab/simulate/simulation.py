"""The runner of worlds, one after another on one Redis server and one SQLite file."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Self
from unittest import mock

from sqlalchemy import event

import brainq.adapters.sql.store as store_module
from brainq.adapters.redis.keys import Keys
from brainq.adapters.redis.scripts import Scripts
from brainq.adapters.sql.store import Store
from brainq.app.devserver.redis_server import EmbeddedServer
from brainq.app.wiring import doorbells
from brainq.runtime.settings.deployment import load_settings
from brainq.testing.clock import sql_strftime
from lab.simulate.clock import virtual_time, with_virtual_clock
from lab.simulate.faults import Chances
from lab.simulate.hub import Hub, Task
from lab.simulate.process import Servers
from lab.simulate.report import Report
from lab.simulate.wires import VirtualClient, virtual_database
from lab.simulate.world import World

TURNS_A_WORLD = 250
RAM = Path("/dev/shm")


def sizes_of(turns: int) -> list[int]:
    """Return the number of turns of each world, for `turns` in all."""
    whole, rest = divmod(turns, TURNS_A_WORLD)
    return [TURNS_A_WORLD] * whole + [rest] * (rest > 0)


class Simulation:
    """The worlds of one server, which stops when the block ends.

    mutate   returns the text of a script, (name, text) -> text; a test seeds a bug with it
    """

    def __init__(self, mutate: Callable[[str, str], str] = lambda name, text: text) -> None:
        self._mutate = mutate
        self._directory = Path(tempfile.mkdtemp(prefix="bq-", dir=RAM if RAM.is_dir() else None))
        self._server = EmbeddedServer(self._directory, unix_socket=self._directory / "s", durable=False)
        self._server.start()
        self._template = self._directory / "template.db"
        Store.open(f"sqlite:///{self._template}").close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._server.stop()
        shutil.rmtree(self._directory, ignore_errors=True)

    def run_world(self, seed: str, turns: int, chances: Chances, report: Report) -> None:
        """Run one world and add it to the report."""
        began_s, began_cpu_s = time.perf_counter(), time.process_time()
        rng = Random(seed)
        worlds: list[World] = []

        def failed(task: Task, failure: Exception) -> None:
            worlds[0].failed(task, failure)

        hub = Hub(rng, failed)
        with virtual_time(hub, rng), self._servers(hub, worlds) as servers:
            worlds.append(World(seed, turns, servers, rng, chances))
            worlds[0].run()
        world = worlds[0]
        report.worlds += 1
        report.turns += turns
        report.virtual_s += world.virtual_s
        report.took_s += time.perf_counter() - began_s
        report.cpu_s += time.process_time() - began_cpu_s
        report.fired.update(world.faults.fired)
        report.endings.update(world.endings)
        report.effects.update(world.ledger.counts)
        report.continued.update(world.events.counts)
        report.digests.append(world.digest)
        if not report.broken:
            report.trace = list(world.shown)
        report.broken += [f"{seed}: {what}" for what in world.broken]

    @contextmanager
    def _servers(self, hub: Hub, worlds: list[World]) -> Generator[Servers]:
        path, socket_path = self._directory / "brainq.db", str(self._directory / "s")
        for old in self._directory.glob("brainq.db*"):
            old.unlink()
        shutil.copy(self._template, path)
        settings = load_settings(
            redis_url=f"unix://{socket_path}",
            sql_url=f"sqlite:///{path}",
            max_live_turns=16,
            data_dir=str(self._directory),
        )
        trips = _TripsOf(worlds)
        client = VirtualClient(f"unix://{socket_path}?db=0", hub, trips)
        client.now([("FLUSHALL",)])
        keys = Keys(settings.prefix)
        scripts = Scripts(client, keys, with_virtual_clock(doorbells(settings)))
        for name, script in scripts.loaded.items():
            script.load(self._mutate(name, script.text))
        client.now([("SCRIPT", "LOAD", script.text) for script in scripts.loaded.values()])
        client.names.update({script.sha: name for name, script in scripts.loaded.items()})

        def on_connect(connection: Any, _record: Any) -> None:
            connection.create_function("strftime", -1, partial(sql_strftime, lambda: hub.now_us // 1000))
            connection.execute("PRAGMA synchronous=OFF")

        with mock.patch.object(store_module, "Database", partial(virtual_database, trips=trips)):
            store = Store.open(settings.sql_url.get_secret_value(), migrate=False)
        event.listen(store.engine, "connect", on_connect)
        store.engine.dispose()
        try:
            yield Servers(
                hub=hub,
                settings=settings,
                socket_path=socket_path,
                client=client,
                scripts=scripts,
                store=store,
                ringing=frozenset(n for n, s in scripts.loaded.items() if "bell_text(" in s.text),
                publishing=frozenset(n for n, s in scripts.loaded.items() if "'PUBLISH'" in s.text),
            )
        finally:
            store.close()
            client.close()
            client.connection_pool.disconnect()


@dataclass
class _TripsOf:
    """The trips of the current world, once there is one."""

    worlds: list[World]

    def before(self, server: str, what: str) -> str:
        return self.worlds[0].before(server, what) if self.worlds else ""

    def after(self, server: str, what: str, reply: object) -> str:
        return self.worlds[0].after(server, what, reply) if self.worlds else ""
