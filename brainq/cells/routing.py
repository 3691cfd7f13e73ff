"""Several cells: each tenant's questions go to the cell that the directory has for it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property

from brainq.brain.brains import Brains
from brainq.cells.asking import ask_each
from brainq.cells.cells import Cells
from brainq.cells.directory import KnownTenants
from brainq.contracts.cell import Placement, birth_cell, tenant_key
from brainq.contracts.rows import TurnRow
from brainq.errors import CellUnreachable, InvalidInput, TenantMoved, TurnNotFound
from brainq.settings.deployment import Settings
from brainq.store.database import Database
from brainq.store.engine import make_engine
from brainq.store.repositories.cells import Directory, make_cell_tables
from brainq.wiring import Wiring

DIRECTORY_ANSWER_S = 1.0  # a home that hangs must not hold up the tenants of others
DIRECTORY_CONNECTIONS = 4


class RoutedCells(Cells):
    """One wiring a cell, made when it is first used. Thread-safe."""

    is_routed = True

    def __init__(self, settings: Settings, brains: Brains) -> None:
        self._settings = settings
        self._brains = brains
        self._cells = {cell.name: cell for cell in settings.all_cells()}
        self._wirings: dict[str, Wiring] = {}
        self._lock = threading.Lock()
        self._tenants = KnownTenants(lambda: self.directory, tuple(self._cells))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._cells)

    @property
    def home(self) -> Wiring:
        return self.of_name(self.names[0])

    @cached_property
    def directory(self) -> Directory:
        """Home's, on connections of its own that wait a second at most."""
        home = self._cells[self.names[0]]
        engine = make_engine(
            home.sql_url.get_secret_value(), pool_size=DIRECTORY_CONNECTIONS, answer_s=DIRECTORY_ANSWER_S
        )
        _ = self.home.store  # its schema, which the directory looks into, too
        make_cell_tables(engine)
        return Directory(Database(engine))

    def of_session(self, session_id: str) -> Wiring:
        return self.of_name(self._tenants.cell_of(tenant_key(session_id)))

    def settle(self, session_id: str) -> Wiring:
        return self.of_name(self._tenants.settle(tenant_key(session_id)))

    def of_turn(self, turn_id: str) -> Wiring:
        row = self.turn_row(turn_id)
        if row is None:
            raise TurnNotFound(f"no turn {turn_id!r} in any cell; `brainq list` shows the newest ones")
        return self.of_session(row.session_id)

    def turn_row(self, turn_id: str) -> TurnRow | None:
        born = birth_cell(turn_id, self.names)
        others = self.names
        if born is not None:
            asked = ask_each(
                ((born, self.of_name(born)),), lambda wiring: wiring.store.turns.get(turn_id), bound_s=None
            )
            if asked.answers and asked.answers[0][1] is not None:
                return asked.answers[0][1]
            others = tuple(name for name in self.names if name != born or asked.away)
        asked = ask_each(
            [(name, self.of_name(name)) for name in others], lambda wiring: wiring.store.turns.get(turn_id)
        )
        found = next((row for _, row in asked.answers if row is not None), None)
        if found is None and asked.away:
            raise CellUnreachable(asked.away[0], f"turn {turn_id!r} may be there, and is in no other")
        return found

    def of_name(self, name: str) -> Wiring:
        wiring = self._wirings.get(name)
        if wiring is not None:
            return wiring
        if name not in self._cells:
            raise InvalidInput("cell", f"{name!r} is not one of {', '.join(self._cells)}")
        with self._lock:
            if name not in self._wirings:
                self._wirings[name] = Wiring(self._settings.of_cell(self._cells[name]), self._brains)
            return self._wirings[name]

    def each(self) -> Sequence[tuple[str, Wiring]]:
        return [(name, self.of_name(name)) for name in self._cells]

    def learn(self, moved: TenantMoved) -> None:
        self._tenants.learn(moved.tenant, Placement(moved.cell, moved.epoch))

    def look_again(self, session_id: str) -> bool:
        return self._tenants.look_again(tenant_key(session_id))

    def close(self) -> None:
        for wiring in self._wirings.values():
            wiring.close()
