"""Our messages <-> the items of OpenAI's Responses API. The service stores nothing: each request holds the whole
conversation, with the reasoning items as they came.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from brainq.contracts.message import Message, Reasoning, ToolCall
from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest, standard_finish_reason
from brainq.contracts.tool import ToolSpec
from brainq.models.asking.failures import from_error_event
from brainq.models.attachments import AttachmentBlocks
from brainq.models.openai.chat_wire import from_usage, is_strict
from brainq.models.tool_schema import tool_parameters
from brainq.models.wire import StreamReader, WireIds, arguments_text, read_call, wire_name
from brainq.text.surrogates import SurrogateJoiner, clean, clean_json

_NO_BLOBS = AttachmentBlocks({})
WIRE = "openai-responses"
ENCRYPTED = "reasoning.encrypted_content"


def to_body(
    request: ModelRequest,
    *,
    stream: bool,
    encrypted: bool = True,
    reasoning: bool = True,
    blocks: AttachmentBlocks | None = None,
) -> dict[str, Any]:
    """The request's JSON, but for the options.

    encrypted   ask for the reasoning in a form that can be sent back; models that do not reason may refuse that
    reasoning   send earlier reasoning back
    """
    instructions, items = to_items(
        request.messages, request.model if reasoning else None, blocks or AttachmentBlocks(request.blobs)
    )
    body: dict[str, Any] = {"model": request.model, "input": items, "store": False}
    if instructions:
        body["instructions"] = instructions
    if encrypted:
        body["include"] = [ENCRYPTED]
    if request.tools:
        body["tools"] = [_tool_item(tool) for tool in request.tools]
    if request.output_schema is not None:
        schema = clean_json(request.output_schema)
        body["text"] = {
            "format": {"type": "json_schema", "name": "reply", "schema": schema, "strict": is_strict(schema)}
        }
    if request.max_output_tokens is not None:
        body["max_output_tokens"] = request.max_output_tokens
    if stream:
        body["stream"] = True
    return body


def _tool_item(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": clean(tool.description),
        "parameters": tool_parameters(tool),
        "strict": False,  # left out, the service makes every parameter required
    }


def to_items(
    messages: Iterable[Message], model: str | None, blocks: AttachmentBlocks = _NO_BLOBS
) -> tuple[str, list[dict[str, Any]]]:
    """The instructions, and the conversation as items. Reasoning of another model than `model` is left out.

    System messages before the conversation are the instructions. One that comes later keeps its place.
    """
    ids = WireIds()
    instructions: list[str] = []
    items: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system" and not items:
            instructions.append(clean(message.content))
        else:
            items.extend(_items(message, ids, model, blocks))
    return "\n\n".join(text for text in instructions if text), items


def _items(message: Message, ids: WireIds, model: str | None, blocks: AttachmentBlocks) -> Iterator[dict[str, Any]]:
    text = clean(message.content)
    shown = [blocks.responses(attachment) for attachment in message.attachments]
    if shown and text.strip():
        shown.insert(0, {"type": "input_text", "text": text})
    if message.role == "tool":
        yield {"type": "function_call_output", "call_id": ids.for_result(message), "output": shown or text}
    elif message.role == "assistant":
        yield from _reply_items(message, text, ids, model)
    else:
        role = "developer" if message.role == "system" else "user"
        yield {"type": "message", "role": role, "content": shown or text}


def _reply_items(message: Message, text: str, ids: WireIds, model: str | None) -> list[dict[str, Any]]:
    """A reply in the order it came: reasoning, text and calls. The service refuses reasoning that nothing follows."""
    thoughts = [thought for thought in message.reasoning if _is_replayable(thought, model)]
    text_item: dict[str, Any] = {"type": "message", "role": "assistant", "content": text}
    # A text without a marked position comes before the calls.
    place = next((thought.block for thought in thoughts if thought.block.get("type") == "message"), None)
    items: list[dict[str, Any]] = []
    for index in range(len(message.calls) + 1):
        items += [
            text_item | thought.block if thought.block is place else dict(thought.block)
            for thought in thoughts
            if thought.before == index
        ]
        if index == 0 and place is None:
            items.append(text_item)
        if index < len(message.calls):
            call = message.calls[index]
            sent = {"call_id": ids.for_call(call), "name": wire_name(call.name)}
            items.append({"type": "function_call", **sent, "arguments": arguments_text(call.arguments)})
    if not text.strip():
        items = [item for item in items if item["type"] != "message"]
    while items and items[-1]["type"] == "reasoning":
        items.pop()
    return items


def _is_replayable(thought: Reasoning, model: str | None) -> bool:
    """Whether `model` can take it back: it thought it, and what it thought is there."""
    if thought.wire != WIRE or not model or thought.model != model:
        return False
    block = thought.block
    return block.get("type") == "message" or bool(block.get("encrypted_content") or block.get("content"))


_REASONING_EVENTS = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})
_TEXT_EVENTS = frozenset({"response.output_text.delta", "response.refusal.delta"})
_END_EVENTS = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})
Item = dict[str, Any]


def from_response(response: dict[str, Any], name: str = WIRE) -> ModelReply:
    """The reply in a whole answer. Raises ProviderError for one that failed, ValueError if there is no reply in it."""
    output = response.get("output")
    if not isinstance(output, list):
        raise ValueError("the answer has no output")
    return _reply_from_items(response, cast("list[Item]", output), name, None)


def _reply_from_items(response: dict[str, Any], items: list[Item], name: str, shown: str | None) -> ModelReply:
    """`shown` is the text as it was streamed; None: it is in the items."""
    finish = _finish(response, items, name)
    calls: list[ToolCall] = []
    reasoning: list[Reasoning] = []
    has_position = False
    for item in items:
        if item.get("type") == "function_call":
            call_id = str(item.get("call_id") or item.get("id") or f"call_{len(calls)}")
            calls.append(read_call(call_id, item.get("name"), item.get("arguments")))
        elif item.get("type") == "reasoning":
            reasoning.append(_read_reasoning(item, len(calls)))
        elif _text_parts([item], "text", "refusal") and not has_position:
            has_position = True
            reasoning.append(Reasoning(wire=WIRE, block=_text_position(item), before=len(calls)))
    if all(thought.block == {"type": "message"} for thought in reasoning):
        reasoning = []
    if finish == "stop" and calls:
        finish = "tool_calls"
    return ModelReply(
        text=clean("".join(_text_parts(items, "text", "refusal"))) if shown is None else shown,
        calls=tuple(calls),
        usage=from_usage(response.get("usage"), "input", "output"),
        model=str(response.get("model") or ""),
        finish_reason=finish,
        reasoning=tuple(reasoning),
    )


def _finish(response: dict[str, Any], items: list[Item], name: str) -> str:
    status = response.get("status") or "completed"
    if status == "failed":
        raise from_error_event(name, response.get("error") or "it gave no reason")
    if status == "incomplete":
        reason: Any = (response.get("incomplete_details") or {}).get("reason")
        return standard_finish_reason(reason) or "incomplete"
    if status != "completed":
        raise ValueError(f"the reply is not whole; its status is {status!r}")
    # A refusal comes as a part of a completed response.
    return "content_filter" if any(_text_parts(items, "refusal")) else "stop"


def _text_parts(items: Iterable[Item], *keys: str) -> list[str]:
    """The texts of the output messages' parts, in their order."""
    return [
        str(part.get(key))
        for item in items
        if item.get("type") == "message"
        for part in item.get("content") or ()
        for key in keys
        if part.get(key)
    ]


def _read_reasoning(item: Item, before: int) -> Reasoning:
    parts: list[Item] = [*(item.get("summary") or ()), *(item.get("content") or ())]
    text = "\n\n".join(str(part.get("text") or "") for part in parts)
    # The service itself sends `status: null`, and refuses it.
    block = {key: value for key, value in clean_json(item).items() if value is not None}
    return Reasoning(wire=WIRE, text=clean(text), block=block, before=before)


def _text_position(item: Item) -> Item:
    """Marks the text's position among reasoning and calls, and its phase: models want that back, too."""
    return {"type": "message"} | ({"phase": item["phase"]} if item.get("phase") else {})


class ResponsesStream(StreamReader):
    """Puts a reply together from its events.

    An item is as its `done` event has it; else as the response's last event has it; else its pieces are joined.
    """

    def __init__(self, name: str = WIRE) -> None:
        super().__init__()
        self._name = name
        self._thought_joiner = SurrogateJoiner()
        self._begun: dict[int, Item] = {}
        self._arguments: dict[int, list[str]] = {}
        self._done: dict[int, Item] = {}
        self._response: dict[str, Any] = {}

    def feed(self, event: dict[str, Any]) -> ModelChunk | None:
        kind = str(event.get("type") or "")
        index = int(event.get("output_index") or 0)
        if kind in _TEXT_EVENTS:
            return self._add_text(str(event.get("delta") or ""))
        if kind in _REASONING_EVENTS:
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
        elif kind in _END_EVENTS:
            self._end(kind.removeprefix("response."), event.get("response") or {})
        return None

    def _end(self, status: str, response: dict[str, Any]) -> None:
        self._response = {"status": status} | {key: value for key, value in response.items() if value}
        self.usage = from_usage(self._response.get("usage"), "input", "output")
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
        return _reply_from_items(self._response, self._items(), self._name, shown if self._text else None)
