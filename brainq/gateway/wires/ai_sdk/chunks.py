"""From a turn's chat events to chunks of the AI SDK's UI message stream: pure.

A turn is one assistant message, whose id is the turn's; each step of it is a step of the message. The text
of an attempt that is replaced is retracted by `reset-step`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from brainq.contracts.event import EventKind, TurnEvent
from brainq.contracts.history import TurnCall
from brainq.contracts.status import Ending, StopReason, TraceStatus
from brainq.contracts.turn import TurnResult
from brainq.gateway.wires.chat.fold import (
    ApprovalRequested,
    ApprovalResolved,
    CallEnded,
    CallRequested,
    ChatEvent,
    ChatState,
    ClientCallRequested,
    EventDetails,
    OtherEvent,
    ReasoningAdded,
    ReasoningEnded,
    ReasoningStarted,
    StepReset,
    StepStarted,
    TextAdded,
    TextEnded,
    TurnEnded,
    fold,
)

Chunk = dict[str, Any]

FINISH: dict[StopReason, str] = {
    StopReason.ANSWERED: "stop",
    StopReason.LENGTH: "length",
    StopReason.FILTERED: "content-filter",
    StopReason.MAX_STEPS: "length",
    StopReason.MAX_TOTAL_TOKENS: "length",
    StopReason.CANCELLED: "interrupted",
    StopReason.INVALID_OUTPUT: "error",
    StopReason.MODEL_ERROR: "error",
    StopReason.LIMITED: "error",
    StopReason.INTERNAL_ERROR: "error",
    StopReason.LOST: "error",
}
"""Any other stop is `other`."""
_IS_HELD = {EventKind.HOLD_PLACED: True, EventKind.HOLD_RELEASED: False}


@dataclass(frozen=True, slots=True)
class MessageState:
    """A message so far.

    is_in_step  a step is open
    in_step     the step's data parts: a reset removes them from the client, so they are sent again
    text_id     of the open text; empty: none is open
    is_marked   a part shows the turn's state
    """

    chat: ChatState
    is_begun: bool = False
    is_in_step: bool = False
    in_step: tuple[Chunk, ...] = ()
    text_id: str = ""
    is_marked: bool = False


Rendered = tuple[MessageState, list[Chunk]]


def initial_state(turn_id: str) -> MessageState:
    return MessageState(ChatState(turn_id))


def render_event(state: MessageState, event: TurnEvent, more: EventDetails) -> Rendered:
    """The state after an event, and its chunks."""
    chat, chat_events = fold(state.chat, event, more)
    chunks = [] if state.is_begun else [start_chunk(chat.turn_id)]
    state = replace(state, chat=chat, is_begun=True)
    for chat_event in chat_events:
        state, added = _render(state, chat_event)
        chunks += added
    return state, chunks


def start_chunk(turn_id: str) -> Chunk:
    """Begins the message, or continues the one that the client has."""
    return {"type": "start", "messageId": turn_id, "messageMetadata": {"turnId": turn_id}}


def rest_chunks(state: MessageState) -> list[Chunk]:
    """Ends a stream whose turn waits for its reader."""
    return [*_end_text(state), {"type": "finish-step"}, {"type": "finish", "finishReason": "tool-calls"}]


def cut_chunks(why: str) -> list[Chunk]:
    """Ends a stream whose turn goes on: the client reconnects."""
    return [{"type": "error", "errorText": why}]


def _render(state: MessageState, event: ChatEvent) -> Rendered:
    match event:
        case StepStarted():
            began = replace(state, is_in_step=True, in_step=(), text_id="")
            return began, [*_end_text(state), *_finish_step(state), {"type": "start-step"}]
        case StepReset():
            return replace(state, text_id=""), [*_end_text(state), {"type": "reset-step"}, *state.in_step]
        case TextAdded(text, step, attempt):
            return _render_text(state, f"{step}.{attempt}", text)
        case TextEnded():
            return replace(state, text_id=""), _end_text(state)
        case ReasoningStarted(id):
            return state, [{"type": "reasoning-start", "id": id}]
        case ReasoningAdded(id, text):
            return state, [{"type": "reasoning-delta", "id": id, "delta": text}]
        case ReasoningEnded(id):
            return state, [{"type": "reasoning-end", "id": id}]
        case CallRequested(call):
            begins = {"type": "tool-input-start", "toolCallId": call.id, "toolName": call.tool}
            return state, [{**begins, "providerExecuted": True}, _input(call.id, call.tool, call.arguments)]
        case ClientCallRequested(id, tool, arguments):
            # It was announced as the brain's own while it waited for the calls before it.
            return state, [{**_input(id, tool, json.loads(arguments)), "providerExecuted": False}]
        case ApprovalRequested(id, _, reason):
            ask: Chunk = {"type": "tool-approval-request", "approvalId": id, "toolCallId": id}
            return state, [{**ask, "reason": reason} if reason else ask]
        case ApprovalResolved():
            return state, _approval_response(event)
        case CallEnded(call):
            return state, [_output(call)]
        case OtherEvent(noted):
            return _render_other(state, noted)
        case TurnEnded():
            return _render_end(state, event)


def _render_text(state: MessageState, text_id: str, text: str) -> Rendered:
    delta: Chunk = {"type": "text-delta", "id": text_id, "delta": text}
    if state.text_id == text_id:
        return state, [delta]
    return replace(state, text_id=text_id), [*_end_text(state), {"type": "text-start", "id": text_id}, delta]


def _end_text(state: MessageState) -> list[Chunk]:
    return [{"type": "text-end", "id": state.text_id}] if state.text_id else []


def _finish_step(state: MessageState) -> list[Chunk]:
    return [{"type": "finish-step"}] if state.is_in_step else []


def _input(call_id: str, tool: str, arguments: Any) -> Chunk:
    """The brain runs its tools itself, so to a client they are `providerExecuted`."""
    return {
        "type": "tool-input-available",
        "toolCallId": call_id,
        "toolName": tool,
        "input": {} if arguments is None else arguments,
        "providerExecuted": True,
    }


def _approval_response(event: ApprovalResolved) -> list[Chunk]:
    response: Chunk = {
        "type": "tool-approval-response",
        "approvalId": event.id,
        "approved": event.decision == "approved",
    }
    if event.decision == "expired":
        response["reason"] = "it was not decided in time"
    if event.arguments is None:
        return [response]
    return [_input(event.id, event.tool, event.arguments), response]


def _output(call: TurnCall) -> Chunk:
    ended: Chunk = {"type": "tool-output-available", "toolCallId": call.id}
    if call.status is TraceStatus.DENIED and call.detail == "approval":
        return ended | {"type": "tool-output-denied"}
    if call.is_error or call.status is not TraceStatus.COMPLETED:
        return ended | {"type": "tool-output-error", "errorText": call.result or call.status.value}
    return ended | {"output": _value(call.result or "")}


def _value(result: str) -> Any:
    """A result is text to the model. Clients expect an object or a list where that text is its JSON."""
    if result[:1] not in ("{", "["):
        return result
    try:
        return json.loads(result)
    except ValueError:
        return result


def _render_other(state: MessageState, event: TurnEvent) -> Rendered:
    data: dict[str, Any] = dict(event.data)
    turn_id = state.chat.turn_id
    match event.kind:
        case EventKind.TURN_QUEUED:
            return _part(state, "turn", turn_id, {"state": "queued", **data}, is_marked=True)
        case EventKind.TURN_PARKED:
            return _part(state, "turn", turn_id, {"state": "parked", **data}, is_marked=True)
        case EventKind.TURN_CANCELLING:
            return _part(state, "turn", turn_id, {"state": "cancelling", **data}, is_marked=True)
        case EventKind.TURN_ACTIVE | EventKind.TURN_RESUMED if state.is_marked:
            return _part(state, "turn", turn_id, {"state": "active"})
        case EventKind.INPUT_ACCEPTED | EventKind.INPUT_CONSUMED | EventKind.INPUT_BOUNCED:
            word = event.kind.value.removeprefix("input.")
            return _part(state, "receipt", data["input"], {"state": word, **data})
        case EventKind.HOLD_PLACED | EventKind.HOLD_RELEASED:
            return _part(state, "hold", data["hold"], {"stands": _IS_HELD[event.kind], **data})
        case EventKind.TURN_DIFF:
            return _part(state, "diff", turn_id, data)
        case _:
            return state, [{"type": "data-event", "data": {**data, "event": event.kind.value}, "transient": True}]


def _part(state: MessageState, name: str, part_id: str, data: Any, *, is_marked: bool = False) -> Rendered:
    """A data part. It replaces an earlier one of the same name and id."""
    chunk: Chunk = {"type": f"data-{name}", "id": part_id, "data": data}
    in_step = (*state.in_step, chunk) if state.is_in_step else ()
    return replace(state, in_step=in_step, is_marked=state.is_marked or is_marked), [chunk]


def _render_end(state: MessageState, event: TurnEnded) -> Rendered:
    result, chunks = event.result, list[Chunk]()
    if event.rest:
        text_id = "end" if event.is_new or not state.text_id else state.text_id
        state, chunks = _render_text(state, text_id, event.rest)
    chunks += [*_end_text(state), *_sources(result), *_finish_step(state)]
    about = {"messageMetadata": _metadata(result)}
    match result.ending:
        case Ending.FAILED:
            # A client stops at an error, so the turn's metadata comes before it.
            chunks.append({"type": "message-metadata", **about})
            chunks.append({"type": "error", "errorText": result.error or "the turn failed"})
        case Ending.COMPLETED if result.stop_reason is StopReason.INVALID_OUTPUT:
            chunks.append({"type": "message-metadata", **about})
            chunks.append({"type": "error", "errorText": result.error or "the answer does not fit its schema"})
        case Ending.CANCELLED:
            chunks.append({"type": "abort", "reason": result.error or "the turn was cancelled"})
        case _:
            pass
    chunks.append({"type": "finish", "finishReason": FINISH.get(result.stop_reason, "other"), **about})
    return replace(state, is_in_step=False, in_step=(), text_id=""), chunks


def _sources(result: TurnResult) -> list[Chunk]:
    web: list[Chunk] = [
        {"type": "source-url", "sourceId": f"web-{at}", "url": cited.source, "title": cited.title or cited.source}
        for at, cited in enumerate(result.web_citations)
    ]
    local: list[Chunk] = [
        {
            "type": "source-document",
            "sourceId": f"local-{at}",
            "mediaType": "text/plain",
            "title": cited.title or cited.source,
            "filename": cited.source,
        }
        for at, cited in enumerate(result.local_citations)
    ]
    return web + local


def _metadata(result: TurnResult) -> dict[str, Any]:
    return {
        "turnId": result.turn_id,
        "ending": result.ending.value,
        "stopReason": result.stop_reason.value,
        "usage": {
            "inputTokens": result.input_tokens,
            "outputTokens": result.output_tokens,
            "totalTokens": result.input_tokens + result.output_tokens,
            "cachedInputTokens": result.cache_read_tokens,
        },
        "costUsd": result.cost_usd,
        "steps": result.steps,
        "toolCalls": result.tool_calls,
        "elapsedMs": result.elapsed_ms,
    }
