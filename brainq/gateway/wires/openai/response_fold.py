"""A pure fold of a part's events to an OpenAI response and to the numbered events of its stream.

Events are numbered from 0, and the same turn always gives the same events. Any gateway can therefore continue a stream
after any number: it folds the turn from the beginning and skips the events that were seen.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from brainq.contracts.ids import is_background_turn
from brainq.contracts.status import Ending
from brainq.gateway.wires.chat.fold import ClientCallRequested
from brainq.gateway.wires.openai import part_fold
from brainq.gateway.wires.openai.errors import failure_status

RESPONSE_ID_PREFIX = "resp_"
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


def response_id(turn_id: str, part: int) -> str:
    """Return the id of a turn's part: `resp_TURN`, `resp_TURN.2` and so on."""
    return f"{RESPONSE_ID_PREFIX}{turn_id}" if part == 1 else f"{RESPONSE_ID_PREFIX}{turn_id}.{part}"


def split_response_id(given: str) -> tuple[str, int] | None:
    """Return (turn id, part), or None for an id that is not one of ours."""
    turn_id, dot, part = given.removeprefix(RESPONSE_ID_PREFIX).partition(".")
    if (
        not given.startswith(RESPONSE_ID_PREFIX)
        or not turn_id
        or (dot and not (part.isdecimal() and 1 < int(part[:9]) < 10_000))
    ):
        return None
    return turn_id, int(part) if dot else 1


@dataclass(slots=True)
class ResponseFold:
    """The state of a response after some events of its part.

    seen   the number of the last event that need not be sent again
    spans  the spans of reasoning, each of which is a part of its item's summary
    order  the kinds of items in the output so far, `reasoning` and `message`; calls follow them
    """

    turn_id: str
    model: str
    session_id: str
    seen: int = -1
    part: int = 1
    number: int = 0
    at_s: int = 0
    status: str = "queued"
    text: str = ""
    spans: tuple[str, ...] = ()
    is_thinking: bool = False
    order: tuple[str, ...] = ()
    calls: tuple[ClientCallRequested, ...] = ()
    usage: part_fold.Usage | None = None
    error: dict[str, str] | None = None
    incomplete: str | None = None
    frames: list[bytes] = field(default_factory=list[bytes])

    def write(self, event: part_fold.PartEvent) -> bytes:
        """Return the frames of the events that a part event produces."""
        self.frames = []
        match event:
            case part_fold.PartStarted():
                self.part, self.at_s, self.status = event.part, event.at_s, "in_progress"
                self._emit("response.created", response=self.body())
                self._emit("response.in_progress", response=self.body())
            case part_fold.PartReasoning():
                self._think(event)
            case part_fold.PartText():
                self._end_span()
                self._open_text()
                self.text += event.text
                self._emit("response.output_text.delta", **self._where(), delta=event.text, logprobs=[])
            case part_fold.ToolCallsRequested():
                self._end_items(event.text, event.thoughts)
                for call in event.calls:
                    self._call(call)
                self.calls = event.calls
                self._end("completed", event.usage)
            case part_fold.PartCompleted():
                self._end_items(event.text, event.thoughts)
                self.incomplete = _INCOMPLETE.get(event.finish)
                self._end("incomplete" if self.incomplete else "completed", event.usage)
            case part_fold.PartFailed():
                self._end_items(event.text, event.thoughts)
                self.error = _error(event)
                self._end("cancelled" if event.ending is Ending.CANCELLED else "failed", event.usage)
        return b"".join(self.frames)

    def cut(self) -> bytes:
        """Return the last frame of an unfinished stream. Its number is the last event's, after which to continue."""
        event = {
            "type": "error",
            "code": "stopping",
            "message": "the gateway is stopping; continue with starting_after",
            "param": None,
            "sequence_number": max(self.seen, self.number - 1, 0),
        }
        return b"event: error\ndata: " + json.dumps(event, separators=(",", ":")).encode() + b"\n\n"

    def body(self) -> dict[str, Any]:
        """Return the response in its current state."""
        usage = self.usage
        return {
            "id": response_id(self.turn_id, self.part),
            "object": "response",
            "created_at": self.at_s,
            "status": self.status,
            "background": is_background_turn(self.turn_id),
            "error": self.error,
            "incomplete_details": None if self.incomplete is None else {"reason": self.incomplete},
            "instructions": None,
            "max_output_tokens": None,
            "metadata": {},
            "model": self.model,
            "output": self._output(),
            "parallel_tool_calls": True,
            "conversation": {"id": self.session_id},
            "previous_response_id": None,
            "temperature": None,
            "text": {"format": {"type": "text"}},
            "tool_choice": "auto",
            "tools": [],
            "top_p": None,
            "truncation": "disabled",
            "usage": None if usage is None else _render_usage(usage),
        }

    def _output(self) -> list[dict[str, Any]]:
        done = self.status not in ("queued", "in_progress")
        status = "completed" if done else "in_progress"
        items = [
            self._message(status, done=True) if kind == "message" else self._reasoning(status) for kind in self.order
        ]
        return [*items, *(_call_item(call, "completed") for call in self.calls)]

    def _message(self, status: str, *, done: bool) -> dict[str, Any]:
        content = [_content(self.text)] if done else []
        ident = f"msg_{self.turn_id}.{self.part}"
        return {"id": ident, "type": "message", "role": "assistant", "status": status, "content": content}

    def _reasoning(self, status: str) -> dict[str, Any]:
        summary = [_summary(span) for span in self.spans]
        return {"id": self._reasoning_id(), "type": "reasoning", "status": status, "summary": summary}

    def _reasoning_id(self) -> str:
        return f"rs_{self.turn_id}.{self.part}"

    def _think(self, event: part_fold.PartReasoning) -> None:
        if event.span > len(self.spans):
            self._end_span()
            self._open("reasoning", self._reasoning("in_progress"))
            self.spans, self.is_thinking = (*self.spans, ""), True
            self._emit("response.reasoning_summary_part.added", **self._which_span(), part=_summary(""))
        self.spans = (*self.spans[:-1], self.spans[-1] + event.text)
        self._emit("response.reasoning_summary_text.delta", **self._which_span(), delta=event.text)

    def _end_span(self) -> None:
        if self.is_thinking:
            self.is_thinking = False
            summary = self.spans[-1]
            self._emit("response.reasoning_summary_text.done", **self._which_span(), text=summary)
            self._emit("response.reasoning_summary_part.done", **self._which_span(), part=_summary(summary))

    def _which_span(self) -> dict[str, Any]:
        return {
            "item_id": self._reasoning_id(),
            "output_index": self.order.index("reasoning"),
            "summary_index": len(self.spans) - 1,
        }

    def _where(self) -> dict[str, Any]:
        return {
            "item_id": f"msg_{self.turn_id}.{self.part}",
            "output_index": self.order.index("message"),
            "content_index": 0,
        }

    def _open(self, kind: str, item: dict[str, Any]) -> bool:
        """Begin an item unless it has begun. Returns whether it is new."""
        if kind in self.order:
            return False
        self.order = (*self.order, kind)
        self._emit("response.output_item.added", output_index=len(self.order) - 1, item=item)
        return True

    def _open_text(self) -> None:
        if self._open("message", self._message("in_progress", done=False)):
            self._emit("response.content_part.added", **self._where(), part=_content(""))

    def _end_items(self, whole: str, thoughts: tuple[str, ...]) -> None:
        """End all items. The thoughts of an abandoned attempt were sent, but the ended item does not contain them."""
        self._end_span()
        if whole:
            self._open_text()
        self.spans = thoughts
        for index, kind in enumerate(self.order):
            if kind == "message":
                self._end_text(whole)
                item = self._message("completed", done=True)
            else:
                item = self._reasoning("completed")
            self._emit("response.output_item.done", output_index=index, item=item)

    def _end_text(self, whole: str) -> None:
        self.text = whole or self.text
        self._emit("response.output_text.done", **self._where(), text=self.text, logprobs=[])
        self._emit("response.content_part.done", **self._where(), part=_content(self.text))

    def _call(self, call: ClientCallRequested) -> None:
        index = len(self.order) + len(self.calls)
        self.calls = (*self.calls, call)
        where = {"item_id": f"fc_{call.id}", "output_index": index}
        begun = {**_call_item(call, "in_progress"), "arguments": ""}
        self._emit("response.output_item.added", output_index=index, item=begun)
        self._emit("response.function_call_arguments.delta", **where, delta=call.arguments)
        self._emit("response.function_call_arguments.done", **where, name=call.tool, arguments=call.arguments)
        self._emit("response.output_item.done", output_index=index, item=_call_item(call, "completed"))

    def _end(self, status: str, usage: part_fold.Usage) -> None:
        self.status, self.usage = status, usage
        # OpenAI has no event for a cancelled response, so it is reported as failed.
        kind = {"cancelled": "failed"}.get(status, status)
        self._emit(f"response.{kind}", response=self.body())

    def _emit(self, kind: str, **rest: Any) -> None:
        number, self.number = self.number, self.number + 1
        if number > self.seen:
            event = {"type": kind, "sequence_number": number, **rest}
            body = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
            self.frames.append(b"event: " + kind.encode() + b"\ndata: " + body + b"\n\n")


def render_response(fold: ResponseFold, part_events: Sequence[part_fold.PartEvent]) -> dict[str, Any]:
    for event in part_events:
        fold.write(event)
    return fold.body()


def _error(failed: part_fold.PartFailed) -> dict[str, str] | None:
    """Return the error with a code that a client can act on. Returns None for a cancelled response."""
    if failed.ending is Ending.CANCELLED:
        return None
    code = failure_status(failed.ending, failed.message)[1]
    return {"code": "server_error" if code.startswith("turn_") else code, "message": failed.message}


def _summary(text: str) -> dict[str, Any]:
    return {"type": "summary_text", "text": text}


def _content(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _call_item(call: ClientCallRequested, status: str) -> dict[str, Any]:
    return {
        "id": f"fc_{call.id}",
        "type": "function_call",
        "call_id": call.id,
        "name": call.tool,
        "arguments": call.arguments,
        "status": status,
    }


def _render_usage(usage: part_fold.Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
