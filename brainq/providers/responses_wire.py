"""Our messages -> the items of OpenAI's Responses API.

Nothing is stored at the service: each request holds the whole conversation, with the reasoning items as they came.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from brainq.contracts.message import Message
from brainq.contracts.model import ModelRequest
from brainq.contracts.reasoning import Reasoning
from brainq.contracts.tool import ToolSpec
from brainq.providers.attachment_blocks import Blocks
from brainq.providers.call_wire import WireIds, arguments_text, wire_name
from brainq.providers.openai_wire import is_strict
from brainq.text.surrogates import clean, clean_json

_NO_BLOBS = Blocks({})
WIRE = "openai-responses"
ENCRYPTED = "reasoning.encrypted_content"


def to_body(
    request: ModelRequest,
    *,
    stream: bool,
    encrypted: bool = True,
    reasoning: bool = True,
    blocks: Blocks | None = None,
) -> dict[str, Any]:
    """The request's JSON, but for the options.

    encrypted   ask for the reasoning in a form that can be sent back; models that do not reason may refuse that
    reasoning   send earlier reasoning back
    """
    instructions, items = to_items(
        request.messages, request.model if reasoning else None, blocks or Blocks(request.blobs)
    )
    body: dict[str, Any] = {"model": request.model, "input": items, "store": False}
    if instructions:
        body["instructions"] = instructions
    if encrypted:
        body["include"] = [ENCRYPTED]
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
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


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": clean(tool.description),
        "parameters": clean_json(tool.parameters),
        "strict": False,  # left out, the service makes every parameter required
    }


def to_items(
    messages: Iterable[Message], model: str | None, blocks: Blocks = _NO_BLOBS
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


def _items(message: Message, ids: WireIds, model: str | None, blocks: Blocks) -> Iterator[dict[str, Any]]:
    text = clean(message.content)
    shown = blocks.responses(message.attachments)
    if shown and text.strip():
        shown.insert(0, {"type": "input_text", "text": text})
    if message.role == "tool":
        yield {
            "type": "function_call_output",
            "call_id": ids.of_result(message),
            "output": shown or text,
        }
    elif message.role == "assistant":
        yield from _reply_items(message, text, ids, model)
    else:
        role = "developer" if message.role == "system" else "user"
        yield {"type": "message", "role": role, "content": shown or text}


def _reply_items(message: Message, text: str, ids: WireIds, model: str | None) -> list[dict[str, Any]]:
    """A reply in the order it came: reasoning, text and calls. The service refuses reasoning that nothing follows."""
    thoughts = [thought for thought in message.reasoning if _goes_back(thought, model)]
    said: dict[str, Any] = {"type": "message", "role": "assistant", "content": text}
    # Where nobody marked the text's place, it stands before the calls.
    place = next((thought.block for thought in thoughts if thought.block.get("type") == "message"), None)
    items: list[dict[str, Any]] = []
    for index in range(len(message.calls) + 1):
        items += [
            said | thought.block if thought.block is place else dict(thought.block)
            for thought in thoughts
            if thought.before == index
        ]
        if index == 0 and place is None:
            items.append(said)
        if index < len(message.calls):
            call = message.calls[index]
            items.append(_call_item(ids.of_call(call), call.name, arguments_text(call.arguments)))
    if not text.strip():
        items = [item for item in items if item["type"] != "message"]
    while items and items[-1]["type"] == "reasoning":
        items.pop()
    return items


def _call_item(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": wire_name(name), "arguments": arguments}


def _goes_back(thought: Reasoning, model: str | None) -> bool:
    """Whether `model` can take it back: it thought it, and what it thought is there."""
    if thought.wire != WIRE or not model or thought.model != model:
        return False
    block = thought.block
    return block.get("type") == "message" or bool(block.get("encrypted_content") or block.get("content"))
