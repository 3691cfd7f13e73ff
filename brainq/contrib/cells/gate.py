"""The gate of a cell. It refuses sessions whose tenant has left.

The cell itself decides, independently of what its callers know. SQL's tombstones are read before a turn or input is
accepted, and those in Redis by the script that would begin the turn. Therefore a front that does not know of a move
cannot begin a turn in the cell that the tenant left.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from brainq.adapters.redis.tenant_keys import RedisMovedWords
from brainq.adapters.sql.database import Database
from brainq.adapters.sql.engine import is_sql_unavailable, make_engine
from brainq.adapters.sql.store import make_database
from brainq.adapters.sql.tables.cell_tables import CELL_TABLES
from brainq.app.wiring import Wiring
from brainq.contracts.cell import Placement, tenant_key
from brainq.contrib.cells.late_rows import LateRows
from brainq.contrib.cells.placements import Directory, Tombstones
from brainq.engine.people.tenant_places import TenantPlaces
from brainq.errors import CellUnreachable
from brainq.runtime.observe.logs import logger
from brainq.runtime.settings.deployment import Settings

CONNECTIONS = 2  # Connections to another cell. Few rows arrive late.
log = logger("brainq.people")


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantGate(TenantPlaces):
    """The places of tenants, as recorded in the cell that this process serves."""

    tombstones: Tombstones
    words: RedisMovedWords
    late: LateRows
    directory: HomeDirectory
    cell: str

    def look(self, session_id: str) -> Placement | None:
        return self.tombstones.of(tenant_key(session_id))

    def arrivals(self) -> Mapping[str, int]:
        return self.tombstones.arrivals()

    def arrived(self, tenant: str, mark: int) -> bool:
        return self.tombstones.arrived(tenant, mark)

    def settle(self, session_id: str) -> None:
        if self.away(session_id) is not None:
            return
        tenant = tenant_key(session_id)
        placement = self.directory.settle(tenant, self.cell)
        if placement.cell != self.cell:
            self.tombstones.put(tenant, placement.cell, placement.epoch)
            self.words.put(tenant, placement)

    def send_turn(self, turn_id: str, cell: str) -> None:
        self.late.send_turn(turn_id, cell)
        log.info("a turn was sent after its tenant to the new cell", turn_id=turn_id, cell=cell)

    def send_input(self, session_id: str, client_message_id: str, cell: str) -> None:
        self.late.send_input(session_id, client_message_id, cell)

    def restore(self) -> int:
        known = self.words.all()
        tombstones = self.tombstones.all()
        self.words.forget(known, tombstones)
        return self.words.restore(tombstones)


def open_gate(wiring: Wiring) -> TenantGate:
    """Open the gate of the cell that this process serves."""
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
    """The home cell's directory, for turns and input that reach a cell without a front."""

    def __init__(self, databases: OtherDatabases, home: str, own: Directory) -> None:
        self._databases = databases
        self._home = home
        self._own = own

    def settle(self, tenant: str, cell: str) -> Placement:
        """Return the tenant's placement. A tenant without an entry gets one for `cell`.

        While the home cell does not answer, a tenant that has turns in this cell counts as placed here. Raises
        CellUnreachable for any other tenant.
        """
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
        """Return the database of a cell. Raises KeyError if this process does not know the cell."""
        with self._lock:
            if cell not in self._open:
                settings = self._cells[cell]
                engine = make_engine(settings.sql_address, pool_size=CONNECTIONS)
                self._open[cell] = make_database(engine, settings.key_place)
            return self._open[cell]
