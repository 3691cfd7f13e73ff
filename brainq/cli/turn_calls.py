"""What the calls of a turn were given and what they gave back, as a section of pages."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.text import Text

from brainq.cli.style import short
from brainq.cli.table import PageTable, key, words
from brainq.contracts.message import Message, ToolCall

WIDTH = 300  # of one call's arguments, or result; --json has all


def call_section(messages: Sequence[Message]) -> PageTable | None:
    """Each call with its arguments, and what it gave back; None without calls."""
    results = {message.call_id: message for message in messages if message.role == "tool"}
    calls = [call for message in messages if message.role == "assistant" for call in message.calls]
    table = PageTable(key("call"), words("what", 1), header=False)
    for call in calls:
        table.add(call.id, Text(call.name, "cyan").append(f"({_arguments(call)})", "default"))
        result = results.get(call.id)
        if result is not None:
            said = short(result.content, WIDTH)
            table.add("", Text("→ ", "dim").append(said, "red" if result.is_error else "default"))
    return table if calls else None


def _arguments(call: ToolCall) -> str:
    given = call.arguments
    return short(given if isinstance(given, str) else json.dumps(given, ensure_ascii=False), WIDTH)
