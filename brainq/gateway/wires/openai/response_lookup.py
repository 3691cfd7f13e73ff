"""The turn that a response's id names, and which part of it."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path

from brainq.client.async_handle import AsyncTurnHandle
from brainq.errors import NotFound
from brainq.gateway.edge.dependencies import Gateway, Principal
from brainq.gateway.wires.openai.response_fold import RESPONSE_ID_PREFIX, split_response_id

ResponseId = Annotated[str, Path(pattern=r"^resp_[A-Za-z0-9][A-Za-z0-9_-]{2,63}(\.[0-9]{1,4})?$")]


async def find_part(here: Gateway, by: Principal, given: str) -> tuple[AsyncTurnHandle, int]:
    """The turn of a response of the caller's own, and the part. Raises NotFound for any other, and for one that was
    deleted."""
    split = split_response_id(given)
    if split is None:
        raise NotFound(f"{given[:100]!r} is not an id of a response; they begin with {RESPONSE_ID_PREFIX}")
    handle = await here.client.handle(split[0])
    by.require_session(handle.session_id)
    await require_not_deleted(handle)
    return handle, split[1]


async def require_not_deleted(handle: AsyncTurnHandle) -> None:
    """Raise NotFound for a turn whose response was deleted."""
    if await handle.is_response_deleted():
        raise NotFound("the response was deleted")
