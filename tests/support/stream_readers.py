"""Readers of many streams at once, who reconnect with the last number that they saw."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import httpx

from tests.support.sse import EventReader

Again = Callable[[str, EventReader], tuple[str, dict[str, str]]]
"""The way in which a reader reconnects to a path: the new path, and headers."""


def by_last_event_id(path: str, reader: EventReader) -> tuple[str, dict[str, str]]:
    """Reconnect as a browser's EventSource does."""
    return path, {"Last-Event-ID": reader.last_id} if reader.last_id else {}


async def read_on(
    readers: Mapping[str, EventReader],
    base: str,
    headers: Mapping[str, str] | None = None,
    *,
    each: Callable[[], Any] = lambda: None,
    again: Again = by_last_event_id,
) -> int:
    """Read every stream that is not over from `base`, each on its own connection. Returns how many were cut off.

    readers: by the path of their streams. Two readers of one stream have different queries.
    each: called after each piece that comes.
    """

    async def one(path: str, reader: EventReader, http: httpx.AsyncClient) -> bool:
        path, seen = again(path, reader)
        try:
            async with http.stream("GET", path, headers=seen) as stream:
                assert stream.status_code == 200, await stream.aread()
                async for piece in stream.aiter_raw():
                    reader.feed(piece)
                    each()
        except httpx.HTTPError:
            pass
        reader.lost()
        return not reader.is_over

    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=base, timeout=120, limits=limits, verify=False, headers=headers) as http:
        left = [(path, reader) for path, reader in readers.items() if not reader.is_over]
        return sum(await asyncio.gather(*(one(path, reader, http) for path, reader in left)))
