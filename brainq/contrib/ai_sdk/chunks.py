"""A fold of a turn's chat events to chunks of the AI SDK's UI message stream.

A turn is one assistant message with the turn's id, and its steps are steps of the message. `reset-step` retracts the
text of an attempt that is replaced.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import to_json

from brainq.contracts.event import EventKind, TurnEvent
from brainq.contracts.history import TurnCall
from brainq.contracts.status import Ending, StopReason, TraceStatus
from brainq.contracts.turn import TurnResult
from brainq.gateway.wires.chat import fold as chat
from brainq.gateway.wires.chat.stream import ChatWire

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
"""The finish reason of each stop reason. Any other is `other`."""


class MessageWriter(ChatWire[Chunk]):
    """A wire that renders a turn as one message, or continues the message that the client has.

    in_step     the open step's data parts, which are sent again after a reset removes them from the client
    text_id     the id of the open text, or "" if none is open
    is_marked   True if a part shows the turn's state
    """

    end = b"data: [DONE]\n\n"
    headers = {"x-vercel-ai-ui-message-stream": "v1"}

    def __init__(self, turn_id: str) -> None:
        super().__init__(turn_id)
        self._is_begun = False
        self._is_in_step = False
        self._in_step: list[Chunk] = []
        self._text_id = ""
        self._is_marked = False

    def encode(self, piece: Chunk) -> bytes:
        return to_json(piece, inf_nan_mode="null")

    def read(self, event: TurnEvent, more: chat.EventDetails) -> list[Chunk]:
        start = [] if self._is_begun else self.opening()
        self._is_begun = True
        return start + super().read(event, more)

    def opening(self) -> list[Chunk]:
        turn_id = self.chat.turn_id
        return [{"type": "start", "messageId": turn_id, "messageMetadata": {"turnId": turn_id}}]

    def rest(self) -> list[Chunk]:
        return [*self._text_end(), {"type": "finish-step"}, {"type": "finish", "finishReason": "tool-calls"}]

    def cut(self, why: str) -> list[Chunk]:
        return [{"type": "error", "errorText": why}]

    def render(self, event: chat.ChatEvent) -> list[Chunk]:
        match event:
            case chat.StepStarted():
                chunks = [*self._end_text(), *self._end_step(), {"type": "start-step"}]
                self._is_in_step = True
                return chunks
            case chat.StepReset():
                return [*self._end_text(), {"type": "reset-step"}, *self._in_step]
            case chat.TextAdded(text, step, attempt):
                return self._add_text(f"{step}.{attempt}", text)
            case chat.TextEnded():
                return self._end_text()
            case chat.ReasoningStarted(id):
                return [{"type": "reasoning-start", "id": id}]
            case chat.ReasoningAdded(id, text):
                return [{"type": "reasoning-delta", "id": id, "delta": text}]
            case chat.ReasoningEnded(id):
                return [{"type": "reasoning-end", "id": id}]
            case chat.CallRequested(call):
                begins = {"type": "tool-input-start", "toolCallId": call.id, "toolName": call.tool}
                return [{**begins, "providerExecuted": True}, _input(call.id, call.tool, call.arguments)]
            case chat.ClientCallRequested(id, tool, arguments):
                # While it waited for the calls before it, it was announced as a call of the brain's tool.
                return [{**_input(id, tool, json.loads(arguments)), "providerExecuted": False}]
            case chat.ApprovalRequested(id, _, reason):
                ask: Chunk = {"type": "tool-approval-request", "approvalId": id, "toolCallId": id}
                return [{**ask, "reason": reason} if reason else ask]
            case chat.ApprovalResolved():
                return _approval_response(event)
            case chat.CallEnded(call):
                return [_output(call)]
            case chat.OtherEvent(noted):
                return self._render_other(noted)
            case chat.TurnEnded():
                return self._end_message(event)

    def _add_text(self, text_id: str, text: str) -> list[Chunk]:
        delta: Chunk = {"type": "text-delta", "id": text_id, "delta": text}
        if self._text_id == text_id:
            return [delta]
        chunks = [*self._end_text(), {"type": "text-start", "id": text_id}, delta]
        self._text_id = text_id
        return chunks

    def _text_end(self) -> list[Chunk]:
        return [{"type": "text-end", "id": self._text_id}] if self._text_id else []

    def _end_text(self) -> list[Chunk]:
        chunks, self._text_id = self._text_end(), ""
        return chunks

    def _end_step(self) -> list[Chunk]:
        chunks: list[Chunk] = [{"type": "finish-step"}] if self._is_in_step else []
        self._is_in_step, self._in_step = False, []
        return chunks

    def _render_other(self, event: TurnEvent) -> list[Chunk]:
        data: dict[str, Any] = dict(event.data)
        turn_id = self.chat.turn_id
        match event.kind:
            case EventKind.TURN_QUEUED | EventKind.TURN_PARKED | EventKind.TURN_CANCELLING:
                self._is_marked = True
                return self._part("turn", turn_id, {"state": event.kind.value.removeprefix("turn."), **data})
            case EventKind.TURN_ACTIVE | EventKind.TURN_RESUMED if self._is_marked:
                return self._part("turn", turn_id, {"state": "active"})
            case EventKind.INPUT_ACCEPTED | EventKind.INPUT_CONSUMED | EventKind.INPUT_BOUNCED:
                word = event.kind.value.removeprefix("input.")
                return self._part("receipt", data["input"], {"state": word, **data})
            case EventKind.HOLD_PLACED | EventKind.HOLD_RELEASED:
                return self._part("hold", data["hold"], {"stands": event.kind is EventKind.HOLD_PLACED, **data})
            case EventKind.TURN_DIFF:
                return self._part("diff", turn_id, data)
            case _:
                return [{"type": "data-event", "data": {**data, "event": event.kind.value}, "transient": True}]

    def _part(self, name: str, part_id: str, data: Any) -> list[Chunk]:
        """Return a data part, which replaces an earlier one of the same name and id."""
        chunk: Chunk = {"type": f"data-{name}", "id": part_id, "data": data}
        if self._is_in_step:
            self._in_step.append(chunk)
        return [chunk]

    def _end_message(self, event: chat.TurnEnded) -> list[Chunk]:
        result, chunks = event.result, list[Chunk]()
        if event.rest:
            chunks = self._add_text("end" if event.is_new or not self._text_id else self._text_id, event.rest)
        chunks += [*self._end_text(), *_sources(result), *self._end_step()]
        about = {"messageMetadata": _metadata(result)}
        match result.ending:
            case Ending.FAILED:
                # A client stops at an error, so the turn's metadata must precede it.
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
        return chunks


def _input(call_id: str, tool: str, arguments: Any) -> Chunk:
    """Return the chunk of a call's input. The brain runs its own tools, so they are `providerExecuted`."""
    return {
        "type": "tool-input-available",
        "toolCallId": call_id,
        "toolName": tool,
        "input": {} if arguments is None else arguments,
        "providerExecuted": True,
    }


def _approval_response(event: chat.ApprovalResolved) -> list[Chunk]:
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
    """Return a result for clients: an object or a list if the model's text is its JSON, or else the text."""
    if result[:1] not in ("{", "["):
        return result
    try:
        return json.loads(result)
    except ValueError:
        return result


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
