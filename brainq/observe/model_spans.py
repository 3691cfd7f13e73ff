"""The spans of model calls."""

from __future__ import annotations

import time
from urllib.parse import urlsplit

from brainq.contracts.model import ModelReply, ModelRequest, ModelRetry
from brainq.observe import telemetry_names as names
from brainq.observe.content import keeps_out, messages_json, reply_json
from brainq.observe.tracing import OFF, Span, tracer


class ChatSpan:
    """One model call, or nothing where telemetry is off."""

    def __init__(self, span: Span, *, content: bool) -> None:
        self.span = span
        self._content = content
        self._began_s = time.monotonic()
        self._is_answering = False

    def chunk(self) -> None:
        """Something of the answer came."""
        if not self._is_answering:
            self._is_answering = True
            self.span.note({names.FIRST_CHUNK_S: round(time.monotonic() - self._began_s, 3)})

    def retry(self, retry: ModelRetry) -> None:
        """The service is asked again."""
        self.span.event(names.MODEL_RETRY, {names.RETRY_KIND: retry.kind, names.RETRY_WAIT_S: retry.wait_s})

    def reply(self, reply: ModelReply) -> None:
        """The whole answer."""
        usage = reply.usage
        self.span.note(
            {
                names.RESPONSE_MODEL: reply.model or None,
                names.FINISH_REASONS: [reply.finish_reason] if reply.finish_reason else None,
                names.INPUT_TOKENS: usage.input_tokens,
                names.OUTPUT_TOKENS: usage.output_tokens,
                names.CACHE_READ_TOKENS: usage.cache_read_tokens or None,
                names.CACHE_CREATION_TOKENS: usage.cache_creation_tokens or None,
                names.OUTPUT_MESSAGES: reply_json(reply) if self._content else None,
            }
        )


class _NoChat(ChatSpan):
    def chunk(self) -> None: ...
    def retry(self, retry: ModelRetry) -> None: ...
    def reply(self, reply: ModelReply) -> None: ...


_NO_CHAT = _NoChat(OFF, content=False)


def chat_span(provider: object, request: ModelRequest) -> ChatSpan:
    """A call of `provider`, below whatever is open in this context. Its `span` is to be entered."""
    recorder = tracer()
    if recorder is None:
        return _NO_CHAT
    content = recorder.content and not keeps_out()
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
        kind="client",
    )
    return ChatSpan(span, content=content)


def _server(provider: object) -> tuple[str | None, int | None]:
    """Where requests go, of a provider that says so by `server_url`."""
    try:
        parts = urlsplit(getattr(provider, "server_url", "") or "")
        return parts.hostname, parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        return None, None
