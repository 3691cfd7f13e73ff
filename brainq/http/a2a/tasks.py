"""A turn's task as it stands, as it goes on, and as a stream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from a2a.types.a2a_pb2 import (
    ROLE_AGENT,
    ROLE_USER,
    TASK_STATE_REJECTED,
    Message,
    StreamResponse,
)
from starlette.types import Receive

from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.event import TurnEvent
from brainq.errors import ContentNotKept, ResultTimeout, TurnRejected
from brainq.http.a2a.fold import Told, ended, fold, step, task_of, updates
from brainq.http.a2a.parts import text_part
from brainq.http.a2a.rpc import frame
from brainq.http.event_stream import Reading, Written
from brainq.http.streams import Place
from brainq.http.waiting import until_gone


async def task_now(handle: AsyncTurnHandle) -> Told:
    """The task after all events that there are now; of one whose events are gone, as its result has it."""
    told = Told(handle.turn_id, handle.session_id)
    so_far = await handle.events_so_far()
    try:
        if so_far:
            result = await handle.result(timeout_s=0) if so_far[-1].is_final else None
            return await _filled(handle, fold(told, so_far, result))
        return ended(told, await handle.result(timeout_s=0))
    except ResultTimeout:
        return told
    except TurnRejected as rejected:
        return replace(told, state=TASK_STATE_REJECTED, note=str(rejected))


async def task_when(
    is_so: Callable[[Told], bool],
    handle: AsyncTurnHandle,
    told: Told,
    wait_s: float,
    place: Place,
    receive: Receive,
) -> Told:
    """The task as soon as this is so of it; as it stands after `wait_s`, when the gateway stops, or who waits has
    gone."""
    reading = Reading(handle.events(told.seq))
    over = [asyncio.ensure_future(place.stopping.wait()), asyncio.ensure_future(until_gone(receive))]
    until = asyncio.get_running_loop().time() + wait_s
    try:
        while not is_so(told):
            left_s = until - asyncio.get_running_loop().time()
            if left_s <= 0:
                break
            await asyncio.wait({reading.next, *over}, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
            if any(each.done() for each in over):
                break
            if reading.next.done():
                event = reading.next.result()
                if event is None:
                    return await task_now(handle)
                told = await _stepped(handle, told, event)
                reading.advance()
    finally:
        for each in over:
            each.cancel()
        await reading.close()
    return told


class TaskStream:
    """Writes a task's stream: first the task, then an update for each difference.

    It ends when the task does, and when it begins to ask for something: whoever reads has to answer first.
    """

    def __init__(self, handle: AsyncTurnHandle, told: Told, call_id: str | int | None) -> None:
        self._handle = handle
        self._told = told
        self._call_id = call_id

    @property
    def opening(self) -> bytes:
        return frame(self._call_id, StreamResponse(task=task_of(self._told)))

    async def write(self, event: TurnEvent) -> Written:
        before = self._told
        self._told = after = await _stepped(self._handle, before, event)
        body = b"".join(frame(self._call_id, update) for update in updates(before, after))
        return Written(body, after.is_over or (after.is_interrupted and not before.is_interrupted))


async def history_of(handle: AsyncTurnHandle, newest: int) -> list[Message]:
    """The newest messages of user and agent; none where they are not kept."""
    try:
        said = await handle.transcript()
    except ContentNotKept:
        return []
    roles = {"user": ROLE_USER, "assistant": ROLE_AGENT}
    return [
        Message(
            message_id=f"{handle.turn_id}-m{number}",
            context_id=handle.session_id,
            task_id=handle.turn_id,
            role=roles[message.role],
            parts=[text_part(message.content)],
        )
        for number, message in enumerate(said)
        if message.role in roles and message.content
    ][-newest:]


async def _stepped(handle: AsyncTurnHandle, told: Told, event: TurnEvent) -> Told:
    result = await handle.result(timeout_s=0) if event.is_final else None
    return await _filled(handle, step(told, event, result))


async def _filled(handle: AsyncTurnHandle, told: Told) -> Told:
    """With the arguments that people are asked about, which events do not hold."""
    if not told.is_interrupted or all(ask.wants == "result" or ask.args_hash for ask in told.asks):
        return told
    found = {approval.id: approval for approval in await handle.approvals()}
    asks = tuple(
        replace(ask, arguments=found[ask.call].arguments, args_hash=found[ask.call].args_hash)
        if ask.call in found
        else ask
        for ask in told.asks
    )
    return replace(told, asks=asks)
