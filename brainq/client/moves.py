"""Moves on a turn that several verbs are made of."""

from __future__ import annotations

from collections.abc import Mapping

from brainq.client.ended import has_ended
from brainq.client.options import Cancelled
from brainq.contracts.event import TurnEvent
from brainq.errors import SessionBusy
from brainq.wiring import Wiring

POLL_S = 2.0
_CANCELLED: Mapping[str, Cancelled] = {"CANCELLED": "cancelled", "REQUESTED": "requested"}


def cancel(
    wiring: Wiring, session_id: str, turn_id: str, reason: str, *, queued_only: bool = False
) -> Cancelled:
    """Cancel a turn; with `queued_only` not if it is live. See `TurnHandle.cancel`, `Session.drop`."""
    brakes = wiring.people.brakes
    stop = brakes.drop if queued_only else brakes.cancel
    word = stop(session_id, turn_id, reason[:500])
    if word == "GONE" and queue_again(wiring, session_id, turn_id):
        word = stop(session_id, turn_id, reason[:500])
    if word == "GONE":
        brakes.nothing_to_cancel(session_id, turn_id)
    return _CANCELLED.get(word, "ended")


def queue_again(wiring: Wiring, session_id: str, turn_id: str) -> bool:
    """Make a turn known to Redis that only SQL knows yet: what is done to it needs something to stand on.

    False when it has ended, or nobody knows it.
    """
    row = wiring.store.turns.get(turn_id)
    request = None if row is None or row.ended_at is not None else wiring.store.turns.request(turn_id)
    if request is None or request.session_id != session_id:
        return False
    try:
        wiring.people.admission.queue_again(request)
    except SessionBusy:  # it is refused, which is an end
        return False
    return True


def next_events(
    wiring: Wiring, session_id: str, turn_id: str, after: int, wait_s: float = POLL_S
) -> tuple[list[TurnEvent], bool]:
    """The events above `after` that there are, waiting up to `wait_s` for the first; and whether that is all."""
    events = wiring.state.events
    batch = events.read(session_id, turn_id, after, wait_s)
    if batch:
        return batch, batch[-1].is_final
    if not events.known(session_id, turn_id):
        return [], has_ended(wiring, turn_id)
    if not events.is_out(session_id, turn_id):
        return [], False
    # It may have come between the two questions.
    return events.read(session_id, turn_id, after, 0), True
