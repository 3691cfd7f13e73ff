"""Builds what a cell of several asks about its tenants; loaded where there are several."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from brainq.contracts.cell import Placement
from brainq.errors import CellUnreachable
from brainq.people.tenant_gate import TenantGate
from brainq.settings.deployment import Settings
from brainq.state.tenant_keys import RedisMovedWords
from brainq.store.database import Database
from brainq.store.engine import is_sql_unavailable, make_engine
from brainq.store.late_rows import LateRows
from brainq.store.repositories.cells import Directory, Tombstones
from brainq.store.store import make_database
from brainq.store.tables.cell_tables import CELL_TABLES

if TYPE_CHECKING:
    from brainq.wiring.wiring import Wiring

CONNECTIONS = 2  # to another cell: late rows are few


def make_tenant_gate(wiring: Wiring) -> TenantGate:
    store, databases = wiring.store, OtherDatabases(wiring.settings)
    CELL_TABLES.make(store.engine)
    return TenantGate(
        tombstones=Tombstones(store.database),
        words=RedisMovedWords(wiring.state.scripts),
        late=LateRows(store.database, databases.of),
        directory=HomeDirectory(databases, wiring.settings.all_cells()[0].name, Directory(store.database)),
        cell=wiring.settings.cell,
    )


class HomeDirectory:
    """Home's, for what comes to a cell without a front. Fits `ports.tenants.TenantDirectory`."""

    def __init__(self, databases: OtherDatabases, home: str, own: Directory) -> None:
        self._databases = databases
        self._home = home
        self._own = own

    def settle(self, tenant: str, cell: str) -> Placement:
        """While home is away a tenant that this cell has turns of is here; CellUnreachable for any other."""
        try:
            return Directory(self._databases.of(self._home)).settle(tenant, cell)
        except Exception as failure:
            if not is_sql_unavailable(failure):
                raise
            if self._own.lived_here(tenant):
                return Placement(cell, 0)
            raise CellUnreachable("", f"tenant {tenant!r} is not known here; send it again") from failure


class OtherDatabases:
    """The databases of all cells, each opened when a row is first sent there. Thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self._cells = {cell.name: settings.of_cell(cell) for cell in settings.all_cells()}
        self._open: dict[str, Database] = {}
        self._lock = threading.Lock()

    def of(self, cell: str) -> Database:
        """Raises KeyError for a cell that this process does not know."""
        with self._lock:
            if cell not in self._open:
                settings = self._cells[cell]
                engine = make_engine(settings.sql_address, pool_size=CONNECTIONS)
                self._open[cell] = make_database(engine, settings.key_place)
            return self._open[cell]
