"""`Prefer: wait=n` (RFC 7240): how long a caller would wait for a result, and the wait."""

from __future__ import annotations

import asyncio
import re
from urllib.request import parse_http_list

from starlette.types import Receive

from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.turn import TurnResult
from brainq.errors import ResultTimeout
from brainq.http.streams import Place

_WAIT = re.compile(r'wait\s*=\s*"?(\d{1,9})"?\s*(?:[;,]|$)', re.IGNORECASE)


def wished(prefer: str, most_s: float) -> float:
    """The seconds that a `Prefer` header asks for, at most `most_s`; 0 where it asks for none."""
    for preference in parse_http_list(prefer):
        found = _WAIT.match(preference)
        if found:
            return min(most_s, float(found[1]))
    return 0.0


async def result_within(
    handle: AsyncTurnHandle, wait_s: float, place: Place, receive: Receive
) -> TurnResult | None:
    """The result when it is out within `wait_s`; None when it is not, the gateway stops, or who waits has gone."""
    waiting = asyncio.ensure_future(known_result(handle, wait_s))
    over = [asyncio.ensure_future(place.stopping.wait()), asyncio.ensure_future(until_gone(receive))]
    try:
        await asyncio.wait({waiting, *over}, return_when=asyncio.FIRST_COMPLETED)
        return await waiting if waiting.done() else None
    finally:
        for each in (waiting, *over):
            each.cancel()


async def until_gone(receive: Receive) -> None:
    """Ends when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def known_result(handle: AsyncTurnHandle, wait_s: float = 0) -> TurnResult | None:
    """The result where it is out, or comes within `wait_s`; else None."""
    try:
        return await handle.result(timeout_s=wait_s)
    except ResultTimeout:
        return None
