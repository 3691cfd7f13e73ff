"""Conversion between brainq's messages and Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from brainq.adapters.models.anthropic.thinking import (
    THINKING,
    WIRE,
    BlockOrder,
    blocks_in_order,
    max_tokens,
    replayed_thinking,
)
from brainq.adapters.models.attachments import AttachmentBlocks
from brainq.adapters.models.call_stream import (
    CallPart,
    CallStream,
    argument_piece,
    cut_reply,
    position,
    unknown_keys,
)
from brainq.adapters.models.stream_reader import StreamReader
from brainq.adapters.models.tool_schema import tool_parameters
from brainq.adapters.models.wire import WireIds, arguments_object, wire_name, with_extras
from brainq.contracts.message import Message, Reasoning
from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest, TokenUsage, standard_finish_reason
from brainq.contracts.usage import MAX_REPLY_TOKENS, read_count, reported_usage
from brainq.runtime.text.surrogates import clean

_NO_BLOBS = AttachmentBlocks({})


def to_body(
    request: ModelRequest, *, stream: bool, blocks: AttachmentBlocks | None = None, thinking: bool = True
) -> dict[str, Any]:
    """Return the JSON of the request, without the output schema and the options.

    thinking: whether to send back the model's earlier thinking.
    """
    system, messages = to_messages(
        request.messages,
        blocks or AttachmentBlocks(request.blobs),
        lambda message: replayed_thinking(message, request, goes_back=thinking),
        request.model,
    )
    body: dict[str, Any] = {"model": request.model, "max_tokens": max_tokens(request), "messages": messages}
    if system:
        body["system"] = system
    if request.tools:
        body["tools"] = [
            {"name": tool.name, "description": clean(tool.description), "input_schema": tool_parameters(tool)}
            for tool in request.tools
        ]
    if stream:
        body["stream"] = True
    return body


def to_messages(
    messages: Iterable[Message],
    attached: AttachmentBlocks = _NO_BLOBS,
    thoughts: Callable[[Message], Sequence[Reasoning]] = lambda _: (),
    model: str | None = None,
) -> tuple[str, list[dict[str, Any]]]:
    """Return the system prompt, and the messages of user and assistant in turns.

    System messages before the conversation form the system prompt. A later one keeps its position, as text of the user:
    at the front it would lose its meaning and invalidate the prompt cache. Unknown keys of calls are sent with the
    calls that `model` made.
    """
    ids = WireIds()
    system: list[str] = []
    turns: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system" and not turns:
            system.append(clean(message.content))
            continue
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message, ids, attached, thoughts, model)
        if not blocks:
            continue  # the API refuses empty messages
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"].extend(blocks)
        else:
            turns.append({"role": role, "content": blocks})
    for turn in turns:
        if turn["role"] == "user":
            turn["content"].sort(key=_results_first)
    return "\n\n".join(text for text in system if text), turns


def _results_first(block: dict[str, Any]) -> bool:
    """Sort key: the API requires tool results at the beginning of their message."""
    return block["type"] != "tool_result"


def _blocks(
    message: Message,
    ids: WireIds,
    attached: AttachmentBlocks,
    thoughts: Callable[[Message], Sequence[Reasoning]],
    model: str | None,
) -> list[dict[str, Any]]:
    text = clean(message.content)
    files = [attached.anthropic(attachment) for attachment in message.attachments]
    if message.role == "tool":
        texts = [{"type": "text", "text": text}] if text.strip() else []
        block: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": ids.for_result(message),
            "content": [*texts, *files] if files else text,
        }
        if message.is_error:
            block["is_error"] = True
        return [block]
    calls = [
        {
            "type": "tool_use",
            "id": ids.for_call(call),
            "name": wire_name(call.name),
            "input": arguments_object(call.arguments),
        }
        for call in message.calls
    ]
    # Attachments come before the text, as the service recommends.
    return [*files, *blocks_in_order(thoughts(message), text, with_extras(calls, message, WIRE, model))]


def from_body(body: dict[str, Any]) -> ModelReply:
    """Return the reply in a whole, unstreamed answer. Raises ValueError if the answer has no content."""
    content = body.get("content")
    if not isinstance(content, list):
        raise ValueError("the answer has no content")
    text: list[str] = []
    calls = CallStream()
    order = BlockOrder()
    for block in content:
        if block.get("type") == "tool_use":
            before = len(calls)
            calls.finish(_call_part(block))
            if len(calls) == before:
                continue  # the same call was repeated
        order.begin(block, at=sum(map(len, text)))
        if block.get("type") == "text":
            text.append(clean(str(block.get("text") or "")))
    return calls.reply(
        WIRE,
        standard_finish_reason(body.get("stop_reason")),
        text="".join(text),
        usage=from_usage(body.get("usage")),
        model=body.get("model"),
        reasoning=order.reasoning(),
        unnamed=UNNAMED,
    )


def from_usage(usage: Any) -> TokenUsage:
    """Return the usage. Its `input_tokens` include cache reads and writes, which the API counts separately."""
    if not isinstance(usage, dict):
        return TokenUsage()
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    counts, exact = zip(*(read_count(usage.get(name), MAX_REPLY_TOKENS) for name in names), strict=True)
    reported = reported_usage(
        sent=sum(counts), written=usage.get("output_tokens"), cache_read=counts[1], cache_creation=counts[2]
    )
    return reported if all(exact) else reported.model_copy(update={"estimated": True})


UNNAMED = "toolu_"
_CALL_KEYS = frozenset({"type", "id", "name", "input", "cache_control"})


def _call_part(block: dict[str, Any], index: int | None = None) -> CallPart:
    return CallPart(
        call_id=str(block.get("id") or ""),
        index=index,
        name=str(block.get("name") or ""),
        arguments=argument_piece(block.get("input") or None),
        extra=unknown_keys(block, _CALL_KEYS),
    )


class AnthropicStream(StreamReader):
    """The reader of a stream of events."""

    def __init__(self) -> None:
        super().__init__()
        self._order = BlockOrder()
        self._open: dict[int | None, dict[str, Any]] = {}  # by index: the last block that began there
        self._counts: dict[str, Any] = {}
        self._stop_reason: Any = None

    def feed(self, event: dict[str, Any]) -> ModelChunk | None:
        kind = event.get("type")
        index = position(event.get("index"))
        if kind == "content_block_delta":
            return self._feed_delta(index, event.get("delta") or {})
        if kind == "content_block_start":
            return self._begin_block(index, dict(event.get("content_block") or {}))
        if kind == "content_block_stop":
            if self._kind_of(index) == "tool_use":
                self._calls.end(CallPart(index=index))
        elif kind == "message_start":
            self._begin_message(event.get("message") or {})
        elif kind == "message_delta":
            self._stop_reason = (event.get("delta") or {}).get("stop_reason") or self._stop_reason
            self._count(event.get("usage"))
        elif kind == "message_stop":
            self.ended = True
            self.complete = bool(self._stop_reason) or self._calls.are_ended
        return None

    def _begin_message(self, message: dict[str, Any]) -> None:
        self._begin_reply(message, has_output=bool(self._open))
        self._model = str(message.get("model") or "")
        self._count(message.get("usage"))

    def _begin_block(self, index: int | None, block: dict[str, Any]) -> ModelChunk | None:
        self._open[index] = self._open[None] = block
        if block.get("type") == "tool_use":
            if self._calls.announce(_call_part(block, index)):
                self._order.begin(block, at=sum(map(len, self._text)))
            return ModelChunk(arguments=str(block.get("name") or ""))
        self._order.begin(block, at=sum(map(len, self._text)))
        if block.get("type") in THINKING:
            return ModelChunk(reasoning=str(block.get("thinking") or ""))
        return self._add_text(str(block.get("text") or ""))

    def _kind_of(self, index: int | None) -> str:
        return str(self._open.get(index, {}).get("type") or "")

    def _feed_delta(self, index: int | None, delta: dict[str, Any]) -> ModelChunk | None:
        kind = self._kind_of(index)
        if delta.get("type") == "text_delta":
            return self._add_text(str(delta.get("text") or ""))
        if kind in THINKING:
            return self._add_thinking(self._open[index], delta)
        if delta.get("type") != "input_json_delta":
            return None
        piece = str(delta.get("partial_json") or "")
        if kind == "tool_use":
            self._calls.add_piece(CallPart(index=index, arguments=piece))
            return ModelChunk(arguments=piece)
        if kind in ("", "text") and piece.strip():
            raise cut_reply(f"arguments came at index {index}, where a call was not announced")
        return None  # it belongs to a call that the service runs itself

    def _add_thinking(self, block: dict[str, Any], delta: dict[str, Any]) -> ModelChunk:
        for name in ("thinking", "signature"):
            if isinstance(delta.get(name), str):
                block[name] = (block.get(name) or "") + delta[name]
        return ModelChunk(reasoning=clean(str(delta.get("thinking") or "")))

    def _count(self, usage: Any) -> None:
        # Later counts are totals, and omit the ones that have not changed.
        if isinstance(usage, dict):
            self._counts.update({key: value for key, value in usage.items() if value is not None})
            self.usage = from_usage(self._counts)

    def reply(self) -> ModelReply:
        return self._calls.reply(
            WIRE,
            standard_finish_reason(self._stop_reason),
            text="".join(self._text) + self._joiner.flush(),
            usage=self.usage,
            model=self._model,
            reasoning=self._order.reasoning(),
            unnamed=UNNAMED,
        )
