"""The cells as an operator sees them: which answer, how many tenants each has, what runs there, moves under way."""

from __future__ import annotations

from collections.abc import Sequence

from brainq.cells.cells import Answers, Cells
from brainq.client.connection import Connection
from brainq.contracts.cell import Move
from brainq.contracts.fleet import CellMove, CellsState, CellState, Fleet
from brainq.fleet.snapshot import read_fleet
from brainq.settings.deployment import Settings
from brainq.store.repositories.cells import Directory, Moves
from brainq.store.tables.cell_tables import CELL_TABLES, tenant_cells
from brainq.text.service_url import without_password
from brainq.wiring import Wiring

DirectoryFacts = tuple[dict[str, int], Sequence[Move]]
"""How many tenants each cell has, and the moves under way."""


class CellVerbs:
    """What a Client says of cells."""

    _connection: Connection

    def cells(self) -> CellsState:
        """Each cell: whether it answers, its tenants, turns and workers; and moves under way. One that does
        not answer within a second is away. A deployment of one is one cell, named "" unless BRAINQ_CELLS names it."""
        return self._connection.read_all(read_cells)


def read_cells(cells: Cells) -> CellsState:
    """See `Client.cells`."""
    fleets = cells.ask(_fleet_of)
    home = cells.names[0]
    facts = cells.ask(_directory_facts) if cells.is_routed and home not in fleets.away else None
    return cells_state([(name, wiring.settings) for name, wiring in cells.each()], fleets, facts)


def cells_state(
    cells: Sequence[tuple[str, Settings]],
    fleets: Answers[Fleet],
    facts: Answers[DirectoryFacts | None] | None,
) -> CellsState:
    """What was answered, put together. Pure.

    facts   home's; None where home was not asked
    """
    found = None if facts is None else next((known for known in facts.values if known is not None), None)
    tenants, moves = found or ({}, ())
    answered = dict(fleets.answers)
    return CellsState(
        cells=tuple(
            _cell_state(
                name,
                settings,
                answered.get(name),
                is_home=number == 0,
                tenants=None if found is None else tenants.get(name, 0),
            )
            for number, (name, settings) in enumerate(cells)
        ),
        moves=tuple(_cell_move(move) for move in moves),
        directory="away" if found is None and len(cells) > 1 else "up",
    )


def _fleet_of(wiring: Wiring) -> Fleet:
    wiring.store.ping()
    return read_fleet(wiring)


def _directory_facts(wiring: Wiring) -> DirectoryFacts | None:
    """None of another cell than home, which has the directory."""
    cells = wiring.settings.all_cells()
    if wiring.settings.cell != cells[0].name:
        return None
    if not CELL_TABLES.has(wiring.store.engine, tenant_cells):
        return {}, ()  # no turn was submitted yet
    return Directory(wiring.store.database).counts(), Moves(wiring.store.database).all()


def _cell_state(name: str, settings: Settings, fleet: Fleet | None, *, is_home: bool, tenants: int | None) -> CellState:
    redis = without_password(settings.redis_url.get_secret_value()) if settings.redis_url else ""
    state = CellState(name=name, is_home=is_home, is_up=fleet is not None, redis=redis, tenants=tenants)
    if fleet is None:
        return state
    return state.model_copy(
        update={
            "active": fleet.turns.active,
            "parked": fleet.turns.parked,
            "waiting": fleet.turns.queued + fleet.turns.accepted,
            "workers": sum(len(pool.workers) for pool in fleet.pools),
        }
    )


def _cell_move(move: Move) -> CellMove:
    return CellMove(
        tenant=move.tenant,
        from_cell=move.from_cell,
        to_cell=move.to_cell,
        phase=move.phase,
        started_at=move.started_at,
        error=move.error,
    )
