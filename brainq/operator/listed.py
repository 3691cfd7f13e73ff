"""A turn as a line of a list: SQL's row, joined with Redis' snapshot for one that has not ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from brainq.contracts.rows import TurnRow
from brainq.contracts.snapshot import TurnSnapshot
from brainq.contracts.status import Ending
from brainq.errors import InvalidInput
from brainq.turn.explain import explain

LIVE_STATES = ("queued", "active", "parked", "closing")
STATES = (*LIVE_STATES, "accepted", "rejected", *(ending.value for ending in Ending))
"""What a list can be asked for; `accepted` is any turn that has not ended."""


def checked_state(state: str | None) -> str | None:
    """Raises InvalidInput for a state that is none."""
    if state is not None and state not in STATES:
        raise InvalidInput("--state", f"{state!r} is none of {', '.join(STATES)}")
    return state


@dataclass(frozen=True)
class ListedTurn:
    """`snapshot` is None for a turn that has ended, that Redis does not know, or while Redis is away."""

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
