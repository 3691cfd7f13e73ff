"""A turn's task: as it is now, once a condition holds, and as a stream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from a2a.types.a2a_pb2 import ROLE_AGENT, ROLE_USER, TASK_STATE_REJECTED, Message, StreamResponse
from starlette.types import Receive

from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.event import TurnEvent
from brainq.errors import ContentNotKept, ResultTimeout, TurnRejected
from brainq.gateway.edge.limits import StreamSlot
from brainq.gateway.rest.event_stream import EncodedEvent, EventReader
from brainq.gateway.rest.result_wait import wait_for_disconnect
from brainq.gateway.wires.a2a.rpc import rpc_frame
from brainq.gateway.wires.a2a.task_fold import (
    FoldedTask,
    end_task,
    fold_event,
    fold_events,
    new_task,
    render_task,
    task_updates,
    text_part,
)
from brainq.gateway.wires.chat.events import ApprovalRequested


async def read_task(handle: AsyncTurnHandle) -> FoldedTask:
    """The task after all events so far; where they are gone, by its result."""
    task = new_task(handle.turn_id, handle.session_id)
    so_far = await handle.events_so_far()
    try:
        if so_far:
            result = await handle.result(timeout_s=0) if so_far[-1].is_final else None
            return await _with_arguments(handle, fold_events(task, so_far, result))
        return end_task(task, await handle.result(timeout_s=0))
    except ResultTimeout:
        return task
    except TurnRejected as rejected:
        return replace(task, state=TASK_STATE_REJECTED, note=str(rejected))


async def wait_for_task(
    condition: Callable[[FoldedTask], bool],
    handle: AsyncTurnHandle,
    task: FoldedTask,
    wait_s: float,
    slot: StreamSlot,
    receive: Receive,
) -> FoldedTask:
    """The task as soon as the condition holds; or as it is after `wait_s`, when the gateway stops or the client
    disconnects."""
    reading = EventReader(handle.events(task.seq))
    over = [asyncio.ensure_future(slot.stopping.wait()), asyncio.ensure_future(wait_for_disconnect(receive))]
    until = asyncio.get_running_loop().time() + wait_s
    try:
        while not condition(task):
            remaining_s = until - asyncio.get_running_loop().time()
            if remaining_s <= 0:
                break
            await asyncio.wait({reading.next, *over}, timeout=remaining_s, return_when=asyncio.FIRST_COMPLETED)
            if any(each.done() for each in over):
                break
            if reading.next.done():
                event = reading.next.result()
                if event is None:
                    return await read_task(handle)
                task = await _fold_next(handle, task, event)
                reading.advance()
    finally:
        for each in over:
            each.cancel()
        await reading.close()
    return task


class TaskStream:
    """Writes a task's stream: first the task, then an update for each difference.

    It ends when the task does, and when the task begins to wait for its client.
    """

    def __init__(self, handle: AsyncTurnHandle, task: FoldedTask, call_id: str | int | None) -> None:
        self._handle = handle
        self._task = task
        self._call_id = call_id

    @property
    def opening(self) -> bytes:
        return rpc_frame(self._call_id, StreamResponse(task=render_task(self._task)))

    async def write(self, event: TurnEvent) -> EncodedEvent:
        before = self._task
        self._task = after = await _fold_next(self._handle, before, event)
        body = b"".join(rpc_frame(self._call_id, update) for update in task_updates(before, after))
        return EncodedEvent(body, after.is_over or (after.is_interrupted and not before.is_interrupted))


async def task_history(handle: AsyncTurnHandle, newest: int) -> list[Message]:
    """The newest messages of user and agent; none where they are not stored."""
    try:
        messages = await handle.transcript()
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
        for number, message in enumerate(messages)
        if message.role in roles and message.content
    ][-newest:]


async def _fold_next(handle: AsyncTurnHandle, task: FoldedTask, event: TurnEvent) -> FoldedTask:
    result = await handle.result(timeout_s=0) if event.is_final else None
    return await _with_arguments(handle, fold_event(task, event, result))


async def _with_arguments(handle: AsyncTurnHandle, task: FoldedTask) -> FoldedTask:
    """With the arguments of approvals, which events do not hold."""
    approvals = [request.id for request in task.chat.waiting.values() if isinstance(request, ApprovalRequested)]
    if not task.is_interrupted or all(approval in task.approvals for approval in approvals):
        return task
    return replace(task, approvals={approval.id: approval for approval in await handle.approvals()})
