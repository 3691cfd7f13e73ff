"""Moves on a turn that several verbs are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from brainq.client.ended import has_ended
from brainq.client.options import Cancelled, WaitFor
from brainq.contracts.approval import Approval
from brainq.contracts.event import EventKind, TurnEvent
from brainq.contracts.snapshot import TurnSnapshot
from brainq.contracts.status import Awaits, TurnState
from brainq.errors import InvalidInput, SessionBusy, TurnParked
from brainq.wiring import Wiring

POLL_S = 2.0
PARKED_FOR = frozenset({Awaits.PEOPLE.value, Awaits.OUTSIDE.value, Awaits.CLIENT.value})
SOMEBODYS_TURN: frozenset[WaitFor] = frozenset(("ended", "people", "client"))
"""The end, or that nobody but the caller, or a person it may tell, can let the turn go on."""
WAITS = PARKED_FOR | {"ended", "parked"}
_OF_WORK = frozenset({EventKind.TEXT_DELTA, EventKind.REASONING_DELTA, EventKind.CALL_PROGRESS})
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


def waits_for(until: object) -> frozenset[str]:
    """`until` of `TurnHandle.wait`, checked: of whom a parked turn may wait that is waited for."""
    given: list[object] = [until] if isinstance(until, str) else list(cast("Iterable[object]", until))
    unknown = [word for word in given if word not in WAITS]
    if unknown or not given:
        raise InvalidInput("until", f"{until!r} must be some of {', '.join(sorted(WAITS))}")
    return PARKED_FOR if "parked" in given else frozenset(str(word) for word in given) & PARKED_FOR


def is_parked(snapshot: TurnSnapshot | None, waits: frozenset[str]) -> bool:
    return snapshot is not None and snapshot.state is TurnState.PARKED and snapshot.awaits.value in waits


def parked(
    turn_id: str, session_id: str, snapshot: TurnSnapshot | None, approvals: Sequence[Approval]
) -> TurnParked:
    awaits = Awaits.PEOPLE if snapshot is None else snapshot.awaits
    pending = tuple(approval.id for approval in approvals if approval.state == "pending")
    return TurnParked(turn_id, session_id, awaits.value, pending)


def tells_nothing(batch: Sequence[TurnEvent]) -> bool:
    """Whether these events are of what a turn does while it is not parked, so that nobody need look."""
    return bool(batch) and all(event.kind in _OF_WORK for event in batch)


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
