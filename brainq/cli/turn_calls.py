"""What the calls of a turn were given and what they gave back, as a section of pages."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.text import Text

from brainq.cli.reach import Observed
from brainq.cli.style import short
from brainq.cli.table import PageTable, key, words
from brainq.contracts.message import Message, ToolCall
from brainq.contracts.rows import TurnRow
from brainq.contracts.snapshot import TurnSnapshot
from brainq.errors import ContentNotKept

WIDTH = 300  # of one call's arguments, or result; --json has all


def read_messages(
    seen: Observed, row: TurnRow, snapshot: TurnSnapshot | None
) -> tuple[tuple[Message, ...], str]:
    """The turn's messages, from Redis while it lives and from SQL later; and why there are none."""
    if row.state == "rejected":
        return (), ""
    if seen.client is None:
        kept = seen.store.transcripts.of(row.turn_id)
        if not kept and seen.store.transcripts.is_redacted(row.turn_id):
            return (), "its brain keeps content out of SQL (redact_logs)"
        return kept, ""
    try:
        messages = seen.client.handle(row.turn_id).transcript()
    except ContentNotKept:
        return (), "the turn has ended, and its brain keeps content out of SQL (redact_logs)"
    if not messages and snapshot is not None:
        # It has ended, and the finalizer has not written it to SQL yet.
        messages = seen.client.wiring.state.finals.details(row.session_id, row.turn_id).messages
    return messages, ""


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
