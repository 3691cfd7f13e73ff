"""A conversation as `[role] text` lines, for a model that is asked about it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from brainq.contracts.message import Message, ToolCall, with_attachment_labels
from brainq.text.shorten import shortened

MAX_ARGUMENT_CHARS = 500

NOTE_LABELS = {
    "summary": "runtime: summary of what came before",
    "reflection": "runtime: review of the steps so far",
    "context": "runtime: context pack",
    "memory": "runtime: memory",
    "skill": "runtime: skill context",
}


def note_kind(message: Message) -> str:
    """Which note of the runtime this is: `summary`, `reflection`, ...; empty for what people and models wrote."""
    return "" if message.extra is None else str(message.extra.get("note") or "")


def transcript_lines(messages: Sequence[Message], max_chars: int, max_result_chars: int) -> list[str]:
    """One entry a message or call, with texts cut to `max_chars` and tool results to `max_result_chars`.

        [user] Book me a seat.
        [assistant] Let me see. (calls c1-0: find_flights({"to": "OSL"}))
        [tool find_flights c1-0: ok] 3 flights ...

    A text of several lines goes on with two spaces, so that no line in it reads like an entry of its own.
    """
    return [_indented(f"[{_label(message)}]", _text(message, max_chars, max_result_chars)) for message in messages]


def call_text(call: ToolCall, max_chars: int = MAX_ARGUMENT_CHARS) -> str:
    """`tool({"a": 1})`, arguments cut to `max_chars`."""
    arguments = call.arguments
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)
    return f"{call.name}({shortened(text, max_chars)})"


def _label(message: Message) -> str:
    if message.role == "tool":
        return f"tool {message.name} {message.call_id}: {'error' if message.is_error else 'ok'}"
    return NOTE_LABELS.get(note_kind(message), message.role)


def _text(message: Message, max_chars: int, max_result_chars: int) -> str:
    text = shortened(message.content, max_result_chars if message.role == "tool" else max_chars)
    text = with_attachment_labels(text, message.attachments)
    if not message.calls:
        return text
    wanted = ", ".join(f"{call.id}: {call_text(call)}" for call in message.calls)
    return f"{text} (calls {wanted})".lstrip()


def _indented(label: str, text: str) -> str:
    first, *others = text.splitlines() or [""]
    return "\n  ".join([f"{label} {first}".rstrip(), *others])
