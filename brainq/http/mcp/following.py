"""Following a turn for a client that waits: until it has ended, stands still for people, or time is up."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import anyio

from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.approval import Approval
from brainq.contracts.event import EventKind, TurnEvent
from brainq.contracts.status import Awaits
from brainq.http.event_stream import Reading
from brainq.http.mcp.asked import Asked
from brainq.http.mcp.progress import Progress
from brainq.http.streams import Place


@dataclass(frozen=True, slots=True)
class Followed:
    """seq: the last event that was read. approvals: what nothing goes on without; none where it stopped otherwise."""

    seq: int
    approvals: tuple[Approval, ...] = ()


async def follow(
    asked: Asked, handle: AsyncTurnHandle, place: Place, after: int, wait_s: float, progress: Progress
) -> Followed:
    """Tell the events behind `after` as progress. Raises Refused once the caller is no longer welcome."""
    clock = asyncio.get_running_loop().time
    until, asked_at, seq = clock() + wait_s, clock(), after
    heartbeat_s = asked.here.settings.http_heartbeat_s
    reading = Reading(handle.events(after))
    stopping = asyncio.ensure_future(place.stopping.wait())
    try:
        while (left_s := until - clock()) > 0 and not stopping.done():
            if clock() - asked_at >= heartbeat_s:
                asked_at = clock()
                await asked.require_welcome()
            await asyncio.wait(
                {reading.next, stopping},
                timeout=min(left_s, heartbeat_s),
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not reading.next.done():
                continue
            event = reading.next.result()
            if event is None:
                break
            seq = event.seq
            await progress.tell(event)
            if event.is_final:
                break
            if _is_for_people(event) and (pending := await pending_of(handle)):
                return Followed(seq, pending)
            reading.advance()
    finally:
        stopping.cancel()
        with anyio.CancelScope(shield=True):  # the SDK cancels a handler again at each of its waits
            await reading.close()
    return Followed(seq)


def _is_for_people(event: TurnEvent) -> bool:
    return event.kind is EventKind.TURN_PARKED and event.data["awaits"] == Awaits.PEOPLE


async def pending_of(handle: AsyncTurnHandle) -> tuple[Approval, ...]:
    """The approvals that the turn waits for now."""
    return tuple(found for found in await handle.approvals() if found.state == "pending")
