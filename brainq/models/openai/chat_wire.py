"""Our messages <-> the chat completions API of OpenAI and the many servers that speak it.

Replies are read as plain JSON and forgivingly: of the servers some leave out usage, ids or indexes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, cast

from brainq.contracts.message import Message
from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest, TokenUsage, standard_finish_reason
from brainq.contracts.tool import ToolSpec
from brainq.contracts.usage import reported_usage
from brainq.models.attachments import AttachmentBlocks
from brainq.models.openai.reasoning import ReasoningCollector, ThinkSplitter, with_reasoning
from brainq.models.openai.roles import Roles, to_roles
from brainq.models.tool_schema import tool_parameters
from brainq.models.wire import NumberedIds, StreamReader, WireIds, arguments_text, parse_arguments, read_call, wire_name
from brainq.text.surrogates import clean, clean_json

_NO_BLOBS = AttachmentBlocks({})
INTERRUPTED_REASONS = frozenset({"error", "abort", "insufficient_system_resource"})
"""Finish reasons of a reply that is not whole, by no doing of the model's."""


def to_body(
    request: ModelRequest,
    *,
    stream: bool,
    max_tokens_key: str,
    roles: Roles = "all",
    blocks: AttachmentBlocks | None = None,
    thinking: bool = True,
) -> dict[str, Any]:
    """The request's JSON, but for the options.

    max_tokens_key   the name this server knows the output limit by
    thinking         send back what it thought
    """
    blocks = blocks or AttachmentBlocks(request.blobs)
    body: dict[str, Any] = {
        "model": request.model,
        "messages": to_messages(request.messages, roles, blocks, request.model if thinking else None),
    }
    if request.tools:
        body["tools"] = [{"type": "function", "function": _function(tool)} for tool in request.tools]
    if request.output_schema is not None:
        schema = clean_json(request.output_schema)
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "reply", "schema": schema, "strict": is_strict(schema)},
        }
    if request.max_output_tokens is not None:
        body[max_tokens_key] = request.max_output_tokens
    if stream:
        body["stream"] = True
        body["stream_options"] = {"include_usage": True}
    return body


def _function(tool: ToolSpec) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": clean(tool.description),
        "parameters": tool_parameters(tool),
    }


def to_messages(
    messages: Iterable[Message], roles: Roles = "all", blocks: AttachmentBlocks = _NO_BLOBS, model: str | None = None
) -> list[dict[str, Any]]:
    ids = WireIds() if roles == "all" else NumberedIds()
    return [_to_message(message, ids, blocks, model) for message in to_roles(messages, roles)]


def _to_message(message: Message, ids: WireIds, blocks: AttachmentBlocks, model: str | None) -> dict[str, Any]:
    text = clean(message.content)
    if message.attachments and message.role == "user":
        texts = [{"type": "text", "text": text}] if text.strip() else []
        return {"role": "user", "content": [*texts, *map(blocks.chat, message.attachments)]}
    if message.role == "tool":
        text = "\n".join([text, *blocks.text(message.attachments)])
        return {"role": "tool", "tool_call_id": ids.for_result(message), "content": text}
    if message.role != "assistant" or not message.calls:
        return {"role": message.role, "content": text}
    made = {
        "role": "assistant",
        "content": text or None,
        "tool_calls": [
            {
                "id": ids.for_call(call),
                "type": "function",
                "function": {"name": wire_name(call.name), "arguments": arguments_text(call.arguments)},
            }
            for call in message.calls
        ],
    }
    return with_reasoning(made, message, model)


def is_strict(schema: Any) -> bool:
    """Whether the service will accept the schema as strict: every object closed, every property required."""
    if isinstance(schema, list):
        return all(is_strict(item) for item in schema)
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object" and (
        schema.get("additionalProperties") is not False
        or set(schema.get("required", ())) != set(schema.get("properties", {}))
    ):
        return False
    return all(is_strict(item) for item in schema.values())


def from_body(body: dict[str, Any], tags: ThinkSplitter | None = None) -> ModelReply:
    """The reply in a whole, unstreamed answer. `tags` splits its text. Raises ValueError if there is none in it."""
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices:
        raise ValueError("the answer has no choices")
    choice: dict[str, Any] = choices[0]
    message: dict[str, Any] = choice.get("message") or {}
    calls = [
        read_call(str(part.get("id") or f"call_{index}"), function.get("name"), function.get("arguments"))
        for index, part in enumerate(message.get("tool_calls") or ())
        for function in (part.get("function") or {},)
    ]
    tags, thoughts = tags or ThinkSplitter(), ReasoningCollector()
    tags.feed(clean(_content_text(message.get("content"))))
    thoughts.feed(message)
    split = tags.whole()
    return ModelReply(
        text=split.text or clean(message.get("refusal") or ""),
        calls=tuple(calls),
        usage=from_usage(body.get("usage")),
        model=str(body.get("model") or ""),
        # A refusal in a field of its own comes with `stop`.
        finish_reason="content_filter" if message.get("refusal") else _finish_reason(choice.get("finish_reason")),
        reasoning=thoughts.reasoning(split.reasoning),
    )


def _finish_reason(value: Any) -> str:
    reason = standard_finish_reason(value)
    if reason in INTERRUPTED_REASONS:
        raise ValueError(f"the reply broke off; its finish reason is {reason!r}")
    return reason


def _content_text(content: Any) -> str:
    """The text of a content that is text, or a list of parts of which some are."""
    if not isinstance(content, list):
        return content or ""
    return "".join(str(part.get("text") or "") for part in content if part.get("type", "text") == "text")


def from_usage(usage: Any, sent: str = "prompt", written: str = "completion") -> TokenUsage:
    """Return what the server counted. `sent` and `written` are what its API calls input and output."""
    if not isinstance(usage, dict):
        return TokenUsage()
    details, of_written = _object(usage, f"{sent}_tokens_details"), _object(usage, f"{written}_tokens_details")
    return reported_usage(
        sent=usage.get(f"{sent}_tokens"),
        written=usage.get(f"{written}_tokens"),
        cache_read=details.get("cached_tokens"),
        cache_creation=details.get("cache_write_tokens"),
        thought=of_written.get("reasoning_tokens"),
        total=usage.get("total_tokens"),
    )


def _object(usage: dict[str, Any], name: str) -> dict[str, Any]:
    value = usage.get(name)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


class _PartialCall:
    def __init__(self, wire_id: str) -> None:
        self.id = wire_id
        self.name = ""
        self.arguments: list[str] = []

    def ended_before(self, part: dict[str, Any]) -> bool:
        """Whether `part`, which has no id, begins another call: it names one, and this one is whole."""
        name = str((part.get("function") or {}).get("name") or "")
        if not name or not self.name:
            return False
        arguments = "".join(self.arguments)
        return name != self.name or (bool(arguments) and isinstance(parse_arguments(arguments), dict))


class OpenAIStream(StreamReader):
    """Puts a reply together from its chunks.

    tags          splits its text
    on_unopened   called where what was thought had no opening tag: it was taken for text until its end came
    """

    def __init__(self, tags: ThinkSplitter | None = None, on_unopened: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self._tags = tags or ThinkSplitter()
        self._on_unopened = on_unopened
        self._thoughts = ReasoningCollector()
        self._calls: list[_PartialCall] = []
        self._by_index: dict[int, _PartialCall] = {}
        self._model = ""
        self._finish_reason = ""
        self._refused = False

    def feed(self, chunk: dict[str, Any]) -> ModelChunk | None:
        self._model = str(chunk.get("model") or self._model)
        if isinstance(chunk.get("usage"), dict) and chunk["usage"]:
            self.usage = from_usage(chunk["usage"])
        choices: list[dict[str, Any]] = chunk.get("choices") or []
        if not choices:
            return None
        choice = choices[0]
        # Usage may follow the finish reason: only `[DONE]` ends the stream.
        self._finish_reason = standard_finish_reason(choice.get("finish_reason")) or self._finish_reason
        self.complete = bool(self._finish_reason) and self._finish_reason not in INTERRUPTED_REASONS
        delta: dict[str, Any] = choice.get("delta") or {}
        parts = delta.get("tool_calls") or ()
        arguments = "".join([self._feed_call(part) for part in parts])
        self._refused = self._refused or bool(delta.get("refusal"))
        thought = clean(self._thoughts.feed(delta))
        text = _content_text(delta.get("content")) or delta.get("refusal") or ""
        if text:
            split = self._tags.feed(self._joiner.feed(text))
            return ModelChunk(text=split.text, reasoning=thought + split.reasoning, arguments=arguments)
        return ModelChunk(reasoning=thought, arguments=arguments) if thought or parts else None

    def _feed_call(self, part: dict[str, Any]) -> str:
        """What the part says of its call."""
        call = self._call_of(part)
        function: dict[str, Any] = part.get("function") or {}
        name = "" if call.name else str(function.get("name") or "")
        call.name = call.name or name
        arguments = function.get("arguments") or ""
        call.arguments.append(arguments if isinstance(arguments, str) else json.dumps(arguments))
        return name + call.arguments[-1]

    def _call_of(self, part: dict[str, Any]) -> _PartialCall:
        """The call a part belongs to: by index, unless the server reuses or leaves out indexes, or ids."""
        wire_id = str(part.get("id") or "")
        index = part.get("index")
        known = self._by_index.get(index) if isinstance(index, int) else (self._calls[-1] if self._calls else None)
        if known is not None and (wire_id == known.id if wire_id else not known.ended_before(part)):
            return known
        call = _PartialCall(wire_id)
        self._calls.append(call)
        if isinstance(index, int):
            self._by_index[index] = call
        return call

    def reply(self) -> ModelReply:
        self._tags.feed(self._joiner.flush())
        split = self._tags.whole()
        if split.is_unopened:
            self._on_unopened()
        return ModelReply(
            text=split.text,
            calls=tuple(
                read_call(call.id or f"call_{index}", call.name, "".join(call.arguments))
                for index, call in enumerate(self._calls)
            ),
            usage=self.usage,
            model=self._model,
            finish_reason="content_filter" if self._refused else self._finish_reason,
            reasoning=self._thoughts.reasoning(split.reasoning),
        )
