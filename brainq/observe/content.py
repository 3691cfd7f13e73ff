"""Content in spans: what was said, as JSON in the form of the GenAI conventions. Only where somebody asked for it.

A brain with `redact_logs` keeps its content out of them, too. Attachments and reasoning are left out.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from brainq.contracts.message import Message, ToolCall
from brainq.contracts.model import ModelReply

_kept_out: ContextVar[bool] = ContextVar("brainq_content_kept_out", default=False)


@contextmanager
def keeping_out(redact: bool) -> Generator[None]:
    """No content is recorded within, if `redact`."""
    token = _kept_out.set(redact)
    try:
        yield
    finally:
        _kept_out.reset(token)


def keeps_out() -> bool:
    """Whether content is kept out here."""
    return _kept_out.get()


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
