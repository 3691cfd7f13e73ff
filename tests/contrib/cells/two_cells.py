"""Two cells in one process: a Redis server and a database each, and a pump that does the work of each."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brainq.client.client import Client
from brainq.contracts.cell import hashed_cell
from brainq.contrib.cells import asking
from brainq.runtime.settings.deployment import load_settings
from tests.support.pump import QUICK, Pump, sqlite_url
from tests.support.server import RedisServer

NAMES = ("a", "b")


@dataclass(frozen=True)
class TwoCells:
    """
    cells   as BRAINQ_CELLS has them
    pumps   by name; each is a worker of its cell, and its client is a front of both
    """

    cells: str
    pumps: dict[str, Pump]
    brain: Any

    def front(self) -> Client:
        """A client that knows nothing yet."""
        return Client(load_settings(**{**QUICK, "cells": self.cells}), self.brain)


def tenant_in(cell: str, number: int = 0) -> str:
    """A tenant that is hashed to this cell."""
    found = (f"t{n}:" for n in range(1000) if hashed_cell(f"t{n}:", NAMES) == cell)
    return [next(found) for _ in range(number + 1)][number]


@contextmanager
def patient() -> Generator[None]:
    """A cell that is slow, as on a busy machine, is not taken for away; one that refuses is."""
    before = asking.ANSWER_S
    asking.ANSWER_S = 60.0
    try:
        yield
    finally:
        asking.ANSWER_S = before


@contextmanager
def two_cells(brain: Any, redis_urls: dict[str, str], directory: Path) -> Generator[TwoCells]:
    said: dict[str, dict[str, str]] = {}
    for name in NAMES:
        (directory / name).mkdir()
        said[name] = {"redis": redis_urls[name], "sql": sqlite_url(directory / name)}
    cells = json.dumps(said)
    with patient(), ExitStack() as stack:
        pumps = {
            name: stack.enter_context(
                Pump(brain, said[name]["redis"], said[name]["sql"], owner=name, cells=cells, cell=name)
            )
            for name in NAMES
        }
        yield TwoCells(cells, pumps, brain)


@contextmanager
def two_servers() -> Generator[dict[str, RedisServer]]:
    """Servers of a test's own, that it may stop."""
    servers = {name: RedisServer().start() for name in NAMES}
    try:
        yield servers
    finally:
        for server in servers.values():
            server.stop()
