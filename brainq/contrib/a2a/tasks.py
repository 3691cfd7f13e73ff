"""A turn as an A2A task: a pure fold of its chat events, and the updates between two states.

`fold_event` advances a state by one event. `render_task` renders a state, and `task_updates` the difference between two
states. A client that has the first state and applies the updates has the second, wherever it was cut off.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from a2a.types import a2a_pb2 as pb
from google.protobuf import json_format, struct_pb2

from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.event import EventKind, TurnEvent
from brainq.contracts.people import Approval
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import TurnResult
from brainq.errors import ContentNotKept, ResultTimeout, TurnRejected
from brainq.gateway.edge.problems import RequestRejected
from brainq.gateway.edge.request import HttpRequest
from brainq.gateway.rest.event_stream import unless_over
from brainq.gateway.wires.chat.fold import (
    ApprovalRequested,
    ChatState,
    ClientCallRequested,
    EventDetails,
    OtherEvent,
    ReaderRequest,
    TextAdded,
    TurnEnded,
    fold,
)

JSON_TYPE = "application/json"
ANSWER, PARSED = "answer", "parsed"
"""The names of the artifacts: the answer's text, and the answer as JSON if the turn had an `output_schema`."""
END_STATES = frozenset({pb.TASK_STATE_COMPLETED, pb.TASK_STATE_FAILED, pb.TASK_STATE_CANCELED, pb.TASK_STATE_REJECTED})
_ENDINGS: dict[Ending, pb.TaskState] = {
    Ending.COMPLETED: pb.TASK_STATE_COMPLETED,
    Ending.CANCELLED: pb.TASK_STATE_CANCELED,
    Ending.TIMED_OUT: pb.TASK_STATE_FAILED,
    Ending.FAILED: pb.TASK_STATE_FAILED,
}


@dataclass(frozen=True, slots=True)
class FoldedTask:
    """The state of a task after some events.

    seq        the number of the last event
    state      submitted, working, or how the task ended; clients see `visible_state`
    since_ms   the Redis time of the last change of status, or 0 if it is unknown
    since_seq  the number of the event that changed the status
    text       the text of the newest attempt that has any; at the end, the answer's
    note       the reason if the task did not complete
    approvals  the approvals that the task waits for, by id; events do not contain their arguments
    """

    chat: ChatState
    context_id: str
    seq: int = 0
    state: pb.TaskState = pb.TASK_STATE_SUBMITTED
    since_ms: int = 0
    since_seq: int = 0
    text: str = ""
    parsed: Any = None
    note: str = ""
    approvals: Mapping[str, Approval] = field(default_factory=dict[str, Approval])

    @property
    def is_over(self) -> bool:
        return self.state in END_STATES

    @property
    def is_interrupted(self) -> bool:
        """Return whether the task is parked until its client answers a request."""
        return self.chat.waits_for_reader and not self.is_over

    @property
    def visible_state(self) -> pb.TaskState:
        return pb.TASK_STATE_INPUT_REQUIRED if self.is_interrupted else self.state


def new_task(task_id: str, context_id: str) -> FoldedTask:
    return FoldedTask(ChatState(task_id), context_id)


def fold_event(task: FoldedTask, event: TurnEvent, result: TurnResult | None = None) -> FoldedTask:
    """Return the task after one more event. `result` comes with the final event."""
    chat, chat_events = fold(task.chat, event, EventDetails(result=result))
    after = replace(task, chat=chat, seq=event.seq)
    for chat_event in chat_events:
        match chat_event:
            case TextAdded():
                after = replace(after, text=chat.text)
            case OtherEvent() if event.kind is EventKind.TURN_ACTIVE:
                after = replace(after, state=pb.TASK_STATE_WORKING)
            case TurnEnded():
                after = end_task(after, chat_event.result)
            case _:
                pass
    if _status_key(after) == _status_key(task):
        return after
    return replace(after, since_ms=event.at_ms, since_seq=event.seq)


def fold_events(task: FoldedTask, events: Iterable[TurnEvent], result: TurnResult | None = None) -> FoldedTask:
    for event in events:
        task = fold_event(task, event, result)
    return task


def end_task(task: FoldedTask, result: TurnResult) -> FoldedTask:
    """Return the task in the final state of the turn's result."""
    state = _ENDINGS[result.ending]
    if result.stop_reason is StopReason.INVALID_OUTPUT:
        text, note, state = result.text, _failure_text(result), _ENDINGS[Ending.FAILED]
    elif result.ending is Ending.COMPLETED:
        text, note = result.text, ""
    else:
        text, note = result.last_agent_message or "", _failure_text(result)
    return replace(task, state=state, text=text or task.text, note=note, parsed=result.parsed)


def _failure_text(result: TurnResult) -> str:
    """Return why a turn did not complete. A failed turn has only its error, and no text."""
    reason = result.error or result.text
    return reason if reason.strip() else f"{result.ending.value}: {result.stop_reason.value}"


def render_task(task: FoldedTask) -> pb.Task:
    artifacts = [_answer_artifact(task.text)] if task.text else []
    if task.parsed is not None:
        artifacts.append(_parsed_artifact(task.parsed))
    return pb.Task(id=task.chat.turn_id, context_id=task.context_id, status=_status(task), artifacts=artifacts)


def task_updates(before: FoldedTask, after: FoldedTask) -> list[pb.StreamResponse]:
    """Return the updates that lead from one state of a task to a later one.

    There are none if a client sees no difference.
    """
    updates: list[pb.StreamResponse] = []
    if after.text != before.text:
        goes_on = bool(before.text) and after.text.startswith(before.text)
        rest = after.text.removeprefix(before.text) if goes_on else after.text
        updates.append(_artifact_update(after, _answer_artifact(rest), append=goes_on))
    if after.parsed is not None and before.parsed is None:
        updates.append(_artifact_update(after, _parsed_artifact(after.parsed), append=False))
    if _status_key(after) != _status_key(before):
        update = pb.TaskStatusUpdateEvent(
            task_id=after.chat.turn_id, context_id=after.context_id, status=_status(after)
        )
        updates.append(pb.StreamResponse(status_update=update))
    return updates


def _status_key(task: FoldedTask) -> tuple[Any, ...]:
    return task.visible_state, task.note, task.chat.waiting if task.is_interrupted else {}


def _status(task: FoldedTask) -> pb.TaskStatus:
    status = pb.TaskStatus(state=task.visible_state)
    if task.since_ms:
        status.timestamp.FromMilliseconds(task.since_ms)
    if task.is_interrupted:
        status.message.CopyFrom(_status_message(task, _request_parts(task)))
    elif task.note:
        status.message.CopyFrom(_status_message(task, [text_part(task.note)]))
    return status


def _status_message(task: FoldedTask, parts: list[pb.Part]) -> pb.Message:
    """Return the message of a status, whose id is the same at every gateway."""
    task_id = task.chat.turn_id
    message_id = f"{task_id}-{task.since_seq}"
    return pb.Message(
        message_id=message_id, context_id=task.context_id, task_id=task_id, role=pb.ROLE_AGENT, parts=parts
    )


def _request_parts(task: FoldedTask) -> list[pb.Part]:
    """Return a text part for people, followed by one data part for each request."""
    requests = list(task.chat.waiting.values())
    words = "; ".join(
        f"{request.tool} needs {'an approval' if isinstance(request, ApprovalRequested) else 'its result'}"
        + (f" ({request.reason})" if isinstance(request, ApprovalRequested) and request.reason else "")
        for request in requests
    )
    return [text_part(words), *(data_part(_request_data(request, task.approvals)) for request in requests)]


def _request_data(request: ReaderRequest, approvals: Mapping[str, Approval]) -> dict[str, Any]:
    """Return the data of a request. `call` is unique over all turns; a decision can be bound to `args_hash`."""
    if isinstance(request, ClientCallRequested):
        arguments = json.loads(request.arguments)
        return {"call": request.id, "wants": "result", "tool": request.tool, "arguments": arguments}
    expires = datetime.fromtimestamp(request.expires_at_ms / 1000, UTC).isoformat(timespec="milliseconds")
    approval = approvals.get(request.id)
    facts = {
        "call": request.id,
        "wants": "approval",
        "tool": request.tool,
        "reason": request.reason,
        "expires_at": expires.replace("+00:00", "Z") if request.expires_at_ms else "",
        "arguments": approval and approval.arguments,
        "args_hash": approval and approval.args_hash,
    }
    return {name: fact for name, fact in facts.items() if fact not in ("", None)}


def text_part(text: str) -> pb.Part:
    return pb.Part(text=text)


def data_part(value: Any) -> pb.Part:
    return pb.Part(data=json_format.ParseDict(value, struct_pb2.Value()), media_type=JSON_TYPE)


def _answer_artifact(text: str) -> pb.Artifact:
    return pb.Artifact(artifact_id=ANSWER, name=ANSWER, parts=[text_part(text)])


def _parsed_artifact(value: Any) -> pb.Artifact:
    return pb.Artifact(artifact_id=PARSED, name=PARSED, parts=[data_part(value)])


def _artifact_update(task: FoldedTask, artifact: pb.Artifact, *, append: bool) -> pb.StreamResponse:
    update = pb.TaskArtifactUpdateEvent(
        task_id=task.chat.turn_id, context_id=task.context_id, artifact=artifact, append=append, last_chunk=task.is_over
    )
    return pb.StreamResponse(artifact_update=update)


async def read_task(handle: AsyncTurnHandle) -> FoldedTask:
    """Return the task after all events so far or, if they are gone, made from its result."""
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
        return replace(task, state=pb.TASK_STATE_REJECTED, note=str(rejected))


async def wait_for_task(
    request: HttpRequest,
    handle: AsyncTurnHandle,
    task: FoldedTask,
    condition: Callable[[FoldedTask], bool],
    wait_s: float,
) -> FoldedTask:
    """Return the task as soon as the condition holds.

    Returns its current state after `wait_s`, if the gateway stops or the client disconnects, or if no slot is free.
    """

    async def follow() -> None:
        nonlocal task
        async with asyncio.timeout(wait_s):
            async for event in handle.events(task.seq):
                task = await fold_next(handle, task, event)
                if condition(task):
                    return
        task = await read_task(handle)

    if not condition(task):
        with suppress(RequestRejected, TimeoutError), request.stream_slot() as slot:
            await unless_over(follow(), request, slot)
    return task


async def task_history(handle: AsyncTurnHandle, newest: int) -> list[pb.Message]:
    """Return the newest messages of user and agent, or none if they are not stored."""
    try:
        messages = await handle.transcript()
    except ContentNotKept:
        return []
    roles = {"user": pb.ROLE_USER, "assistant": pb.ROLE_AGENT}
    return [
        pb.Message(
            message_id=f"{handle.turn_id}-m{number}",
            context_id=handle.session_id,
            task_id=handle.turn_id,
            role=roles[message.role],
            parts=[text_part(message.content)],
        )
        for number, message in enumerate(messages)
        if message.role in roles and message.content
    ][-newest:]


async def fold_next(handle: AsyncTurnHandle, task: FoldedTask, event: TurnEvent) -> FoldedTask:
    """Return the task after its turn's next event, with details that the event does not contain."""
    result = await handle.result(timeout_s=0) if event.is_final else None
    return await _with_arguments(handle, fold_event(task, event, result))


async def _with_arguments(handle: AsyncTurnHandle, task: FoldedTask) -> FoldedTask:
    """Add the arguments of approvals, which events do not contain."""
    approvals = [request.id for request in task.chat.waiting.values() if isinstance(request, ApprovalRequested)]
    if not task.is_interrupted or all(approval in task.approvals for approval in approvals):
        return task
    return replace(task, approvals={approval.id: approval for approval in await handle.approvals()})
