"""The cells behind a client: which wiring a session or a turn goes to, and all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from brainq.app.wiring.wiring import Wiring
from brainq.contracts.answers import Answers
from brainq.contracts.cell import Move
from brainq.contracts.rows import TurnRow
from brainq.contracts.turn import TurnRequest
from brainq.engine.brain.brains import Brains
from brainq.errors import TurnNotFound
from brainq.runtime.settings.deployment import Settings
from brainq.runtime.settings.extensions import load_extension

T = TypeVar("T")


class Cells:
    """A deployment of one cell, which has every session and turn.

    `brainq.contrib.cells.routing` overrides each method if there are several cells.
    """

    def __init__(self, wiring: Wiring, name: str = "") -> None:
        self._wiring = wiring
        self._name = name

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the cells, the home cell first. `("",)` means one cell without a name."""
        return (self._name,)

    @property
    def own(self) -> str:
        """The name of the cell that this process serves (BRAINQ_CELL), or "" if it serves all."""
        return self._name

    @property
    def home(self) -> Wiring:
        """The first cell. Its SQL has the directory, the moves in progress, and the tokens."""
        return self._wiring

    def of_session(self, session_id: str) -> Wiring:
        """Return the cell of this session's tenant, for a read. An unknown tenant stays unknown.

        Raises CellUnreachable if an unknown tenant cannot be looked up, and TenantMoving while the old cell sends
        callers to a new one that does not have all of the tenant yet.
        """
        return self._wiring

    def settle(self, session_id: str) -> Wiring:
        """Return the cell of this session's tenant, for a write. An unknown tenant is recorded first."""
        return self._wiring

    def settle_schedule(self, name: str, session_id: str) -> Wiring:
        """Return the cell that stores a new schedule: the cell of the session whose turns it begins. Raises
        InvalidInput."""
        return self._wiring

    def of_turn(self, turn_id: str) -> Wiring:
        """Return the cell of this turn, or any cell if there is no such turn.

        Raises CellUnreachable if no cell has the turn and one that may have it does not answer.
        """
        return self._wiring

    def turn_row(self, turn_id: str) -> TurnRow:
        """Return the turn's row from whichever cell has it. Raises TurnNotFound, and the errors of `of_turn`."""
        row = self._wiring.store.turns.get(turn_id)
        if row is None:
            raise turn_not_found(turn_id)
        return row

    def find_rows(self, sought: str) -> Sequence[TurnRow]:
        """Return the turns with this id, id prefix or request key. Raises the errors of `of_turn`."""
        return self._wiring.store.turns.find(sought) if sought else ()

    def of_token(self, token: str) -> Wiring:
        """Return the cell of the call that waits for this token, or any if no call does."""
        return self._wiring

    def of_name(self, name: str) -> Wiring:
        """Return the cell of this name. Raises InvalidInput."""
        return self._wiring

    def named(self, request: TurnRequest) -> TurnRequest:
        """Return a request whose id names the cell in which it was made. The id was drawn by brainq."""
        return request

    def each(self) -> Sequence[tuple[str, Wiring]]:
        """Return all cells by name, the home cell first, without contacting them."""
        return ((self._name, self._wiring),)

    def do_in_each(self, act: Callable[[Wiring], T]) -> Sequence[T]:
        """Run the same work in all cells, the home cell first. If a cell does not answer, the others still run it.

        Raises CellUnreachable, which names the cell, after all were tried.
        """
        return [act(self._wiring)]

    def ask(
        self, question: Callable[[Wiring], T], session: str | None = None, prefixes: Sequence[str] | None = None
    ) -> Answers[T]:
        """Run a read in every cell that may have data of this session, or of sessions with one of these prefixes.

        If that is one cell, the read runs in this thread, and its error is raised.
        """
        return Answers(((self._name, question(self._wiring)),))

    def first_to_answer(self, key: str, question: Callable[[Wiring], T]) -> T:
        """Read from the cell that this key is hashed to, or from the next one that answers. For data that belongs to no
        tenant."""
        return question(self._wiring)

    def follow(self, session_id: str, attempt: Callable[[], T]) -> T:
        """Return the result of `attempt` in the session's current cell.

        The attempt is repeated if a cell answers that its tenant has left, or lacks data of a tenant that has moved.
        Values that must be the same in each attempt, such as an id, must be drawn before.

        session_id: "" if the work is not about a single session. Raises TenantMoving in place of NotFound during a
        move.
        """
        return attempt()

    def look_again(self, session_id: str) -> bool:
        """Look up a session's cell again, because the cell lacks data of the session.

        Returns True if the session is in another cell by now. Raises TenantMoving while its tenant is moving.
        """
        return False

    def directory_facts(self) -> tuple[dict[str, int], Sequence[Move]] | None:
        """Return the number of tenants of each cell, and the moves in progress. Returns None if the home cell does not
        answer."""
        return {}, ()

    def forget_tenant(self, tenant: str) -> int:
        """Remove a tenant from the directory. Returns how many entries there were."""
        return 0

    def ping(self) -> None:
        """Raise Unreachable if Redis does not answer. With several cells, it raises only if no cell's Redis answers."""
        self._wiring.ping()

    def look(self) -> None:
        """Raise Unreachable if Redis or SQL does not answer or accepts no writes. With several cells, it raises only if
        this is so in every cell."""
        self._wiring.look(sql=True)

    def opened(self) -> Sequence[Wiring]:
        """Return the cells that were used so far."""
        return (self._wiring,)

    def close(self) -> None:
        """Close every connection that was opened."""
        self._wiring.close()


def turn_not_found(turn_id: str) -> TurnNotFound:
    return TurnNotFound(f"turn {turn_id!r} is not in SQL; `brainq list` shows the newest turns")


def open_cells(settings: Settings, brains: Brains, redis_url: str = "") -> Cells:
    """Return the cells of a deployment. Each connects when it is first used.

    redis_url: replaces the settings' in a deployment of one.
    """
    cells = settings.all_cells()
    if len(cells) > 1:
        return load_extension("brainq.cells", "router")(settings, brains)
    if cells:
        return Cells(Wiring(settings.of_cell(cells[0]), brains), cells[0].name)
    return Cells(Wiring(settings, brains, redis_url=redis_url))
