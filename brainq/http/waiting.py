"""`Prefer: wait=n` (RFC 7240): how long a caller would wait for a result, and the wait."""

from __future__ import annotations

import asyncio
import re

from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.turn import TurnResult
from brainq.errors import ResultTimeout
from brainq.http.streams import Place

_WAIT = re.compile(r'wait\s*=\s*"?(\d{1,9})"?\s*(?:[;,]|$)', re.IGNORECASE)


def wished(prefer: str, most_s: float) -> float:
    """The seconds that a `Prefer` header asks for, at most `most_s`; 0 where it asks for none."""
    for preference in re.split(r",(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)", prefer):
        found = _WAIT.match(preference.strip())
        if found:
            return min(most_s, float(found[1]))
    return 0.0


async def result_within(handle: AsyncTurnHandle, wait_s: float, place: Place | None) -> TurnResult | None:
    """The result when it is out within `wait_s`; None when it is not, or the gateway stops."""
    waiting = asyncio.ensure_future(_result(handle, wait_s))
    if place is None:
        return await waiting
    stopping = asyncio.ensure_future(place.stopping.wait())
    try:
        await asyncio.wait({waiting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        return await waiting if waiting.done() else None
    finally:
        waiting.cancel()
        stopping.cancel()


async def _result(handle: AsyncTurnHandle, wait_s: float) -> TurnResult | None:
    try:
        return await handle.result(timeout_s=wait_s)
    except ResultTimeout:
        return None
