"""Turns, and sessions, as rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.text import Text

from brainq.cli.style import STATUS_STYLES, ago, clean, duration, short, styled
from brainq.cli.table import PageTable, fact, key, words
from brainq.cli.turn_after import dollars
from brainq.contracts.listing import ListedSession, ListedTurn

NOTE_WIDTH = 72
MESSAGE_WIDTH = 48


def as_table(rows: Sequence[ListedTurn]) -> PageTable:
    table = PageTable(
        key("turn"),
        key("session"),
        key("state"),
        fact("accepted", 4),
        fact("took", 2),
        fact("failed", 3, right=True),
        fact("cost", 1, right=True),
        words("message", 6),
        words("note", 5),
    )
    now = datetime.now(UTC)
    for row in rows:
        took_ms = ((row.ended_at or now) - row.accepted_at).total_seconds() * 1000
        failed = row.failed_calls + row.dead_steps
        table.add(
            row.turn_id,
            clean(row.session_id, lines=False),
            styled(row.state, STATUS_STYLES),
            ago(row.accepted_at, now),
            Text(duration(max(0.0, took_ms))),
            Text(str(failed) if failed else "", "red"),
            Text(dollars(row.cost_usd) if row.cost_usd else ""),
            clean(short(row.message, MESSAGE_WIDTH), lines=False),
            Text(short(row.note, NOTE_WIDTH), "dim"),
        )
    return table


def sessions_as_table(rows: Sequence[ListedSession]) -> PageTable:
    table = PageTable(
        key("session"),
        fact("turns", 2, right=True),
        fact("last turn", 3),
        key("state"),
        fact("waiting", 1, right=True),
        words("note", 4),
    )
    now = datetime.now(UTC)
    for row in rows:
        stands = [
            "paused" if row.is_paused else "",
            f"{row.flags} readiness flags" if row.flags else "",
            row.last_turn.message,
        ]
        table.add(
            clean(row.session_id, lines=False),
            str(row.turns),
            ago(row.last_turn.accepted_at, now),
            styled(row.last_turn.state, STATUS_STYLES),
            Text(str(row.waiting) if row.waiting else ""),
            Text(short("; ".join(part for part in stands if part), NOTE_WIDTH), "dim"),
        )
    return table
