"""What SQL says of a turn that Redis does not know: it has expired there, or is not queued yet."""

from __future__ import annotations

from brainq.contracts.turn import TurnResult
from brainq.errors import TurnNotFound, TurnRejected
from brainq.wiring import Wiring


def has_ended(wiring: Wiring, turn_id: str) -> bool:
    """Raises TurnNotFound when SQL does not know it either, TurnRejected for a refused turn."""
    row = wiring.store.turns.get(turn_id)
    if row is None:
        raise TurnNotFound(f"turn {turn_id!r} is known neither to Redis nor to SQL")
    if row.state == "rejected":
        raise TurnRejected(row.reject_reason or "rejected")
    return row.ended_at is not None


def kept_result(wiring: Wiring, turn_id: str) -> TurnResult | None:
    """The result of a turn that has ended; else None. Raises as `has_ended`."""
    return wiring.store.turns.result(turn_id) if has_ended(wiring, turn_id) else None
