"""Iterating over the pages of a list, and finding one turn among matches, for every client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from brainq.contracts.answers import cells_away
from brainq.errors import CellUnreachable, InvalidInput, TurnNotFound

if TYPE_CHECKING:
    from brainq.contracts.history import ListedTurn
    from brainq.contracts.rows import TurnRow

PAGE_SIZE = 200
SHOWN_MATCHES = 5
T = TypeVar("T")
F = TypeVar("F", bound="TurnRow | ListedTurn")


def iterate_pages(read: Callable[[str | None], Sequence[T]], cursor: Callable[[T], str]) -> Iterator[T]:
    """Iterate over the items of all pages. `read` returns the PAGE_SIZE items after a cursor; `cursor` returns an
    item's cursor."""
    after: str | None = None
    while True:
        page = read(after)
        _require_whole(page)
        yield from page
        if len(page) < PAGE_SIZE:
            return
        after = cursor(page[-1])


async def iterate_pages_async(
    read: Callable[[str | None], Awaitable[Sequence[T]]], cursor: Callable[[T], str]
) -> AsyncIterator[T]:
    """Iterate as `iterate_pages` does, on an event loop."""
    after: str | None = None
    while True:
        page = await read(after)
        _require_whole(page)
        for item in page:
            yield item
        if len(page) < PAGE_SIZE:
            return
        after = cursor(page[-1])


def _require_whole(page: Sequence[object]) -> None:
    """Raise CellUnreachable if a cell is missing in a page, because an iteration cannot show that."""
    if away := cells_away(page):
        raise CellUnreachable(
            away[0],
            "its items would be missing; read page by page instead, because a page names the cells that did not answer",
        )


def find_turn(matches: Sequence[F], sought: str) -> F:
    """Return the match whose id or request key is `sought`, or else the only match.

    Raises TurnNotFound, and InvalidInput if several turns match.
    """
    exact = [row for row in matches if sought in (row.turn_id, row.request_key)]
    if len(exact) == 1:
        return exact[0]
    if not matches:
        raise TurnNotFound(
            f"no turn has the id, the beginning of an id, or the request key {sought!r}; see `brainq list`"
        )
    if len(matches) > 1:
        ids = ", ".join(row.turn_id for row in matches[:SHOWN_MATCHES])
        more = ", ..." if len(matches) > SHOWN_MATCHES else ""
        raise InvalidInput(
            "TURN", f"several turns have ids that begin with {sought!r}: {ids}{more}; write more of the id"
        )
    return matches[0]
