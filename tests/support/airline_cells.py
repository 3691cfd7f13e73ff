"""The airline's brain over two cells: two Redis, two databases, the workers of both, and one client before them."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from brainq import Client
from brainq.app.devserver.local_fleet import POOLS, LocalFleet
from brainq.app.devserver.redis_server import EmbeddedServer
from brainq.client.connection import cells_of
from brainq.runtime.settings import load_settings
from examples.airline.agent import Options, make_brain
from examples.airline.database import AirlineDatabase, make_database
from examples.airline.playing import PAUSE_WITH_KILLS_S, SHORT_LEASES, Stage
from tests.support.zygote import fork_celery

ROOT = Path(__file__).parents[2]
APP = "examples.airline.agent:brain"
NAMES = ("a", "b")
WORKERS_WITH_KILLS = 2  # a pool and cell, so that one works while the other starts


@dataclass(frozen=True, slots=True)
class CellsStage:
    """The workers of all cells as one fleet (`stage`), and the value of BRAINQ_CELLS (`cells`)."""

    stage: Stage
    cells: str
    options: Options

    def front(self) -> Client:
        """Return a client that knows no tenant yet."""
        return Client(load_settings(app=APP, cells=self.cells), make_brain(self.options))


@contextmanager
def two_airline_cells(recorded: Path, *, kills: bool) -> Generator[CellsStage]:
    """Yield the stage in a temporary directory. With `kills`, each pool has two workers, and leases are short."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bq-air-")))
        options = Options(recorded, directory / "airline.db", True, PAUSE_WITH_KILLS_S if kills else 0.0)
        make_database(options.database)
        servers = {name: stack.enter_context(EmbeddedServer(directory / name, durable=False)) for name in NAMES}
        cells = json.dumps(
            {name: {"redis": server.url, "sql": f"sqlite:///{directory / name}.db"} for name, server in servers.items()}
        )
        settings = load_settings(app=APP, cells=cells)
        client = stack.enter_context(Client(settings, make_brain(options)))
        for _, wiring in cells_of(client).each():
            wiring.warm_up()  # makes its database, which may take longer than a question to it
        database = AirlineDatabase(options.database)
        stack.callback(database.close)
        fleet = stack.enter_context(_fleet(directory, cells, options, kills=kills))
        yield CellsStage(Stage(client, fleet, database, options), cells, options)


def _fleet(directory: Path, cells: str, options: Options, *, kills: bool) -> LocalFleet:
    shared = {
        **(SHORT_LEASES if kills else {}),
        **options.environment(),
        "BRAINQ_APP": APP,
        "BRAINQ_CELLS": cells,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])),
    }
    count = WORKERS_WITH_KILLS if kills else 1
    fleets = [
        LocalFleet(
            directory / "workers",
            {**shared, "BRAINQ_CELL": name},
            workers=dict.fromkeys(POOLS, count),
            spawn=fork_celery,
            label=f"{name}-",
        )
        for name in NAMES
    ]
    fleets[0].workers += fleets[1].workers
    return fleets[0]
