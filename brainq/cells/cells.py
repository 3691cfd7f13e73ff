"""The cells as a client has them: which wiring a session or a turn goes to, and all of them.

`Cells` is a deployment of one, which gives its one wiring to everything. If `BRAINQ_CELLS` names several, its subclass
in `brainq.contrib.cells.routing` is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from brainq.brain.brains import Brains
from brainq.contracts.rows import TurnRow
from brainq.contracts.turn import TurnRequest
from brainq.errors import TenantMoved, TurnNotFound
from brainq.settings.deployment import Settings
from brainq.settings.extensions import load_extension
from brainq.wiring import Wiring

T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Answers(Generic[R_co]):
    """What cells answered, by name and in their order; and the names of those that are away."""

    answers: tuple[tuple[str, R_co], ...]
    away: tuple[str, ...] = ()

    @property
    def values(self) -> tuple[R_co, ...]:
        return tuple(answer for _, answer in self.answers)


class FromCells(tuple[R_co, ...]):
    """A list of what all cells have, in order. It is a tuple, which says what may be missing.

    away   the names of cells that did not answer; empty where all did
    """

    away: tuple[str, ...] = ()

    @classmethod
    def of(cls, items: Iterable[R_co], away: Sequence[str] = ()) -> FromCells[R_co]:
        made = cls(items)
        made.away = tuple(away)
        return made


def listed(items: Iterable[T], asked: Answers[Any]) -> tuple[T, ...]:
    """A list as callers get it, which says what it lacks."""
    return FromCells.of(items, asked.away)


def cells_away(listed: object) -> tuple[str, ...]:
    """The cells that a list lacks; none where it is of one cell."""
    return listed.away if isinstance(listed, FromCells) else ()


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
    def own(self) -> str:
        """The cell that this process serves, as BRAINQ_CELL says; "" for one that serves all."""
        return self._name

    @property
    def home(self) -> Wiring:
        """The first cell: its SQL has the directory, moves under way, and tokens."""
        return self._wiring

    def of_session(self, session_id: str) -> Wiring:
        """The cell of this session's tenant, for what reads. A tenant that is unknown stays so.

        Raises CellUnreachable where an unknown tenant cannot be looked up, and TenantMoving while the old cell sends
        callers to a new one that does not have all of the tenant yet.
        """
        return self._wiring

    def settle(self, session_id: str) -> Wiring:
        """As `of_session`, for what begins something: an unknown tenant is written down first."""
        return self._wiring

    def of_turn(self, turn_id: str) -> Wiring:
        """The cell of the turn with this id, for what says itself that there is none.

        Raises CellUnreachable where no cell has it and one that may have it does not answer.
        """
        return self._wiring

    def turn_row(self, turn_id: str) -> TurnRow:
        """The turn's row, wherever it is. Raises TurnNotFound, and as `of_turn`."""
        row = self._wiring.store.turns.get(turn_id)
        if row is None:
            raise turn_not_found(turn_id)
        return row

    def find_rows(self, sought: str) -> Sequence[TurnRow]:
        """The turns with this id or request key, or whose id begins so. Raises as `of_turn`."""
        return self._wiring.store.turns.find(sought) if sought else ()

    def of_token(self, token: str) -> Wiring:
        """The cell of the call that waits for this token, for what says itself that none does."""
        return self._wiring

    def named(self, request: TurnRequest) -> TurnRequest:
        """With an id that says which cell it was made in, in place of one that brainq drew."""
        return request

    def of_name(self, name: str) -> Wiring:
        """The cell of this name. Raises InvalidInput."""
        return self._wiring

    def each(self) -> Sequence[tuple[str, Wiring]]:
        """All of them by name, home first. Nothing is asked of them here."""
        return ((self._name, self._wiring),)

    def do_in_each(self, act: Callable[[Wiring], T]) -> Sequence[T]:
        """Do what is for all cells, home first. One that does not answer keeps it from no other: CellUnreachable is
        raised once all were tried, and names it."""
        return [act(self._wiring)]

    def ask(
        self, question: Callable[[Wiring], T], session: str | None = None, prefixes: Sequence[str] | None = None
    ) -> Answers[T]:
        """Ask every cell that may have something of this session, or of sessions that begin with one of these prefixes.

        Where that is one it is asked in this thread, and what it raises is raised.
        """
        return Answers(((self._name, question(self._wiring)),))

    def first_to_answer(self, key: str, question: Callable[[Wiring], T]) -> T:
        """Ask the cell that this key is hashed to; while it is away, the next one. For what belongs to no tenant."""
        return question(self._wiring)

    def learn(self, moved: TenantMoved) -> None:
        """A cell answered that the tenant has left it: ask there from now on."""

    def failed(self, session_id: str, failure: Exception) -> Exception:
        """What a caller gets of a failure about this session: where its cell is away, by the cell's name."""
        return failure

    def look_again(self, session_id: str) -> bool:
        """Ask anew where a session is, because its cell does not know what it should: the directory, and the cell
        itself. Returns True if the session is elsewhere by now. Raises TenantMoving while its tenant moves."""
        return False

    def ping(self) -> None:
        """Raise Unreachable where Redis does not answer; of several cells where none does."""
        self._wiring.ping()

    def look(self) -> None:
        """Raise Unreachable where Redis or SQL does not answer or takes no writes; of several cells where all do."""
        self._wiring.look(sql=True)

    def opened(self) -> Sequence[Wiring]:
        """Those that anything was asked of so far."""
        return (self._wiring,)

    def close(self) -> None:
        """Close every connection that was opened."""
        self._wiring.close()


def turn_not_found(turn_id: str) -> TurnNotFound:
    return TurnNotFound(f"no turn {turn_id!r} in SQL; `brainq list` shows the newest ones")


def open_cells(settings: Settings, brains: Brains, redis_url: str = "") -> Cells:
    """The cells of a deployment; each connects when it is first used.

    redis_url   in place of the settings', of a deployment of one
    """
    cells = settings.all_cells()
    if len(cells) > 1:
        return load_extension("brainq.cells", "router")(settings, brains)
    if cells:
        return Cells(Wiring(settings.of_cell(cells[0]), brains), cells[0].name)
    return Cells(Wiring(settings, brains, redis_url=redis_url))
