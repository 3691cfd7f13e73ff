"""Our messages <-> Anthropic's messages API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from brainq.contracts.message import Message, Reasoning, ToolCall
from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest, TokenUsage, standard_finish_reason
from brainq.contracts.usage import MAX_REPLY_TOKENS, read_count, reported_usage
from brainq.models.anthropic.thinking import THINKING, BlockOrder, blocks_in_order, max_tokens, replayed_thinking
from brainq.models.attachments import AttachmentBlocks
from brainq.models.tool_schema import tool_parameters
from brainq.models.wire import StreamReader, WireIds, arguments_object, read_call, wire_name
from brainq.text.surrogates import clean

_NO_BLOBS = AttachmentBlocks({})


def to_body(
    request: ModelRequest, *, stream: bool, blocks: AttachmentBlocks | None = None, thinking: bool = True
) -> dict[str, Any]:
    """The request's JSON, but for the output schema and the options. `thinking`: send back what it thought."""
    system, messages = to_messages(
        request.messages,
        blocks or AttachmentBlocks(request.blobs),
        lambda message: replayed_thinking(message, request, goes_back=thinking),
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
) -> tuple[str, list[dict[str, Any]]]:
    """The system prompt, and user and assistant messages in turns.

    System messages before the conversation are the system prompt. One that comes later keeps its place, as
    text of the user's: moved to the front it would lose its meaning and spoil the prompt cache.
    """
    ids = WireIds()
    system: list[str] = []
    turns: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system" and not turns:
            system.append(clean(message.content))
            continue
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message, ids, attached, thoughts)
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
    """Sort key: the API wants tool results at the head of their message."""
    return block["type"] != "tool_result"


def _blocks(
    message: Message, ids: WireIds, attached: AttachmentBlocks, thoughts: Callable[[Message], Sequence[Reasoning]]
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
    # Attachments before the text: so the service says it works best.
    return [*files, *blocks_in_order(thoughts(message), text, calls)]


def from_body(body: dict[str, Any]) -> ModelReply:
    """The reply in a whole, unstreamed answer. Raises ValueError if there is none in it."""
    content = body.get("content")
    if not isinstance(content, list):
        raise ValueError("the answer has no content")
    text: list[str] = []
    calls: list[ToolCall] = []
    order = BlockOrder()
    for block in content:
        order.begin(block, at=sum(map(len, text)))
        if block.get("type") == "text":
            text.append(clean(str(block.get("text") or "")))
        elif block.get("type") == "tool_use":
            calls.append(read_call(_call_id(block, 0), block.get("name"), block.get("input") or {}))
    return ModelReply(
        text="".join(text),
        calls=tuple(calls),
        usage=from_usage(body.get("usage")),
        model=str(body.get("model") or ""),
        finish_reason=standard_finish_reason(body.get("stop_reason")),
        reasoning=order.reasoning(),
    )


def from_usage(usage: Any) -> TokenUsage:
    """Ours: `input_tokens` includes what the API counts apart, cache reads and cache writes."""
    if not isinstance(usage, dict):
        return TokenUsage()
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    counts, exact = zip(*(read_count(usage.get(name), MAX_REPLY_TOKENS) for name in names), strict=True)
    reported = reported_usage(
        sent=sum(counts), written=usage.get("output_tokens"), cache_read=counts[1], cache_creation=counts[2]
    )
    return reported if all(exact) else reported.model_copy(update={"estimated": True})


def _call_id(block: dict[str, Any], index: int) -> str:
    return str(block.get("id") or f"toolu_{index}")


class AnthropicStream(StreamReader):
    """Puts a reply together from its events."""

    def __init__(self) -> None:
        super().__init__()
        self._order = BlockOrder()
        self._thinking: dict[int, dict[str, Any]] = {}
        self._calls: dict[int, tuple[dict[str, Any], list[str]]] = {}
        self._counts: dict[str, Any] = {}
        self._model = ""
        self._stop_reason: Any = None

    def feed(self, event: dict[str, Any]) -> ModelChunk | None:
        kind = event.get("type")
        index = int(event.get("index") or 0)
        if kind == "content_block_delta":
            return self._feed_delta(index, event.get("delta") or {})
        if kind == "content_block_start":
            block: dict[str, Any] = dict(event.get("content_block") or {})
            self._order.begin(block, at=sum(map(len, self._text)))
            if block.get("type") in THINKING:
                self._thinking[index] = block
                return ModelChunk(reasoning=str(block.get("thinking") or ""))
            if block.get("type") == "tool_use":
                self._calls[index] = (block, [])
                return ModelChunk(arguments=str(block.get("name") or ""))
            return self._add_text(str(block.get("text") or ""))
        if kind == "message_start":
            message: dict[str, Any] = event.get("message") or {}
            self._model = str(message.get("model") or "")
            self._count(message.get("usage"))
        elif kind == "message_delta":
            self._stop_reason = (event.get("delta") or {}).get("stop_reason") or self._stop_reason
            self._count(event.get("usage"))
        elif kind == "message_stop":
            self.complete = self.ended = True
        return None

    def _feed_delta(self, index: int, delta: dict[str, Any]) -> ModelChunk | None:
        if delta.get("type") == "text_delta":
            return self._add_text(str(delta.get("text") or ""))
        if index in self._thinking:
            return self._add_thinking(self._thinking[index], delta)
        if delta.get("type") == "input_json_delta" and index in self._calls:
            piece = str(delta.get("partial_json") or "")
            self._calls[index][1].append(piece)
            return ModelChunk(arguments=piece)
        return None

    def _add_thinking(self, block: dict[str, Any], delta: dict[str, Any]) -> ModelChunk:
        for name in ("thinking", "signature"):
            if isinstance(delta.get(name), str):
                block[name] = (block.get(name) or "") + delta[name]
        return ModelChunk(reasoning=clean(str(delta.get("thinking") or "")))

    def _count(self, usage: Any) -> None:
        # Later counts are totals, and leave out what did not change.
        if isinstance(usage, dict):
            self._counts.update({key: value for key, value in usage.items() if value is not None})
            self.usage = from_usage(self._counts)

    def reply(self) -> ModelReply:
        return ModelReply(
            text="".join(self._text) + self._joiner.flush(),
            calls=tuple(
                read_call(_call_id(block, index), block.get("name"), "".join(pieces) or block.get("input") or {})
                for index, (block, pieces) in sorted(self._calls.items())
            ),
            usage=self.usage,
            model=self._model,
            finish_reason=standard_finish_reason(self._stop_reason),
            reasoning=self._order.reasoning(),
        )
