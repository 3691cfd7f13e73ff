"""Spans of model calls, and the content in them where it was asked for.

Content is JSON in the form of the GenAI conventions, without attachments and reasoning. A brain with `redact_logs`
keeps its content out of spans, too.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from opentelemetry.trace import INVALID_SPAN, Span, SpanKind

from brainq.contracts.message import Message, ToolCall
from brainq.contracts.model import ModelReply, ModelRequest, ModelRetry
from brainq.observe import telemetry_names as names
from brainq.observe.tracing import content_is_excluded, note, tracer


def messages_json(messages: Sequence[Message]) -> str:
    """The attribute `gen_ai.input.messages`."""
    return json.dumps([_message(message) for message in messages])


def reply_json(reply: ModelReply) -> str:
    """The attribute `gen_ai.output.messages`."""
    parts = [*_text(reply.text), *(_call(call) for call in reply.calls)]
    return json.dumps([{"role": "assistant", "parts": parts, "finish_reason": reply.finish_reason}])


def _message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        part = {"type": "tool_call_response", "id": message.call_id, "response": message.content}
        return {"role": "tool", "parts": [part]}
    parts = [*_text(message.content), *(_call(call) for call in message.calls)]
    return {"role": message.role, "parts": parts}


def _text(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "content": text}] if text else []


def _call(call: ToolCall) -> dict[str, Any]:
    return {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments}


class ChatSpan:
    """One model call. `span` is to be entered."""

    def __init__(self, span: Span, *, content: bool) -> None:
        self.span = span
        self._content = content
        self._began_s = time.monotonic()
        self._is_answering = False

    def chunk(self) -> None:
        """A piece of the answer came."""
        if not self._is_answering:
            self._is_answering = True
            self.span.set_attribute(names.FIRST_CHUNK_S, round(time.monotonic() - self._began_s, 3))

    def retry(self, retry: ModelRetry) -> None:
        """The service is asked again."""
        self.span.add_event(names.MODEL_RETRY, {names.RETRY_KIND: retry.kind, names.RETRY_WAIT_S: retry.wait_s})

    def reply(self, reply: ModelReply) -> None:
        """The whole answer."""
        if not self.span.is_recording():
            return
        usage = reply.usage
        note(
            self.span,
            {
                names.RESPONSE_MODEL: reply.model or None,
                names.FINISH_REASONS: [reply.finish_reason] if reply.finish_reason else None,
                names.INPUT_TOKENS: usage.input_tokens,
                names.OUTPUT_TOKENS: usage.output_tokens,
                names.CACHE_READ_TOKENS: usage.cache_read_tokens or None,
                names.CACHE_CREATION_TOKENS: usage.cache_creation_tokens or None,
                names.OUTPUT_MESSAGES: reply_json(reply) if self._content else None,
            },
        )


def chat_span(provider: object, request: ModelRequest) -> ChatSpan:
    """A call of `provider`, below what is open in this context."""
    recorder = tracer()
    if recorder is None:
        return ChatSpan(INVALID_SPAN, content=False)
    content = recorder.content and not content_is_excluded()
    host, port = _server(provider)
    span = recorder.start(
        f"{names.CHAT} {request.model}",
        {
            names.OPERATION: names.CHAT,
            names.PROVIDER: getattr(provider, "name", None),
            names.REQUEST_MODEL: request.model,
            names.MAX_TOKENS: request.max_output_tokens,
            names.OUTPUT_TYPE: "json" if request.output_schema is not None else None,
            names.CONVERSATION: request.session_id or None,
            names.TURN: request.turn_id or None,
            names.STEP: request.step,
            names.ATTEMPT: request.attempt,
            names.PURPOSE: request.purpose,
            names.SERVER_ADDRESS: host,
            names.SERVER_PORT: port,
            names.INPUT_MESSAGES: messages_json(request.messages) if content else None,
        },
        kind=SpanKind.CLIENT,
    )
    return ChatSpan(span, content=content)


def _server(provider: object) -> tuple[str | None, int | None]:
    """Where requests go, of a provider that says so by `server_url`."""
    try:
        parts = urlsplit(getattr(provider, "server_url", "") or "")
        return parts.hostname, parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        return None, None
