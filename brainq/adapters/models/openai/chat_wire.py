"""Conversion between brainq's messages and the chat completions API of OpenAI and many other servers.

Replies are read as plain JSON and tolerantly: some servers omit usage, ids or indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, cast

from brainq.adapters.models.attachments import AttachmentBlocks
from brainq.adapters.models.call_stream import (
    CallPart,
    CallStream,
    argument_piece,
    begun_again,
    cut_reply,
    position,
    unknown_keys,
)
from brainq.adapters.models.openai.reasoning import WIRE, ReasoningCollector, ThinkSplitter, with_reasoning
from brainq.adapters.models.openai.roles import Roles, to_roles
from brainq.adapters.models.stream_reader import StreamReader
from brainq.adapters.models.tool_schema import tool_parameters
from brainq.adapters.models.wire import NumberedIds, WireIds, arguments_text, wire_name, with_extras
from brainq.contracts.message import Message
from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest, TokenUsage, standard_finish_reason
from brainq.contracts.tool import ToolSpec
from brainq.contracts.usage import reported_usage
from brainq.errors import ProviderError
from brainq.runtime.text.surrogates import clean, clean_json

_NO_BLOBS = AttachmentBlocks({})
INTERRUPTED_REASONS = frozenset({"error", "abort", "insufficient_system_resource"})
"""The finish reasons of a reply that broke off through no fault of the model."""


def to_body(
    request: ModelRequest,
    *,
    stream: bool,
    max_tokens_key: str,
    roles: Roles = "all",
    blocks: AttachmentBlocks | None = None,
    thinking: bool = True,
) -> dict[str, Any]:
    """Return the JSON of the request, without the options.

    max_tokens_key: the name of the output limit on this server.
    thinking: whether to send back the model's earlier reasoning.
    """
    blocks = blocks or AttachmentBlocks(request.blobs)
    body: dict[str, Any] = {
        "model": request.model,
        "messages": to_messages(request.messages, roles, blocks, request.model if thinking else None, request.model),
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
    messages: Iterable[Message],
    roles: Roles = "all",
    blocks: AttachmentBlocks = _NO_BLOBS,
    model: str | None = None,
    caller: str | None = None,
) -> list[dict[str, Any]]:
    """Return the conversation, with the reasoning of `model`, and the unknown keys of the calls that `caller` made."""
    ids = WireIds() if roles == "all" else NumberedIds()
    return [_to_message(message, ids, blocks, model, caller) for message in to_roles(messages, roles)]


def _to_message(
    message: Message, ids: WireIds, blocks: AttachmentBlocks, model: str | None, caller: str | None
) -> dict[str, Any]:
    text = clean(message.content)
    if message.attachments and message.role == "user":
        texts = [{"type": "text", "text": text}] if text.strip() else []
        return {"role": "user", "content": [*texts, *map(blocks.chat, message.attachments)]}
    if message.role == "tool":
        text = "\n".join([text, *blocks.text(message.attachments)])
        return {"role": "tool", "tool_call_id": ids.for_result(message), "content": text}
    if message.role != "assistant" or not message.calls:
        return {"role": message.role, "content": text}
    calls = [
        {
            "id": ids.for_call(call),
            "type": "function",
            "function": {"name": wire_name(call.name), "arguments": arguments_text(call.arguments)},
        }
        for call in message.calls
    ]
    made = {"role": "assistant", "content": text or None, "tool_calls": with_extras(calls, message, WIRE, caller)}
    return with_reasoning(made, message, model)


def is_strict(schema: Any) -> bool:
    """Return whether the service accepts the schema as strict: every object is closed, and every property required."""
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
    """Return the reply in a whole, unstreamed answer. `tags` splits its text. Raises ValueError if there is no
    reply."""
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices:
        raise ValueError("the answer has no choices")
    choice: dict[str, Any] = choices[0]
    message: dict[str, Any] = choice.get("message") or {}
    calls = CallStream()
    _refuse_retired(message)
    for part in message.get("tool_calls") or ():
        calls.finish(_call_part(part))
    # A refusal in its own field comes with `stop`.
    finish = "content_filter" if message.get("refusal") else _finish_reason(choice.get("finish_reason"))
    tags, thoughts = tags or ThinkSplitter(), ReasoningCollector()
    tags.feed(clean(_content_text(message.get("content"))))
    thoughts.feed(message)
    split = tags.whole()
    return calls.reply(
        WIRE,
        finish,
        text=split.text or clean(message.get("refusal") or ""),
        usage=from_usage(body.get("usage")),
        model=body.get("model"),
        reasoning=thoughts.reasoning(split.reasoning),
    )


def _refuse_retired(message: dict[str, Any]) -> None:
    """Raise ProviderError for a call in the form that preceded `tool_calls`: it would be lost."""
    if message.get("function_call"):
        raise ProviderError(
            "the service answers with `function_call`, which OpenAI has retired; use one that sends `tool_calls`",
            kind="malformed",
            retryable=False,
        )


def _finish_reason(value: Any) -> str:
    reason = standard_finish_reason(value)
    if reason in INTERRUPTED_REASONS:
        raise ValueError(f"the reply broke off; its finish reason is {reason!r}")
    return reason


def _content_text(content: Any) -> str:
    """Return the text of a content, which may also be a list of parts."""
    if not isinstance(content, list):
        return content or ""
    return "".join(str(part.get("text") or "") for part in content if part.get("type", "text") == "text")


def from_usage(usage: Any, sent: str = "prompt", written: str = "completion") -> TokenUsage:
    """Return the usage that the server has counted. `sent` and `written` are its API's words for input and output."""
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


_CALL_KEYS = frozenset({"id", "index", "type", "function"})
_FUNCTION_KEYS = frozenset({"name", "arguments"})


def _call_part(part: dict[str, Any]) -> CallPart:
    function: dict[str, Any] = part.get("function") or {}
    extra, inner = unknown_keys(part, _CALL_KEYS), unknown_keys(function, _FUNCTION_KEYS)
    return CallPart(
        call_id=str(part.get("id") or ""),
        index=position(part.get("index")),
        name=str(function.get("name") or ""),
        arguments=argument_piece(function.get("arguments")),
        extra=extra | ({"function": inner} if inner else {}),
    )


def _told_apart(parts: Iterable[CallPart], calls: CallStream) -> Iterator[CallPart]:
    """Yield the parts of one chunk. Each part with a name and neither id nor index is a separate call."""
    before: CallPart | None = None
    for part in parts:
        if before is not None and part.name and not part.call_id and part.index is None:
            calls.end(before)
            calls.announce(CallPart(name=part.name, extra=part.extra))
            part = replace(part, name="", extra={})
        yield part
        before = part


class _Generations:
    """Detects a second reply in a stream, by the id that all chunks of one reply share.

    Some servers give every chunk its own id. So a new id counts only if an earlier id has come more than once, and if
    the chunk has a role, with which a reply begins.

    has_changed: whether a new id without a role followed an id that had come more than once.
    """

    def __init__(self) -> None:
        self.has_changed = False
        self._id = ""
        self._count = 0
        self._has_output = False
        self._is_pending = False
        self._ids_differ = False

    def begins_again(self, chunk_id: str, *, has_role: bool, has_output: bool) -> bool:
        """Return whether a chunk with this id belongs to another reply than the earlier chunks."""
        earlier, had_output, pending = self._count, self._has_output, self._is_pending
        self._has_output |= has_output
        if not chunk_id or chunk_id == self._id:
            self._count += 1
            return bool(chunk_id) and pending
        self._id, self._count, self._is_pending = chunk_id, 1, False
        self._ids_differ |= pending or (earlier == 1 and had_output and not has_role)
        if not had_output or self._ids_differ or not (has_role or has_output):
            return False
        self._is_pending = earlier == 1
        self.has_changed |= earlier > 1
        return earlier > 1 and has_role


class OpenAIStream(StreamReader):
    """The reader of a stream of chunks.

    tags: splits the text into reasoning and answer.
    on_unopened: called if the reasoning had no opening tag: it was taken for text until its end came.
    """

    def __init__(self, tags: ThinkSplitter | None = None, on_unopened: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self._tags = tags or ThinkSplitter()
        self._on_unopened = on_unopened
        self._thoughts = ReasoningCollector()
        self._generations = _Generations()
        self._choice: Any = None
        self._finish_reason = ""
        self._has_output = self._had_no_role = self._may_restart = False
        self._refused = False
        self._restarted_at = 0  # the number of calls after which the reply may have begun again

    def feed(self, chunk: dict[str, Any]) -> ModelChunk | None:
        self._model = str(chunk.get("model") or self._model)
        if isinstance(chunk.get("usage"), dict) and chunk["usage"]:
            self.usage = from_usage(chunk["usage"])
        choices: list[dict[str, Any]] = chunk.get("choices") or []
        if not choices:
            return None
        choice = choices[0]
        delta: dict[str, Any] = choice.get("delta") or {}
        parts: list[dict[str, Any]] = delta.get("tool_calls") or []
        if not self._is_own(choice):
            if parts:
                raise cut_reply("calls came in a second choice, but one choice was requested")
            return None
        thought = clean(self._thoughts.feed(delta))
        text = _content_text(delta.get("content")) or delta.get("refusal") or ""
        has_output = bool(text or thought or parts)
        chunk_id = str(chunk.get("id") or "")
        if self._generations.begins_again(chunk_id, has_role=bool(delta.get("role")), has_output=has_output):
            raise begun_again()
        _refuse_retired(delta)
        self._note_restart(has_role=bool(delta.get("role")), has_output=has_output)
        # Usage may follow the finish reason: only `[DONE]` ends the stream.
        self._finish_reason = standard_finish_reason(choice.get("finish_reason")) or self._finish_reason
        self.complete = bool(self._finish_reason) and self._finish_reason not in INTERRUPTED_REASONS
        self._has_output |= has_output
        arguments = "".join(map(self._feed_call, _told_apart(map(_call_part, parts), self._calls)))
        self._refused = self._refused or bool(delta.get("refusal"))
        if text:
            split = self._tags.feed(self._joiner.feed(text))
            return ModelChunk(text=split.text, reasoning=thought + split.reasoning, arguments=arguments)
        return ModelChunk(reasoning=thought, arguments=arguments) if thought or parts else None

    def _note_restart(self, *, has_role: bool, has_output: bool) -> None:
        """Note where a second reply may begin: at output after an end, or at a role in the middle. Some services end
        each call, or give each call its role. So it counts as a second reply only if it repeats a call of the first."""
        self._may_restart |= bool(self._finish_reason) or (has_role and self._had_no_role)
        if has_output and self._may_restart and not self._restarted_at:
            self._restarted_at = len(self._calls)
        self._had_no_role |= has_output and not has_role

    def _is_own(self, choice: dict[str, Any]) -> bool:
        """Return whether this is the first choice, the only one that is read."""
        index = choice.get("index")
        self._choice = index if self._choice is None else self._choice
        return index is None or index == self._choice

    def _feed_call(self, part: CallPart) -> str:
        """Add a part to its call, and return what it adds."""
        before = len(self._calls)
        if self._calls.continue_or_begin(part) and self._generations.has_changed:
            raise begun_again()
        return (part.name if len(self._calls) > before else "") + part.arguments

    def end_marked(self) -> None:
        """Accept a stream without a finish reason if its end is marked and its calls are whole."""
        if not self._finish_reason:
            self.complete = self._has_output and self._calls.are_whole

    def reply(self) -> ModelReply:
        self._tags.feed(self._joiner.flush())
        split = self._tags.whole()
        if split.is_unopened:
            self._on_unopened()
        finish = "content_filter" if self._refused else self._finish_reason
        if self._restarted_at and self._calls.repeats_from(self._restarted_at):
            raise begun_again()
        thoughts = self._thoughts.reasoning(split.reasoning)
        return self._calls.reply(WIRE, finish, text=split.text, usage=self.usage, model=self._model, reasoning=thoughts)
