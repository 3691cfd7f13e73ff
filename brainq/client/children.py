"""Which turns the calls of a turn started."""

from __future__ import annotations

from brainq.contracts.ids import child_turn_id
from brainq.contracts.listing import StartedTurn
from brainq.wiring import Wiring


def started_by(wiring: Wiring, session_id: str, turn_id: str) -> tuple[StartedTurn, ...]:
    """In the order of its calls. A child's id follows from its call, so that nobody has to keep it."""
    trace = wiring.state.calls.trace(session_id, turn_id) or wiring.store.traces.of(turn_id)
    calls = {child_turn_id(turn_id, entry.call_id): entry.call_id for entry in trace}
    found = {row.turn_id: row for row in wiring.store.turns.rows(list(calls))}
    return tuple(
        StartedTurn(call_id=call_id, turn_id=child, session_id=row.session_id, state=row.state)
        for child, call_id in calls.items()
        if (row := found.get(child)) is not None
    )
