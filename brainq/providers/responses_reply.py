"""OpenAI's Responses API -> our replies, whole or streamed. Read as plain JSON, and forgivingly."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from brainq.contracts.finish import finish_word
from brainq.contracts.message import ToolCall
from brainq.contracts.model import ModelChunk, ModelReply
from brainq.contracts.reasoning import Reasoning
from brainq.contracts.usage import TokenUsage
from brainq.providers.call_wire import parse_arguments
from brainq.providers.failures import from_error_event
from brainq.providers.responses_wire import WIRE
from brainq.text.surrogates import SurrogateJoiner, clean, clean_json

_THOUGHT = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})
_SAID = frozenset({"response.output_text.delta", "response.refusal.delta"})
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})

Item = dict[str, Any]


def from_response(response: dict[str, Any], name: str = WIRE) -> ModelReply:
    """The reply in a whole answer. Raises ProviderError for one that failed, ValueError if there is no reply in it."""
    output = response.get("output")
    if not isinstance(output, list):
        raise ValueError("the answer has no output")
    return _reply(response, cast("list[Item]", output), name, None)


def _reply(response: dict[str, Any], items: list[Item], name: str, shown: str | None) -> ModelReply:
    """`shown` is the text as it was streamed; None: it is in the items."""
    finish = _finish(response, items, name)
    calls: list[ToolCall] = []
    reasoning: list[Reasoning] = []
    for item in items:
        if item.get("type") == "function_call":
            calls.append(_call(len(calls), item))
        elif item.get("type") == "reasoning":
            reasoning.append(_reasoning(item, len(calls)))
        elif _parts([item], "text", "refusal") and not any(_is_place(thought) for thought in reasoning):
            reasoning.append(Reasoning(wire=WIRE, block=_place(item), before=len(calls)))
    if all(thought.block == {"type": "message"} for thought in reasoning):
        reasoning = []
    if finish == "stop" and calls:
        finish = "tool_calls"
    return ModelReply(
        text=clean("".join(_parts(items, "text", "refusal"))) if shown is None else shown,
        calls=tuple(calls),
        usage=from_usage(response.get("usage")),
        model=str(response.get("model") or ""),
        finish_reason=finish,
        reasoning=tuple(reasoning),
    )


def _finish(response: dict[str, Any], items: list[Item], name: str) -> str:
    status = response.get("status") or "completed"
    if status == "failed":
        raise from_error_event(name, response.get("error") or "it gave no reason")
    if status == "incomplete":
        said: Any = (response.get("incomplete_details") or {}).get("reason")
        return finish_word(said) or "incomplete"
    if status != "completed":
        raise ValueError(f"the reply is not whole; its status is {status!r}")
    # A refusal comes as a part of a completed response.
    return "content_filter" if any(_parts(items, "refusal")) else "stop"


def _parts(items: Iterable[Item], *keys: str) -> list[str]:
    """The texts of the output messages' parts, in their order."""
    return [
        str(part.get(key))
        for item in items
        if item.get("type") == "message"
        for part in item.get("content") or ()
        for key in keys
        if part.get(key)
    ]


def _call(index: int, item: Item) -> ToolCall:
    own_id = str(item.get("call_id") or item.get("id") or f"call_{index}")
    arguments = item.get("arguments")
    # Some servers send the object itself where the API says JSON text.
    parsed = clean_json(arguments) if isinstance(arguments, dict) else parse_arguments(str(arguments or ""))
    return ToolCall(id=own_id, name=clean(str(item.get("name") or "")), arguments=parsed, provider_id=own_id)


def _reasoning(item: Item, before: int) -> Reasoning:
    parts: list[Item] = [*(item.get("summary") or ()), *(item.get("content") or ())]
    text = "\n\n".join(str(part.get("text") or "") for part in parts)
    # The service itself sends `status: null`, and refuses it.
    block = {key: value for key, value in clean_json(item).items() if value is not None}
    return Reasoning(wire=WIRE, text=clean(text), block=block, before=before)


def _place(item: Item) -> Item:
    """Marks where the text stands among reasoning and calls, and what part it has: models want that back, too."""
    return {"type": "message"} | ({"phase": item["phase"]} if item.get("phase") else {})


def _is_place(thought: Reasoning) -> bool:
    return thought.block.get("type") == "message"


def from_usage(usage: Any) -> TokenUsage:
    """Zeros for what the server left out."""
    if not isinstance(usage, dict):
        return TokenUsage()
    details: Any = usage.get("input_tokens_details") or {}
    return TokenUsage(
        input_tokens=usage.get("input_tokens") or 0,
        output_tokens=usage.get("output_tokens") or 0,
        cache_read_tokens=details.get("cached_tokens") or 0,
        cache_creation_tokens=details.get("cache_write_tokens") or 0,
    )


class ResponsesStream:
    """Puts a reply together from its events.

    An item is as its `done` event has it; else as the response's last event has it; else its pieces are joined.
    """

    def __init__(self, name: str = WIRE) -> None:
        self.complete = False  # whether the response's last event came; without it the stream was cut
        self.ended = False
        self._name = name
        self._joiner = SurrogateJoiner()
        self._thought_joiner = SurrogateJoiner()
        self._text: list[str] = []
        self._begun: dict[int, Item] = {}
        self._arguments: dict[int, list[str]] = {}
        self._done: dict[int, Item] = {}
        self._response: dict[str, Any] = {}
        self.usage = TokenUsage()  # told with the response's last event, also of one that failed

    def feed(self, event: dict[str, Any]) -> ModelChunk | None:
        """What `event` adds: a text or reasoning delta, a part of a call, None for neither.

        Raises ProviderError for an error that the service reports.
        """
        kind = str(event.get("type") or "")
        index = int(event.get("output_index") or 0)
        if kind in _SAID:
            return self._said(str(event.get("delta") or ""))
        if kind in _THOUGHT:
            thought = self._thought_joiner.feed(str(event.get("delta") or ""))
            return ModelChunk(reasoning=thought) if thought else None
        if kind == "response.output_item.added":
            item: Item = event.get("item") or {}
            self._begun[index] = item
            is_call = item.get("type") == "function_call"
            return ModelChunk(arguments=str(item.get("name") or "")) if is_call else None
        if kind == "response.function_call_arguments.delta":
            piece = str(event.get("delta") or "")
            self._arguments.setdefault(index, []).append(piece)
            return ModelChunk(arguments=piece)
        if kind == "response.output_item.done":
            self._done[index] = event.get("item") or {}
        elif kind == "error":
            raise from_error_event(self._name, event)
        elif kind in _ENDS:
            self._end(kind.removeprefix("response."), event.get("response") or {})
        return None

    def _said(self, delta: str) -> ModelChunk | None:
        if not delta:
            return None
        text = self._joiner.feed(delta)
        self._text.append(text)
        return ModelChunk(text=text)

    def _end(self, status: str, response: dict[str, Any]) -> None:
        self._response = {"status": status} | {key: value for key, value in response.items() if value}
        self.usage = from_usage(self._response.get("usage"))
        _finish(self._response, [], self._name)  # raises for a response that failed
        self.complete = self.ended = True

    def _items(self) -> list[Item]:
        last: dict[int, Item] = dict(enumerate(self._response.get("output") or ()))
        joined = {
            index: item | ({"arguments": "".join(self._arguments[index])} if index in self._arguments else {})
            for index, item in self._begun.items()
        }
        return [item for _, item in sorted((joined | last | self._done).items())]

    def reply(self) -> ModelReply:
        shown = "".join(self._text) + self._joiner.flush()
        return _reply(self._response, self._items(), self._name, shown if self._text else None)
