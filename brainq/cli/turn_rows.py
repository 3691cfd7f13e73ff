"""Turns as rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.text import Text

from brainq.cli.style import STATUS_STYLES, ago, clean, duration, short, styled
from brainq.cli.table import PageTable, fact, key, words
from brainq.operator.listed import ListedTurn

NOTE_WIDTH = 72


def as_table(rows: Sequence[ListedTurn]) -> PageTable:
    table = PageTable(
        key("turn"), key("session"), key("state"), fact("accepted", 2), fact("took", 1), words("note", 3)
    )
    now = datetime.now(UTC)
    for listed in rows:
        row = listed.row
        took_ms = ((row.ended_at or now) - row.accepted_at).total_seconds() * 1000
        table.add(
            row.turn_id,
            clean(row.session_id, lines=False),
            styled(listed.state, STATUS_STYLES),
            ago(row.accepted_at, now),
            Text(duration(max(0.0, took_ms))),
            Text(short(listed.note, NOTE_WIDTH), "dim"),
        )
    return table
