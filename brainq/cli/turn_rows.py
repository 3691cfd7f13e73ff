"""Turns as rows of a table: SQL's, joined with Redis for those that have not ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rich.text import Text

from brainq.cli.reach import Observed
from brainq.cli.style import STATUS_STYLES, ago, clean, duration, short, styled
from brainq.cli.table import PageTable, fact, key, words
from brainq.contracts.rows import TurnRow
from brainq.contracts.snapshot import TurnSnapshot
from brainq.contracts.status import Ending
from brainq.errors import InvalidInput
from brainq.turn.explain import explain

LIVE_STATES = ("queued", "active", "parked", "closing")
STATES = (*LIVE_STATES, "accepted", "rejected", *(ending.value for ending in Ending))
NOTE_WIDTH = 72


@dataclass(frozen=True)
class Listed:
    """One turn of the list."""

    row: TurnRow
    snapshot: TurnSnapshot | None

    @property
    def state(self) -> str:
        return self.snapshot.state.value if self.snapshot and self.row.ended_at is None else self.row.state

    @property
    def note(self) -> str:
        """What happens next while it is open, and why it stopped afterwards."""
        row = self.row
        if row.ended_at is None:
            return explain(self.snapshot) if self.snapshot else "accepted; Redis does not know it"
        reason = row.stop_reason.value if row.stop_reason else ""
        said = row.reject_reason or row.error or ""
        return ": ".join(part for part in (reason if reason != row.state else "", said) if part)

    def as_json(self) -> dict[str, Any]:
        row = self.row
        return {
            "turn_id": row.turn_id,
            "session_id": row.session_id,
            "request_key": row.request_key,
            "state": self.state,
            "stop_reason": row.stop_reason.value if row.stop_reason else None,
            "note": self.note,
            "accepted_at": row.accepted_at.isoformat(),
            "ended_at": row.ended_at.isoformat() if row.ended_at else None,
        }


def checked_state(state: str | None) -> str | None:
    """Raises InvalidInput for a state that is none."""
    if state is not None and state not in STATES:
        raise InvalidInput("--state", f"{state!r} is none of {', '.join(STATES)}")
    return state


def collect(seen: Observed, session: str | None, state: str | None, limit: int) -> list[Listed]:
    """The newest turns first. A state only Redis knows is looked for among all that have not ended."""
    if state not in LIVE_STATES:
        return [_listed(seen, row) for row in seen.store.turns.list(session, state, limit)]
    found: list[Listed] = []
    for row in seen.store.turns.list(session, "accepted", 10_000):
        listed = _listed(seen, row)
        if listed.state == state:
            found.append(listed)
        if len(found) == limit:
            break
    return found


def as_table(rows: list[Listed]) -> PageTable:
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


def _listed(seen: Observed, row: TurnRow) -> Listed:
    live = row.ended_at is None and seen.client is not None
    return Listed(
        row,
        seen.client.wiring.state.snapshots.of(row.session_id, row.turn_id) if live and seen.client else None,
    )
