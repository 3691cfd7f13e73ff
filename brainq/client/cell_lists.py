"""Lists over all cells. The pages of all cells are merged into one, and a cursor says where each cell's next page
begins.

Each cell lists its rows in the order of their numbers. The merged list is ordered by time (or cost, or tokens), and for
equal values by cell. The next page begins after the last item of the current one: in that item's cell after its row, in
the other cells after its time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice
from typing import Any, TypeVar

from brainq.adapters.sql.list_places import Figure, ListPlace
from brainq.app.wiring import Wiring
from brainq.app.wiring.cells import Cells
from brainq.client import checks
from brainq.client.lists import list_deliveries, make_turn_list, no_such_turn
from brainq.contracts.answers import Answers, listed
from brainq.contracts.cell import RowId, parse_row, shown_row
from brainq.contracts.history import ListedSession, ListedTurn, Sort, TurnFilter
from brainq.contracts.ids import check_turn_id, split_call_id
from brainq.contracts.people import Approval
from brainq.contracts.rows import MemoryRow
from brainq.contracts.webhook import DeliveryRow
from brainq.errors import CellUnreachable, InvalidInput

T = TypeVar("T")
Row = TypeVar("Row", DeliveryRow, MemoryRow)


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last item of the current page.

    cell    the cell of the item
    row     its row in that cell
    place   a function that returns its place in the order of the merged list; called only if there are other cells
    """

    cell: str
    row: int
    place: Callable[[], ListPlace]

    def row_in(self, cells: Cells, wiring: Wiring, kind: str, *, is_newest_first: bool = True) -> int:
        """Return the row after which this cell's own list continues."""
        if wiring.settings.cell == self.cell:
            return self.row
        has_ties = self._has_ties(cells, wiring)
        return wiring.store.places.behind(kind, self.place(), has_ties=has_ties, is_newest_first=is_newest_first)

    def turn_in(self, cells: Cells, wiring: Wiring, sort: Sort) -> int | Figure:
        """Return where this cell's list of turns continues, in this order."""
        if sort in ("cost", "tokens") and wiring.settings.cell != self.cell:
            return Figure(self.place().figure, self._has_ties(cells, wiring))
        return self.row_in(cells, wiring, "turns", is_newest_first=sort != "oldest")

    def _has_ties(self, cells: Cells, wiring: Wiring) -> bool:
        return cells.names.index(wiring.settings.cell) > cells.names.index(self.cell)


def list_turns(cells: Cells, wanted: TurnFilter, limit: int, after: str | None) -> tuple[ListedTurn, ...]:
    """See `Client.turns`."""
    checks.limit(limit)
    cursor = _turn_cursor(cells, after, wanted.sort, wanted.session, wanted.sessions)

    def page(wiring: Wiring) -> tuple[ListedTurn, ...]:
        place = cursor.turn_in(cells, wiring, wanted.sort) if cursor else None
        return make_turn_list(wiring).turns_behind(wanted, limit, place)

    asked = cells.ask(page, wanted.session, wanted.sessions)
    keys: dict[str, Callable[[ListedTurn], Any]] = {
        "cost": lambda turn: turn.cost_usd or 0,
        "tokens": lambda turn: turn.tokens,
    }
    key = keys.get(wanted.sort, lambda turn: turn.accepted_at)
    return _merged(asked, limit, key, lambda turn: turn.turn_id, is_rising=wanted.sort == "oldest")


def list_sessions(
    cells: Cells, prefix: str, limit: int, sessions: Sequence[str] | None, after: str | None
) -> tuple[ListedSession, ...]:
    """See `Client.sessions`."""
    prefixes, most = checks.session_prefixes(sessions), checks.limit(limit)
    cursor = _turn_cursor(cells, after, "newest", None, prefixes)

    def page(wiring: Wiring) -> tuple[ListedSession, ...]:
        row = cursor.row_in(cells, wiring, "turns") if cursor else None
        return make_turn_list(wiring).sessions_behind(prefix, most, prefixes, row)

    asked = cells.ask(page, prefixes=prefixes)
    return _merged(asked, most, lambda one: one.last_turn.accepted_at, lambda one: one.session_id)


def list_approvals(
    cells: Cells,
    session: str | None,
    state: str | None,
    limit: int,
    prefixes: Sequence[str] | None,
    after: str | None,
) -> tuple[Approval, ...]:
    """See `Client.approvals`. The arguments have been checked."""
    cursor = None if after is None else _approval_cursor(cells, after, session, prefixes)

    def page(wiring: Wiring) -> tuple[Approval, ...]:
        row = cursor.row_in(cells, wiring, "approvals") if cursor else None
        if wiring.redis_away:
            rows = wiring.store.approvals.list(session, state, limit, row, prefixes)
            return tuple(each.approval for each in rows)
        return wiring.people.approvals.list(session, state, limit, prefixes, behind_row=row)

    asked = cells.ask(page, session, prefixes)
    return _merged(asked, limit, lambda one: one.created_at, lambda one: one.id)


def list_all_deliveries(
    cells: Cells, state: str | None, limit: int, sessions: Sequence[str] | None, after: RowId | None
) -> tuple[DeliveryRow, ...]:
    """See `Client.deliveries`."""
    cursor = _row_cursor(cells, "deliveries", after)

    def page(wiring: Wiring) -> Sequence[DeliveryRow]:
        row = cursor.row_in(cells, wiring, "deliveries") if cursor else None
        return _with_cell(cells, wiring, list_deliveries(wiring.store, state, limit, sessions, row))

    asked = cells.ask(page, prefixes=sessions)
    return _merged(asked, limit, lambda one: one.created_at, lambda one: one.row)


def list_memories(
    cells: Cells,
    scopes: Sequence[str],
    session: str | None,
    limit: int,
    after: RowId | None,
    prefixes: Sequence[str] | None,
) -> tuple[MemoryRow, ...]:
    """See `Memories.list`. The other arguments have been checked."""
    cursor = _row_cursor(cells, "memories", after)

    def page(wiring: Wiring) -> Sequence[MemoryRow]:
        row = cursor.row_in(cells, wiring, "memories") if cursor else None
        return _with_cell(cells, wiring, wiring.store.memories.page(scopes, limit, row, prefixes))

    asked = cells.ask(page, session, prefixes)
    return _merged(asked, limit, lambda one: one.created_at, lambda one: one.row)


def find_row(cells: Cells, field: str, shown: RowId) -> tuple[Wiring, int]:
    """Return the cell and the row that an id names. A number alone is a row of the home cell.

    Raises InvalidInput naming `field` if the text is not an id, or if the cell is unknown.
    """
    name, row = parse_row(field, shown)
    if name and name not in cells.names:
        raise InvalidInput(field, f"{shown!r} is a row of cell {name!r}, which is not a cell of this deployment")
    return cells.of_name(name) if name else cells.home, row


def _with_cell(cells: Cells, wiring: Wiring, rows: Sequence[Row]) -> Sequence[Row]:
    """Return the rows with their public ids."""
    if len(cells.names) == 1:
        return rows
    return [replace(one, row=shown_row(wiring.settings.cell, int(one.row))) for one in rows]


def _turn_cursor(
    cells: Cells, after: str | None, sort: Sort, session: str | None, prefixes: Sequence[str] | None
) -> Cursor | None:
    if after is None:
        return None
    turn_id = check_turn_id("after", after)
    asked = cells.ask(lambda wiring: wiring.store.places.of_turn(turn_id, sort, prefixes), session, prefixes)
    cell, place = _found(asked, no_such_turn(after))
    return Cursor(cell, place.row, lambda: place)


def _approval_cursor(cells: Cells, after: str, session: str | None, prefixes: Sequence[str] | None) -> Cursor:
    turn_id, call_id = split_call_id(after)
    asked = cells.ask(lambda wiring: wiring.store.approvals.row_number(turn_id, call_id, prefixes), session, prefixes)
    missing = InvalidInput("after", f"approval {after!r} does not exist; begin with the first page")
    cell, row = _found(asked, missing)
    return Cursor(cell, row, lambda: _place(cells.of_name(cell), "approvals", row, missing))


def _row_cursor(cells: Cells, kind: str, after: RowId | None) -> Cursor | None:
    if after is None:
        return None
    wiring, row = find_row(cells, "after", after)
    missing = InvalidInput("after", f"row {after} does not exist, or was deleted; begin with the first page")
    return Cursor(wiring.settings.cell, row, lambda: _place(wiring, kind, row, missing))


def _place(wiring: Wiring, kind: str, row: int, missing: InvalidInput) -> ListPlace:
    place = wiring.store.places.of_row(kind, row)
    if place is None:
        raise missing
    return place


def _found(asked: Answers[T | None], missing: InvalidInput) -> tuple[str, T]:
    """Return the first answer, with its cell's name."""
    for cell, answer in asked.answers:
        if answer is not None:
            return cell, answer
    if asked.away:
        raise CellUnreachable(asked.away[0], "the last item of the current page may be in that cell")
    raise missing


def _merged(
    asked: Answers[Sequence[T]],
    limit: int,
    key: Callable[[T], Any],
    identity: Callable[[T], object],
    *,
    is_rising: bool = False,
) -> tuple[T, ...]:
    """Return the first items of all pages, without repeats: a tenant that is moving is in two cells for a while."""
    items = merge(*asked.values, key=key, reverse=not is_rising)
    return listed(islice(_once(items, identity), limit), asked)


def _once(items: Iterable[T], identity: Callable[[T], object]) -> Iterator[T]:
    seen: set[object] = set()
    for item in items:
        if (known := identity(item)) not in seen:
            seen.add(known)
            yield item
