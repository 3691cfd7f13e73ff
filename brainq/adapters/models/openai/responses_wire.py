"""Conversion between brainq's messages and the items of OpenAI's Responses API.

The service stores nothing: each request holds the whole conversation, with its original reasoning items.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from brainq.adapters.models.attachments import AttachmentBlocks
from brainq.adapters.models.call_stream import CallPart, CallStream, argument_piece, cut_reply, position, unknown_keys
from brainq.adapters.models.failures import from_error_event
from brainq.adapters.models.openai.chat_wire import from_usage, is_strict
from brainq.adapters.models.stream_reader import StreamReader
from brainq.adapters.models.tool_schema import tool_parameters
from brainq.adapters.models.wire import WireIds, arguments_text, wire_name, with_extras
from brainq.contracts.message import Message, Reasoning, ToolCall
from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest, standard_finish_reason
from brainq.contracts.tool import ToolSpec
from brainq.runtime.text.surrogates import SurrogateJoiner, clean, clean_json

_NO_BLOBS = AttachmentBlocks({})
WIRE = "openai-responses"
FOREIGN_CALLS = frozenset(
    {"custom_tool_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call", "mcp_approval_request"}
)
"""Items that ask the client for something that brainq does not offer (OpenAI's API reference, "Responses")."""
ENCRYPTED = "reasoning.encrypted_content"


def to_body(
    request: ModelRequest,
    *,
    stream: bool,
    encrypted: bool = True,
    reasoning: bool = True,
    blocks: AttachmentBlocks | None = None,
) -> dict[str, Any]:
    """Return the JSON of the request, without the options.

    encrypted: whether to request the reasoning in a form that can be sent back. Models without reasoning may refuse it.
    reasoning: whether to send earlier reasoning back.
    """
    blocks = blocks or AttachmentBlocks(request.blobs)
    instructions, items = to_items(request.messages, request.model if reasoning else None, blocks, request.model)
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
        "strict": False,  # the default makes every parameter required
    }


def to_items(
    messages: Iterable[Message],
    model: str | None,
    blocks: AttachmentBlocks = _NO_BLOBS,
    caller: str | None = None,
) -> tuple[str, list[dict[str, Any]]]:
    """Return the instructions, and the conversation as items.

    Reasoning is included if `model` produced it, and the unknown keys of calls if `caller` made them. System messages
    before the conversation form the instructions. A later one keeps its position.
    """
    ids = WireIds()
    instructions: list[str] = []
    items: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system" and not items:
            instructions.append(clean(message.content))
        else:
            items.extend(_items(message, ids, model, blocks, caller))
    return "\n\n".join(text for text in instructions if text), items


def _items(
    message: Message, ids: WireIds, model: str | None, blocks: AttachmentBlocks, caller: str | None
) -> Iterator[dict[str, Any]]:
    text = clean(message.content)
    shown = [blocks.responses(attachment) for attachment in message.attachments]
    if shown and text.strip():
        shown.insert(0, {"type": "input_text", "text": text})
    if message.role == "tool":
        yield {"type": "function_call_output", "call_id": ids.for_result(message), "output": shown or text}
    elif message.role == "assistant":
        yield from _reply_items(message, text, ids, model, caller)
    else:
        role = "developer" if message.role == "system" else "user"
        yield {"type": "message", "role": role, "content": shown or text}


def _reply_items(
    message: Message, text: str, ids: WireIds, model: str | None, caller: str | None
) -> list[dict[str, Any]]:
    """Return a reply in its original order: reasoning, text and calls.

    The service refuses reasoning without a following item.
    """
    thoughts = [thought for thought in message.reasoning if _is_replayable(thought, model)]
    text_item: dict[str, Any] = {"type": "message", "role": "assistant", "content": text}
    # A text without a marked position comes before the calls.
    place = next((thought.block for thought in thoughts if thought.block.get("type") == "message"), None)
    calls = with_extras([_call_item(call, ids) for call in message.calls], message, WIRE, caller)
    items: list[dict[str, Any]] = []
    for index in range(len(message.calls) + 1):
        items += [
            text_item | thought.block if thought.block is place else dict(thought.block)
            for thought in thoughts
            if thought.before == index
        ]
        if index == 0 and place is None:
            items.append(text_item)
        items += calls[index : index + 1]
    if not text.strip():
        items = [item for item in items if item["type"] != "message"]
    while items and items[-1]["type"] == "reasoning":
        items.pop()
    return items


def _call_item(call: ToolCall, ids: WireIds) -> dict[str, Any]:
    sent = {"call_id": ids.for_call(call), "name": wire_name(call.name)}
    return {"type": "function_call", **sent, "arguments": arguments_text(call.arguments)}


def _is_replayable(thought: Reasoning, model: str | None) -> bool:
    """Return whether the reasoning can be sent back to `model`: it must be the model that produced it, and the content
    must have been kept."""
    if thought.wire != WIRE or not model or thought.model != model:
        return False
    block = thought.block
    return block.get("type") == "message" or bool(block.get("encrypted_content") or block.get("content"))


_REASONING_EVENTS = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})
_TEXT_EVENTS = frozenset({"response.output_text.delta", "response.refusal.delta"})
_CALL_EVENTS = frozenset(
    {
        "response.output_item.added",
        "response.output_item.done",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
    }
)
_END_EVENTS = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})
Item = dict[str, Any]


def from_response(response: dict[str, Any], name: str = WIRE) -> ModelReply:
    """Return the reply in a whole answer. Raises ProviderError if it failed, and ValueError if it has no output."""
    output = response.get("output")
    if not isinstance(output, list):
        raise ValueError("the answer has no output")
    items, calls = cast("list[Item]", output), CallStream()
    for item in items:
        if item.get("type") == "function_call":
            calls.finish(_call_part(item))
    return _reply_from_items(response, items, calls, name, None)


_CALL_KEYS = frozenset({"type", "id", "call_id", "name", "arguments", "status"})


def _call_part(item: Item, index: int | None = None) -> CallPart:
    return CallPart(
        call_id=str(item.get("call_id") or ""),
        item_id=str(item.get("id") or ""),
        index=index,
        name=str(item.get("name") or ""),
        arguments=argument_piece(item.get("arguments")),
        extra=unknown_keys(item, _CALL_KEYS),
    )


def _reply_from_items(
    response: dict[str, Any], items: list[Item], calls: CallStream, name: str, shown: str | None
) -> ModelReply:
    """Return the reply. `shown` is the text as it was streamed, or None if it is in the items."""
    finish = _finish(response, items, name)
    if foreign := next((item for item in items if item.get("type") in FOREIGN_CALLS), None):
        raise cut_reply(f"it has a {foreign['type']}, although no tool of that kind was offered")
    called: list[str] = []
    reasoning: list[Reasoning] = []
    has_position = False
    for item in items:
        if item.get("type") == "function_call":
            call_id = str(item.get("call_id") or item.get("id") or f"call_{len(called)}")
            called += [] if call_id in called else [call_id]
        elif item.get("type") == "reasoning":
            reasoning.append(_read_reasoning(item, len(called)))
        elif _text_parts([item], "text", "refusal") and not has_position:
            has_position = True
            reasoning.append(Reasoning(wire=WIRE, block=_text_position(item), before=len(called)))
    if all(thought.block == {"type": "message"} for thought in reasoning):
        reasoning = []
    return calls.reply(
        WIRE,
        "tool_calls" if finish == "stop" and len(calls) else finish,
        text=clean("".join(_text_parts(items, "text", "refusal"))) if shown is None else shown,
        usage=from_usage(response.get("usage"), "input", "output"),
        model=response.get("model"),
        reasoning=reasoning,
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
    """Return the mark of the text's position among reasoning and calls, with its phase, which models need back, too."""
    return {"type": "message"} | ({"phase": item["phase"]} if item.get("phase") else {})


class ResponsesStream(StreamReader):
    """The reader of a stream of events.

    The response's last event decides what an item contains. Without that event, the item's `done` event decides, and
    without both the item's pieces are joined.
    """

    def __init__(self, name: str = WIRE) -> None:
        super().__init__()
        self._name = name
        self._thought_joiner = SurrogateJoiner()
        self._begun: list[Item] = []
        self._done: list[Item] = []
        self._response: dict[str, Any] = {}

    def feed(self, event: dict[str, Any]) -> ModelChunk | None:
        kind = str(event.get("type") or "")
        if kind in _TEXT_EVENTS:
            return self._add_text(str(event.get("delta") or ""))
        if kind in _REASONING_EVENTS:
            thought = self._thought_joiner.feed(str(event.get("delta") or ""))
            return ModelChunk(reasoning=thought) if thought else None
        if kind in _CALL_EVENTS:
            return self._feed_call(kind, event)
        if kind == "response.created":
            self._begin_reply(event.get("response") or {}, has_output=bool(self._begun or self._done))
        elif kind == "error":
            raise from_error_event(self._name, event)
        elif kind in _END_EVENTS:
            self._end(kind.removeprefix("response."), event.get("response") or {})
        return None

    def _feed_call(self, kind: str, event: dict[str, Any]) -> ModelChunk | None:
        """Read an event of an item, or of a call's arguments."""
        index, item = position(event.get("output_index")), event.get("item")
        if isinstance(item, dict):
            found: Item = item  # pyright: ignore[reportUnknownVariableType]
            is_done, is_call = kind == "response.output_item.done", found.get("type") == "function_call"
            (self._done if is_done else self._begun).append(found)
            if is_call and is_done:
                self._calls.finish(_call_part(found, index))
            elif is_call:
                self._calls.announce(_call_part(found, index))
                return ModelChunk(arguments=str(found.get("name") or ""))
            return None
        is_piece = kind == "response.function_call_arguments.delta"
        piece = argument_piece(event.get("delta" if is_piece else "arguments"))
        part = CallPart(
            call_id=str(event.get("call_id") or ""),
            item_id=str(event.get("item_id") or ""),
            index=index,
            arguments=piece,
        )
        if is_piece:
            self._calls.add_piece(part)
            return ModelChunk(arguments=piece)
        self._calls.add_whole(part)
        return None

    def _end(self, status: str, response: dict[str, Any]) -> None:
        self._response = {"status": status} | {key: value for key, value in response.items() if value}
        self.usage = from_usage(self._response.get("usage"), "input", "output")
        _finish(self._response, [], self._name)  # raises for a response that failed
        self.complete = self.ended = True

    def _items(self) -> list[Item]:
        output = cast("list[Item]", self._response.get("output") or [])
        if output:
            done = {item["id"]: item for item in self._done if item.get("id")}
            return [
                done.get(item.get("id"), {}) | {key: value for key, value in item.items() if value} for item in output
            ]
        ids = {item.get("id") for item in self._done if item.get("id")}
        # An item without an id cannot be recognised. If done items exist, they are complete.
        begun = [item for item in self._begun if item.get("id") not in ids and (item.get("id") or not self._done)]
        made: list[Item] = []
        for item in (*self._done, *begun):
            if not item.get("id") or item["id"] not in {one.get("id") for one in made}:
                made.append(item)
        return made

    def reply(self) -> ModelReply:
        shown = "".join(self._text) + self._joiner.flush()
        items = self._items()
        if self._response.get("output"):
            self._calls.conclude(_call_part(item) for item in items if item.get("type") == "function_call")
        return _reply_from_items(self._response, items, self._calls, self._name, shown if self._text else None)
