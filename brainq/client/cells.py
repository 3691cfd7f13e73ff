"""The cells as an operator sees them: which cells answer, their tenants, turns and workers, and the
moves in progress.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from brainq.adapters.redis.slot_primary import SlotPrimary
from brainq.app.wiring import Wiring
from brainq.app.wiring.cells import Cells
from brainq.client.connection import Connection
from brainq.contracts.answers import Answers
from brainq.contracts.cell import Move
from brainq.contracts.fleet import CellMove, CellsState, CellState, Fleet
from brainq.fleet.snapshot import read_fleet
from brainq.runtime.settings.cluster_url import CLUSTER_SCHEMES, parse_cluster_url
from brainq.runtime.settings.deployment import Settings
from brainq.runtime.text.service_url import host_in_url, without_password


class CellAnswer(NamedTuple):
    """The answer of a cell: its fleet, and on a Redis Cluster the slot of its keys and the primary that has it."""

    fleet: Fleet
    slot: int | None = None
    node: str = ""


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
    found = cells.ask(_ask_cell)
    facts = None if cells.names[0] in found.away else cells.directory_facts()
    return cells_state([(name, wiring.settings) for name, wiring in cells.each()], found, facts)


def cells_state(
    cells: Sequence[tuple[str, Settings]],
    found: Answers[CellAnswer],
    facts: tuple[dict[str, int], Sequence[Move]] | None,
) -> CellsState:
    """Return the state of all cells. Pure.

    facts: the number of tenants of each cell, and the moves in progress. None if the home cell did not answer.
    """
    tenants, moves = facts or ({}, ())
    answered = dict(found.answers)
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


def _ask_cell(wiring: Wiring) -> CellAnswer:
    wiring.store.ping()
    fleet = read_fleet(wiring)
    if not wiring.redis_url.startswith(CLUSTER_SCHEMES):
        return CellAnswer(fleet)
    slot = SlotPrimary(parse_cluster_url(wiring.redis_url))
    host, port = slot.discover_master(slot.service)
    return CellAnswer(fleet, slot.slot, f"{host_in_url(host)}:{port}")


def _cell_state(
    name: str, settings: Settings, answer: CellAnswer | None, *, is_home: bool, tenants: int | None
) -> CellState:
    redis = without_password(settings.redis_url.get_secret_value()) if settings.redis_url else ""
    state = CellState(name=name, is_home=is_home, is_up=answer is not None, redis=redis, tenants=tenants)
    if answer is None:
        return state
    fleet = answer.fleet
    return state.model_copy(
        update={
            "slot": answer.slot,
            "node": answer.node,
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
