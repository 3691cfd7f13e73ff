"""A turn as a task of A2A: a pure fold over its numbered events, and the updates between two states.

`fold_event` takes a state over one event. `render_task` is a state as a whole, and `task_updates` leads from one to a
later one. A client that has the first as a task and takes the updates has the second, wherever it was cut off."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, cast

from a2a.types.a2a_pb2 import (
    ROLE_AGENT,
    TASK_STATE_CANCELED,
    TASK_STATE_COMPLETED,
    TASK_STATE_FAILED,
    TASK_STATE_INPUT_REQUIRED,
    TASK_STATE_REJECTED,
    TASK_STATE_SUBMITTED,
    TASK_STATE_WORKING,
    Artifact,
    Message,
    Part,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from google.protobuf import json_format, struct_pb2

from brainq.contracts.event import EventKind, TurnEvent
from brainq.contracts.ids import full_call_id
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import TurnResult

# Messages of a task, and the parts they are of.

JSON_TYPE = "application/json"


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """What a call wants of people, or of the client.

    call        its id over all turns, which is also the approval's
    wants       `approval`, or the `result` of the client's own tool
    arguments   None where they are not at hand
    args_hash   what a decision may be bound to
    """

    call: str
    wants: Literal["approval", "result"]
    tool: str
    reason: str = ""
    expires_at_ms: int = 0
    arguments: Any = None
    args_hash: str = ""

    @property
    def as_data(self) -> dict[str, Any]:
        """As a data part of the status."""
        expires = datetime.fromtimestamp(self.expires_at_ms / 1000, UTC).isoformat(timespec="milliseconds")
        facts = {
            "call": self.call,
            "wants": self.wants,
            "tool": self.tool,
            "reason": self.reason,
            "expires_at": expires.replace("+00:00", "Z") if self.expires_at_ms else "",
            "arguments": self.arguments,
            "args_hash": self.args_hash,
        }
        return {name: fact for name, fact in facts.items() if fact not in ("", None)}


def request_message(task_id: str, context_id: str, seq: int, asks: Sequence[PendingRequest]) -> Message:
    """The message of a status that waits for answers: words for people, then one data part for each."""
    words = "; ".join(
        f"{ask.tool} needs {'an approval' if ask.wants == 'approval' else 'its result'}"
        + (f" ({ask.reason})" if ask.reason else "")
        for ask in asks
    )
    parts = [text_part(words), *(data_part(ask.as_data) for ask in asks)]
    return _message(task_id, context_id, seq, parts)


def text_message(task_id: str, context_id: str, seq: int, text: str) -> Message:
    return _message(task_id, context_id, seq, [text_part(text)])


def text_part(text: str) -> Part:
    return Part(text=text)


def data_part(value: Any) -> Part:
    return Part(data=json_format.ParseDict(value, struct_pb2.Value()), media_type=JSON_TYPE)


def _message(task_id: str, context_id: str, seq: int, parts: list[Part]) -> Message:
    """The same status has the same message id, whoever folds it."""
    return Message(message_id=f"{task_id}-{seq}", context_id=context_id, task_id=task_id, role=ROLE_AGENT, parts=parts)


# A turn as a task of A2A: a pure fold over its numbered events, and what has to be told where two states differ.
#
# `step` takes a state over one event. `task_of` is a state as a whole, `updates` is the way from one to a later one:
# who has the first as a task and takes the updates has the second, wherever he was cut off.

ANSWER, PARSED = "answer", "parsed"

"""The artifacts: the answer's text, and the answer as JSON where the turn had an `output_schema`."""

END_STATES = frozenset({TASK_STATE_COMPLETED, TASK_STATE_FAILED, TASK_STATE_CANCELED, TASK_STATE_REJECTED})

_ENDINGS: dict[Ending, TaskState] = {
    Ending.COMPLETED: TASK_STATE_COMPLETED,
    Ending.CANCELLED: TASK_STATE_CANCELED,
    Ending.TIMED_OUT: TASK_STATE_FAILED,
    Ending.FAILED: TASK_STATE_FAILED,
}


@dataclass(frozen=True, slots=True)
class FoldedTask:
    """A task after so many events.

    seq        the number of the last one
    state      submitted, working, or how it ended; `shown` says what a client sees
    since_ms   when its status changed last, Redis time, and since_seq by which event; 0: not known any more
    said_in    (step, attempt) that the text is of: what a later one says replaces it
    note       why it ended so, for one that did not complete
    asks       what calls want of people
    is_parked  nothing goes on before somebody does something
    """

    task_id: str
    context_id: str
    seq: int = 0
    state: TaskState = TASK_STATE_SUBMITTED
    since_ms: int = 0
    since_seq: int = 0
    text: str = ""
    said_in: tuple[int, int] = (0, 0)
    parsed: Any = None
    note: str = ""
    asks: tuple[PendingRequest, ...] = ()
    is_parked: bool = False

    @property
    def is_over(self) -> bool:
        return self.state in END_STATES

    @property
    def is_interrupted(self) -> bool:
        """Whether all stands still until somebody answers what is asked."""
        return self.is_parked and bool(self.asks) and not self.is_over

    @property
    def shown(self) -> TaskState:
        return TASK_STATE_INPUT_REQUIRED if self.is_interrupted else self.state


def fold_event(task: FoldedTask, event: TurnEvent, result: TurnResult | None = None) -> FoldedTask:
    """The task after one more event. `result` comes with the final one."""
    after = replace(_apply_event(task, event, result), seq=event.seq)
    return (
        after if _status_key(after) == _status_key(task) else replace(after, since_ms=event.at_ms, since_seq=event.seq)
    )


def fold_events(task: FoldedTask, events: Iterable[TurnEvent], result: TurnResult | None = None) -> FoldedTask:
    """The task after all of these."""
    for event in events:
        task = fold_event(task, event, result)
    return task


def end_task(task: FoldedTask, result: TurnResult) -> FoldedTask:
    """The task as its turn's result says it ended."""
    state = _ENDINGS[result.ending]
    if result.stop_reason is StopReason.INVALID_OUTPUT:
        said, note, state = result.text, _failure_text(result), _ENDINGS[Ending.FAILED]
    elif result.ending is Ending.COMPLETED:
        said, note = result.text, ""
    else:
        said, note = result.last_agent_message or "", _failure_text(result)
    return replace(task, state=state, text=said or task.text, note=note, parsed=result.parsed, asks=(), is_parked=False)


def _failure_text(result: TurnResult) -> str:
    """Why a turn did not complete. A turn that failed has no text of its own, only its error."""
    reason = result.error or result.text
    return reason if reason.strip() else f"{result.ending.value}: {result.stop_reason.value}"


def render_task(task: FoldedTask) -> Task:
    """The whole."""
    return Task(id=task.task_id, context_id=task.context_id, status=_status(task), artifacts=list(_artifacts(task)))


def task_updates(before: FoldedTask, after: FoldedTask) -> list[StreamResponse]:
    """What leads from one state to a later one of the same task. Nothing where a client sees no difference."""
    found: list[StreamResponse] = []
    if after.text != before.text:
        goes_on = bool(before.text) and after.said_in == before.said_in and after.text.startswith(before.text)
        rest = after.text.removeprefix(before.text) if goes_on else after.text
        found.append(_artifact_update(after, _answer_artifact(rest), append=goes_on))
    if after.parsed is not None and before.parsed is None:
        found.append(_artifact_update(after, _parsed_artifact(after.parsed), append=False))
    if _status_key(after) != _status_key(before):
        update = TaskStatusUpdateEvent(task_id=after.task_id, context_id=after.context_id, status=_status(after))
        found.append(StreamResponse(status_update=update))
    return found


def _apply_event(task: FoldedTask, event: TurnEvent, result: TurnResult | None) -> FoldedTask:
    data = cast("dict[str, Any]", event.data)
    match event.kind:
        case EventKind.TURN_ACTIVE:
            return replace(task, state=TASK_STATE_WORKING)
        case EventKind.TEXT_DELTA:
            said_in = (data["step"], data["attempt"])
            text = task.text + data["text"] if said_in == task.said_in else data["text"]
            return replace(task, text=text, said_in=said_in)
        case EventKind.APPROVAL_REQUESTED:
            ask = PendingRequest(
                full_call_id(task.task_id, data["call"]),
                "approval",
                data["tool"],
                data["reason"],
                event.at_ms + int(data["expires_in_ms"]),
            )
            return replace(task, asks=(*task.asks, ask))
        case EventKind.CALL_PARKED if data["why"] == "client":
            call = full_call_id(task.task_id, data["call"])
            ask = PendingRequest(call, "result", data["tool"], arguments=json.loads(data["arguments"]))
            return replace(task, asks=(*task.asks, ask))
        case EventKind.APPROVAL_DECIDED | EventKind.CALL_ENDED:
            call = full_call_id(task.task_id, data["call"])
            return replace(task, asks=tuple(ask for ask in task.asks if ask.call != call))
        case EventKind.TURN_PARKED:
            return replace(task, is_parked=True)
        case EventKind.TURN_RESUMED:
            return replace(task, is_parked=False)
        case EventKind.RESULT:
            if result is None:
                raise ValueError("the final event came without its result")
            return end_task(task, result)
        case _:
            return task


def _status_key(task: FoldedTask) -> tuple[Any, ...]:
    return task.shown, task.note, task.asks if task.is_interrupted else ()


def _status(task: FoldedTask) -> TaskStatus:
    status = TaskStatus(state=task.shown)
    if task.since_ms:
        status.timestamp.FromMilliseconds(task.since_ms)
    if task.is_interrupted:
        status.message.CopyFrom(request_message(task.task_id, task.context_id, task.since_seq, task.asks))
    elif task.note:
        status.message.CopyFrom(text_message(task.task_id, task.context_id, task.since_seq, task.note))
    return status


def _artifacts(task: FoldedTask) -> Iterable[Artifact]:
    if task.text:
        yield _answer_artifact(task.text)
    if task.parsed is not None:
        yield _parsed_artifact(task.parsed)


def _answer_artifact(text: str) -> Artifact:
    return Artifact(artifact_id=ANSWER, name=ANSWER, parts=[text_part(text)])


def _parsed_artifact(value: Any) -> Artifact:
    return Artifact(artifact_id=PARSED, name=PARSED, parts=[data_part(value)])


def _artifact_update(task: FoldedTask, artifact: Artifact, *, append: bool) -> StreamResponse:
    update = TaskArtifactUpdateEvent(
        task_id=task.task_id, context_id=task.context_id, artifact=artifact, append=append, last_chunk=task.is_over
    )
    return StreamResponse(artifact_update=update)
