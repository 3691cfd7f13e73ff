"""Builds what a cell of several asks about its tenants; loaded where there are several."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from brainq.people.tenant_gate import TenantGate
from brainq.settings.deployment import Settings
from brainq.state.tenant_keys import RedisMovedWords
from brainq.store.database import Database
from brainq.store.engine import make_engine
from brainq.store.late_rows import LateRows
from brainq.store.repositories.cells import Tombstones, make_cell_tables

if TYPE_CHECKING:
    from brainq.wiring.wiring import Wiring

CONNECTIONS = 2  # to another cell: late rows are few


def make_tenant_gate(wiring: Wiring) -> TenantGate:
    store = wiring.store
    make_cell_tables(store.engine)
    return TenantGate(
        tombstones=Tombstones(store.database),
        words=RedisMovedWords(wiring.state.scripts),
        late=LateRows(store.database, OtherDatabases(wiring.settings).of),
    )


class OtherDatabases:
    """The databases of all cells, each opened when a row is first sent there. Thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self._urls = {cell.name: cell.sql_url.get_secret_value() for cell in settings.all_cells()}
        self._open: dict[str, Database] = {}
        self._lock = threading.Lock()

    def of(self, cell: str) -> Database:
        """Raises KeyError for a cell that this process was not told of."""
        with self._lock:
            if cell not in self._open:
                self._open[cell] = Database(make_engine(self._urls[cell], pool_size=CONNECTIONS))
            return self._open[cell]
