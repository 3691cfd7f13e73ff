"""Lists that are read to their end, a page at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

A_PAGE = 200
T = TypeVar("T")


def pages(read: Callable[[str | None], Sequence[T]], cursor: Callable[[T], str]) -> Iterator[T]:
    """Each item of every page: `read` gives the A_PAGE items behind a cursor, and `cursor` is that of an item."""
    after: str | None = None
    while True:
        page = read(after)
        yield from page
        if len(page) < A_PAGE:
            return
        after = cursor(page[-1])


async def pages_awaited(
    read: Callable[[str | None], Awaitable[Sequence[T]]], cursor: Callable[[T], str]
) -> AsyncIterator[T]:
    """As `pages`, on an event loop."""
    after: str | None = None
    while True:
        page = await read(after)
        for item in page:
            yield item
        if len(page) < A_PAGE:
            return
        after = cursor(page[-1])
