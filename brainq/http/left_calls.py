"""Calls of a client's own tools whose client has gone on: it asked anew in place of their results."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from brainq.access import Verb
from brainq.client.async_handle import AsyncTurnHandle
from brainq.client.options import SubmitOptions
from brainq.contracts.event import EventKind
from brainq.contracts.status import Awaits
from brainq.errors import SessionBusy
from brainq.http.gateway import Asker, Gateway

GONE_ON = "the client went on without the results of its calls"
PATIENCE_S = 60.0
"""How long a turn that comes to such calls later may wait for them, while another one of its session waits for it: its
client may be there, too."""

_watched: dict[str, asyncio.Task[None]] = {}


def bound_waits(options: SubmitOptions, most_s: float) -> None:
    """Let calls of the client's tools wait for so long and no longer."""
    if "client_tools" in options:
        tools = cast("Sequence[dict[str, Any]]", options["client_tools"])
        options["client_tools"] = [{**tool, "timeout_s": most_s} for tool in tools]


async def require_free(here: Gateway, by: Asker, session_id: str) -> None:
    """Raise SessionBusy where the live turn waits for its client, and who asks anew may not cancel it."""
    if Verb.STEER in by.caller.verbs:
        return
    live = await here.client.session(session_id).live()
    if live and await _waits_for_client(await here.client.handle(live)):
        raise SessionBusy(session_id, live)


async def leave_calls(here: Gateway, by: Asker, session_id: str, turn_id: str) -> None:
    """Cancel the session's live turn where it waits for its client, who has begun `turn_id` since. It would keep the
    session waiting for a day."""
    live = await here.client.session(session_id).live()
    if not live or live == turn_id or Verb.STEER not in by.caller.verbs:
        return
    handle = await here.client.handle(live)
    if await _waits_for_client(handle):
        await handle.cancel(GONE_ON)
    elif live not in _watched:
        _watched[live] = asyncio.create_task(_watch(handle))
        _watched[live].add_done_callback(lambda _: _watched.pop(live, None))


async def _watch(handle: AsyncTurnHandle) -> None:
    async for event in handle.events():
        if event.kind is EventKind.TURN_PARKED and event.data["awaits"] == Awaits.CLIENT:
            await asyncio.sleep(PATIENCE_S)
            if await _waits_for_client(handle):
                await handle.cancel(GONE_ON)
                return


async def _waits_for_client(handle: AsyncTurnHandle) -> bool:
    snapshot = await handle.snapshot()
    return snapshot is not None and snapshot.awaits is Awaits.CLIENT
