"""Lists over all cells: each cell's own page, merged in one order, and where in each the next page goes on.

A cell's page is in the order of its rows. The merged one is in that of instants (or of cost, of tokens), at the same
instant in that of the cells. So a page goes on behind its last item alone: in that item's cell behind its row, in each
other behind its instant. With one cell nothing is merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice
from typing import Any, TypeVar

from brainq.cells.cells import Answers, Cells, listed
from brainq.client import checks
from brainq.client.lists import list_deliveries, make_turn_list, no_such_turn
from brainq.contracts.history import ListedSession, ListedTurn, Sort, TurnFilter
from brainq.contracts.ids import check_turn_id, split_call_id
from brainq.contracts.people import Approval
from brainq.contracts.rows import MemoryRow
from brainq.contracts.webhook import DeliveryRow
from brainq.errors import CellUnreachable, InvalidInput
from brainq.store.list_places import Figure, ListPlace
from brainq.wiring import Wiring

T = TypeVar("T")
Row = TypeVar("Row", DeliveryRow, MemoryRow)
MOST_CELLS = 64
"""Numbers of rows are shown as `number * 64 + which cell`, where there are several."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last item of the page at hand, and the cell that has it."""

    cell: str
    place: ListPlace

    def row_in(self, cells: Cells, wiring: Wiring, kind: str, *, is_newest_first: bool = True) -> int:
        """The row behind which this cell's own list goes on."""
        if wiring.settings.cell == self.cell:
            return self.place.row
        has_ties = self._has_ties(cells, wiring)
        return wiring.store.places.behind(kind, self.place, has_ties=has_ties, is_newest_first=is_newest_first)

    def turn_in(self, cells: Cells, wiring: Wiring, sort: Sort) -> int | Figure:
        """The same of turns in this order."""
        if sort in ("cost", "tokens") and wiring.settings.cell != self.cell:
            return Figure(self.place.figure, self._has_ties(cells, wiring))
        return self.row_in(cells, wiring, "turns", is_newest_first=sort != "oldest")

    def _has_ties(self, cells: Cells, wiring: Wiring) -> bool:
        return cells.names.index(wiring.settings.cell) > cells.names.index(self.cell)


def list_turns(cells: Cells, wanted: TurnFilter, limit: int, after: str | None) -> tuple[ListedTurn, ...]:
    """See `Client.turns`."""
    if not cells.is_routed:
        return make_turn_list(cells.home).turns(wanted, limit, after)
    checks.limit(limit)
    behind = _turn_cursor(cells, after, wanted.sort, wanted.session, wanted.sessions)

    def page(wiring: Wiring) -> tuple[ListedTurn, ...]:
        place = None if behind is None else behind.turn_in(cells, wiring, wanted.sort)
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
    if not cells.is_routed:
        return make_turn_list(cells.home).sessions(prefix, limit, sessions, after)
    theirs, most = checks.session_prefixes(sessions), checks.limit(limit)
    behind = _turn_cursor(cells, after, "newest", None, theirs)

    def page(wiring: Wiring) -> tuple[ListedSession, ...]:
        place = None if behind is None else behind.row_in(cells, wiring, "turns")
        return make_turn_list(wiring).sessions_behind(prefix, most, theirs, place)

    asked = cells.ask(page, prefixes=theirs)
    return _merged(asked, most, lambda one: one.last_turn.accepted_at, lambda one: one.session_id)


def list_approvals(
    cells: Cells,
    session: str | None,
    state: str | None,
    limit: int,
    prefixes: Sequence[str] | None,
    after: str | None,
) -> tuple[Approval, ...]:
    """See `Client.approvals`; everything is checked."""
    if not cells.is_routed:
        return cells.home.people.approvals.list(session, state, limit, prefixes, after)
    behind = None if after is None else _approval_cursor(cells, after, session, prefixes)

    def page(wiring: Wiring) -> tuple[Approval, ...]:
        row = None if behind is None else behind.row_in(cells, wiring, "approvals")
        return wiring.people.approvals.list(session, state, limit, prefixes, behind_row=row)

    asked = cells.ask(page, session, prefixes)
    return _merged(asked, limit, lambda one: one.created_at, lambda one: one.id)


def list_all_deliveries(
    cells: Cells, state: str | None, limit: int, sessions: Sequence[str] | None, after: int | None
) -> tuple[DeliveryRow, ...]:
    """See `Client.deliveries`."""
    if not cells.is_routed:
        return tuple(list_deliveries(cells.home.store, state, limit, sessions, after))
    behind = _row_cursor(cells, "deliveries", after)

    def page(wiring: Wiring) -> list[DeliveryRow]:
        row = None if behind is None else behind.row_in(cells, wiring, "deliveries")
        rows = list_deliveries(wiring.store, state, limit, sessions, row)
        return [with_cell(cells, wiring, one) for one in rows]

    asked = cells.ask(page, prefixes=sessions)
    return _merged(asked, limit, lambda one: one.created_at, lambda one: one.row)


def list_memories(
    cells: Cells,
    scopes: Sequence[str],
    session: str | None,
    limit: int,
    after: int | None,
    prefixes: Sequence[str] | None,
) -> tuple[MemoryRow, ...]:
    """See `Memories.list`; everything is checked."""
    if not cells.is_routed:
        return tuple(cells.home.store.memories.page(scopes, limit, after, prefixes))
    behind = _row_cursor(cells, "memories", after)

    def page(wiring: Wiring) -> list[MemoryRow]:
        row = None if behind is None else behind.row_in(cells, wiring, "memories")
        return [with_cell(cells, wiring, one) for one in wiring.store.memories.page(scopes, limit, row, prefixes)]

    asked = cells.ask(page, session, prefixes)
    return _merged(asked, limit, lambda one: one.created_at, lambda one: one.row)


def with_cell(cells: Cells, wiring: Wiring, item: Row) -> Row:
    """With the number of its row as callers get it: it says the cell, too."""
    return replace(item, row=item.row * MOST_CELLS + cells.names.index(wiring.settings.cell))


def cell_row(cells: Cells, row: int) -> tuple[Wiring, int]:
    """The cell and the row in it that a number says. Raises InvalidInput for a cell that there is not."""
    if not cells.is_routed:
        return cells.home, row
    number, index = divmod(row, MOST_CELLS)
    if index >= len(cells.names):
        raise InvalidInput("row", f"{row} is the number of nothing here; list them again")
    return cells.of_name(cells.names[index]), number


def _turn_cursor(
    cells: Cells, after: str | None, sort: Sort, session: str | None, prefixes: Sequence[str] | None
) -> Cursor | None:
    if after is None:
        return None
    turn_id = check_turn_id("after", after)
    asked = cells.ask(lambda wiring: wiring.store.places.of_turn(turn_id, sort, prefixes), session, prefixes)
    return _cursor(asked, no_such_turn(after))


def _approval_cursor(cells: Cells, after: str, session: str | None, prefixes: Sequence[str] | None) -> Cursor:
    turn_id, call_id = split_call_id(after)

    def place(wiring: Wiring) -> ListPlace | None:
        row = wiring.store.approvals.row_number(turn_id, call_id, prefixes)
        return None if row is None else wiring.store.places.of_row("approvals", row)

    asked = cells.ask(place, session, prefixes)
    return _cursor(asked, InvalidInput("after", f"there is no approval {after!r}; begin with the first page"))


def _row_cursor(cells: Cells, kind: str, after: int | None) -> Cursor | None:
    if after is None:
        return None
    wiring, row = cell_row(cells, after)
    place = wiring.store.places.of_row(kind, row)
    if place is None:
        raise InvalidInput("after", f"there is no row {after}, or no more; begin with the first page")
    return Cursor(wiring.settings.cell, place)


def _cursor(asked: Answers[ListPlace | None], missing: InvalidInput) -> Cursor:
    for cell, place in asked.answers:
        if place is not None:
            return Cursor(cell, place)
    if asked.away:
        raise CellUnreachable(asked.away[0], "the last item of the page at hand may be there")
    raise missing


def _merged(
    asked: Answers[Sequence[T]],
    limit: int,
    key: Callable[[T], Any],
    identity: Callable[[T], object],
    *,
    is_rising: bool = False,
) -> tuple[T, ...]:
    """The first items of all pages, each once: a tenant that moves is in two cells for a while."""
    items = merge(*asked.values, key=key, reverse=not is_rising)
    return listed(islice(_once(items, identity), limit), asked)


def _once(items: Iterable[T], identity: Callable[[T], object]) -> Iterator[T]:
    seen: set[object] = set()
    for item in items:
        if (known := identity(item)) not in seen:
            seen.add(known)
            yield item
