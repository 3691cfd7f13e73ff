"""Waiting for a turn's result: `Prefer: wait=n` (RFC 7240), until the result, the time limit or a disconnect."""

from __future__ import annotations

import asyncio
import re
from urllib.request import parse_http_list

from starlette.types import Receive

from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.turn import TurnResult
from brainq.errors import ResultTimeout
from brainq.gateway.edge.limits import StreamSlot

_WAIT = re.compile(r'wait\s*=\s*"?(\d{1,9})"?\s*(?:[;,]|$)', re.IGNORECASE)


def requested_wait_s(prefer: str, max_s: float) -> float:
    """The seconds that a `Prefer` header asks for, at most `max_s`; 0 where it has none."""
    for preference in parse_http_list(prefer):
        found = _WAIT.match(preference)
        if found:
            return min(max_s, float(found[1]))
    return 0.0


async def wait_for_result(
    handle: AsyncTurnHandle, wait_s: float, place: StreamSlot, receive: Receive
) -> TurnResult | None:
    """The result when it is out within `wait_s`; None when it is not, the gateway stops, or the client disconnects."""
    waiting = asyncio.ensure_future(result_if_ready(handle, wait_s))
    over = [asyncio.ensure_future(place.stopping.wait()), asyncio.ensure_future(wait_for_disconnect(receive))]
    try:
        await asyncio.wait({waiting, *over}, return_when=asyncio.FIRST_COMPLETED)
        return await waiting if waiting.done() else None
    finally:
        for each in (waiting, *over):
            each.cancel()


async def wait_for_disconnect(receive: Receive) -> None:
    """Returns when the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def result_if_ready(handle: AsyncTurnHandle, wait_s: float = 0) -> TurnResult | None:
    """The result where it is out, or comes within `wait_s`; else None."""
    try:
        return await handle.result(timeout_s=wait_s)
    except ResultTimeout:
        return None
