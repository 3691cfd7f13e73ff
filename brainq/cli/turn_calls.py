"""What the calls of a turn were given and what they gave back, as a section of pages."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.text import Text

from brainq.cli.style import short
from brainq.cli.table import PageTable, key, words
from brainq.contracts.history import TurnCall

WIDTH = 300  # of one call's arguments, or result; --json has all


def call_section(calls: Sequence[TurnCall]) -> PageTable | None:
    """Each call whose content is kept with its arguments, and what it gave back; None without any."""
    kept = [call for call in calls if call.is_kept]
    table = PageTable(key("call"), words("what", 1), header=False)
    for call in kept:
        table.add(call.call_id, Text(call.tool, "cyan").append(f"({_arguments(call)})", "default"))
        if call.result is not None:
            said = short(call.result, WIDTH)
            table.add("", Text("→ ", "dim").append(said, "red" if call.is_error else "default"))
    return table if kept else None


def _arguments(call: TurnCall) -> str:
    given = call.arguments
    return short(given if isinstance(given, str) else json.dumps(given, ensure_ascii=False), WIDTH)
