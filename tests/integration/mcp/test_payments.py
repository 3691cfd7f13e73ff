"""Charges by a payment server, while workers and servers are killed in the middle of them."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from brainq.client.handle import TurnHandle
from brainq.engine.tools.mcp.catalogue import write_catalogue
from tests.integration.mcp.conftest import looked
from tests.support.mcp_servers import payments
from tests.support.wait import wait_until
from tests.support.world import World
from tests.unit.engine.calls.support import is_running

pytestmark = pytest.mark.full
TURNS = 20
WORKER_AFTER, SERVER_AFTER, SERVER_BEFORE, WORKER_BEFORE = "c3", "c8", "c12", "c17"


class Shop:
    """A fleet whose serial workers charge."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key_argument: str) -> None:
        self.folder = tmp_path / "payments"
        self.folder.mkdir()
        catalogue = tmp_path / "lock.json"
        write_catalogue(catalogue, {"payments": looked(payments(self.folder, {}))})
        environment = {
            "BRAINQ_APP": "tests.support.brains.mcp_payments:brain",
            "PAYMENTS": str(self.folder),
            "PAYMENTS_KEY": key_argument,
            "PAYMENTS_CATALOGUE": str(catalogue),
        }
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        workers = {"coordinator": 1, "parallel": 1, "serial": 2, "finalizer": 1}
        self.world = World(tmp_path / "world", workers=workers, environment=environment)

    def waits_at(self, place: str) -> tuple[int, int]:
        """The server that has come to this gate, and the worker that holds it."""
        file = self.folder / f"{place}.waits"
        wait_until(lambda: file.exists() and " " in file.read_text(), f"a charge waits at {place}", 90)
        server, worker = map(int, file.read_text().split())
        assert is_running(server)
        return server, worker

    def kill_server(self, place: str) -> None:
        server, _ = self.waits_at(place)
        os.kill(server, signal.SIGKILL)
        wait_until(lambda: not is_running(server), "the server is gone")
        (self.folder / place).unlink()

    def kill_worker(self, place: str) -> None:
        """Its server, in the middle of a charge, does not outlive it."""
        server, worker = self.waits_at(place)
        self.world.kill_the("serial", worker)
        wait_until(lambda: not is_running(server), "the server of the dead worker is gone")
        (self.folder / place).unlink()
        self.world.launch_dead()

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.folder / "ledger.db")) as ledger:
            return ledger.execute(f"SELECT customer, key FROM {table}").fetchall()

    def charged_under_kills(self) -> dict[str, TurnHandle]:
        """Twenty turns; four charges are cut off, two of them when they are in the ledger."""
        places = [
            (f"after-{WORKER_AFTER}", self.kill_worker),
            (f"after-{SERVER_AFTER}", self.kill_server),
            (f"before-{SERVER_BEFORE}", self.kill_server),
            (f"before-{WORKER_BEFORE}", self.kill_worker),
        ]
        for place, _ in places:
            (self.folder / place).touch()
        self.world.start()
        handles = {f"c{n}": self.world.client.submit(f"s{n}", f"c{n}") for n in range(TURNS)}
        left = dict(places)
        while left:  # the turns run in any order; one charge at a time comes to its gate

            def arrived() -> str | None:
                return next((place for place in left if (self.folder / f"{place}.waits").exists()), None)

            place = wait_until(arrived, f"a charge waits at one of {list(left)}", 90)
            assert place is not None
            left.pop(place)(place)
        for handle in handles.values():
            assert handle.result(timeout_s=120).text == "Done."
        return handles


@pytest.mark.parametrize("key_argument", ["idempotency_key", ""])
def test_twenty_charges_under_kills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key_argument: str) -> None:
    """With the server's argument for keys each is charged exactly once; without it at most once, and what was cut off
    is unknown."""
    shop = Shop(tmp_path, monkeypatch, key_argument)
    try:
        handles = shop.charged_under_kills()
        statuses = {customer: shop.world.status(handle) for customer, handle in handles.items()}
    finally:
        shop.world.stop()
    charged, asked = Counter(customer for customer, _ in shop.rows("charges")), shop.rows("asked")
    if key_argument:
        assert charged == Counter(list(handles))
        assert set(statuses.values()) == {"completed"}
        for customer, handle in handles.items():
            assert {key for one, key in asked if one == customer} == {f"{handle.turn_id}:c1-0"}
        again = Counter(customer for customer, _ in asked)
        assert {customer for customer, times in again.items() if times > 1} == {WORKER_AFTER, SERVER_AFTER}
    else:
        cut = {WORKER_AFTER, SERVER_AFTER, SERVER_BEFORE, WORKER_BEFORE}
        assert charged == Counter(set(handles) - {SERVER_BEFORE, WORKER_BEFORE})
        assert {customer for customer, status in statuses.items() if status == "unknown"} == cut
        assert set(statuses.values()) == {"completed", "unknown"}
        assert {key for _, key in asked} == {None}
