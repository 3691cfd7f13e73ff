"""The cells as a client has them: which wiring a session or a turn goes to, and all of them.

`Cells` is a deployment of one, which gives its one wiring to everything. `brainq.cells.routing` has several, and is
loaded where `BRAINQ_CELLS` names several.
"""

from __future__ import annotations

from collections.abc import Sequence

from brainq.brain.brains import Brains
from brainq.contracts.rows import TurnRow
from brainq.errors import TenantMoved
from brainq.settings.deployment import Settings
from brainq.wiring import Wiring


class Cells:
    """One cell. What it is asked costs nothing."""

    is_routed = False
    """Whether there are several."""

    def __init__(self, wiring: Wiring, name: str = "") -> None:
        self._wiring = wiring
        self._name = name

    @property
    def names(self) -> tuple[str, ...]:
        """In their order; the first is home. `("",)` for one cell without a name."""
        return (self._name,)

    @property
    def home(self) -> Wiring:
        """The first cell: its SQL has the directory, moves under way, and tokens."""
        return self._wiring

    def of_session(self, session_id: str) -> Wiring:
        """The cell of this session's tenant, for what reads. A tenant that is unknown stays so.

        Raises CellUnreachable where an unknown tenant cannot be looked up.
        """
        return self._wiring

    def settle(self, session_id: str) -> Wiring:
        """As `of_session`, for what begins something: an unknown tenant is written down first."""
        return self._wiring

    def of_turn(self, turn_id: str) -> Wiring:
        """The cell of the turn with this id. Raises TurnNotFound, or CellUnreachable where a cell that may have it does
        not answer."""
        return self._wiring

    def turn_row(self, turn_id: str) -> TurnRow | None:
        """The turn's row, wherever it is; None where no cell has it. Raises as `of_turn`."""
        return self._wiring.store.turns.get(turn_id)

    def of_name(self, name: str) -> Wiring:
        """The cell of this name. Raises InvalidInput."""
        return self._wiring

    def each(self) -> Sequence[tuple[str, Wiring]]:
        """All of them by name, home first. Nothing is asked of them here."""
        return ((self._name, self._wiring),)

    def learn(self, moved: TenantMoved) -> None:
        """A cell said that the tenant has left it: ask there from now on."""

    def look_again(self, session_id: str) -> bool:
        """Ask the directory anew where a session is, because its cell does not know what it should; True where it is
        elsewhere by now."""
        return False

    def close(self) -> None:
        """Close every connection that was opened."""
        self._wiring.close()


def open_cells(settings: Settings, brains: Brains, redis_url: str = "") -> Cells:
    """The cells of a deployment; each connects when it is first used.

    redis_url   in place of the settings', of a deployment of one
    """
    cells = settings.all_cells()
    if len(cells) > 1:
        from brainq.cells.routing import RoutedCells

        return RoutedCells(settings, brains)
    if cells:
        return Cells(Wiring(settings.of_cell(cells[0]), brains), cells[0].name)
    return Cells(Wiring(settings, brains, redis_url=redis_url))
