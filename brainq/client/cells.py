"""The cells as an operator sees them: which cells answer, their tenants, turns and workers, and the
moves in progress.
"""

from __future__ import annotations

from collections.abc import Sequence

from brainq.app.wiring import Wiring
from brainq.app.wiring.cells import Cells
from brainq.client.connection import Connection
from brainq.contracts.answers import Answers
from brainq.contracts.cell import Move
from brainq.contracts.fleet import CellMove, CellsState, CellState, Fleet
from brainq.fleet.snapshot import read_fleet
from brainq.runtime.settings.deployment import Settings
from brainq.runtime.text.service_url import without_password


class CellVerbs:
    """The part of `Client` that describes the cells."""

    _connection: Connection

    def cells(self) -> CellsState:
        """Return the state of each cell (whether it answers, its tenants, turns and workers), and the moves in
        progress.

        A cell that does not answer within a second counts as unreachable. A deployment without BRAINQ_CELLS is one
        cell, named "".
        """
        return self._connection.read_all(read_cells)


def read_cells(cells: Cells) -> CellsState:
    """See `Client.cells`."""
    fleets = cells.ask(_fleet_of)
    facts = None if cells.names[0] in fleets.away else cells.directory_facts()
    return cells_state([(name, wiring.settings) for name, wiring in cells.each()], fleets, facts)


def cells_state(
    cells: Sequence[tuple[str, Settings]], fleets: Answers[Fleet], facts: tuple[dict[str, int], Sequence[Move]] | None
) -> CellsState:
    """Return the state of all cells. Pure.

    facts: the number of tenants of each cell, and the moves in progress. None if the home cell did not answer.
    """
    tenants, moves = facts or ({}, ())
    answered = dict(fleets.answers)
    return CellsState(
        cells=tuple(
            _cell_state(
                name,
                settings,
                answered.get(name),
                is_home=number == 0,
                tenants=None if facts is None or len(cells) == 1 else tenants.get(name, 0),
            )
            for number, (name, settings) in enumerate(cells)
        ),
        moves=tuple(_cell_move(move) for move in moves),
        directory="away" if facts is None else "up",
    )


def _fleet_of(wiring: Wiring) -> Fleet:
    wiring.store.ping()
    return read_fleet(wiring)


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
