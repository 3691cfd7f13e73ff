"""Waiting for a turn's end, a park or its next events, and cancelling and holding it."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from brainq import errors
from brainq.client.options import Cancelled, WaitFor
from brainq.contracts.event import EventKind, TurnEvent
from brainq.contracts.people import Approval, HoldSpec
from brainq.contracts.status import Awaits, TurnState
from brainq.contracts.turn import TurnResult
from brainq.contracts.view import TurnSnapshot

if TYPE_CHECKING:
    from brainq.app.wiring import Wiring
    from brainq.contracts.typed_events import Event

POLL_S = 2.0
MOVING_S = 0.5  # The seconds after which a waiting caller looks again while the turn's tenant moves.
PARKED_FOR = frozenset({Awaits.PEOPLE.value, Awaits.OUTSIDE.value, Awaits.CLIENT.value})
NEEDS_CALLER: frozenset[WaitFor] = frozenset(("ended", "people", "client"))
"""The conditions in which the turn cannot continue without the caller or a person whom it can inform; and the end."""
UNTIL_WORDS = PARKED_FOR | {"ended", "parked"}
_PROGRESS_EVENTS = frozenset({EventKind.TEXT_DELTA, EventKind.REASONING_DELTA, EventKind.CALL_PROGRESS})
_CANCEL_ANSWERS: Mapping[str, Cancelled] = {"CANCELLED": "cancelled", "REQUESTED": "requested"}


def has_ended(wiring: Wiring, turn_id: str) -> bool:
    """Return whether SQL has the ending of a turn that Redis does not know, because it expired or is not queued yet.

    Raises TurnNotFound if SQL does not know it either, TurnRejected if the turn was refused.
    """
    row = wiring.store.turns.get(turn_id)
    if row is None:
        raise errors.TurnNotFound(f"turn {turn_id!r} is neither in Redis nor in SQL")
    if row.state == "rejected":
        raise errors.TurnRejected(row.reject_reason or "rejected")
    return row.ended_at is not None


def stored_result(wiring: Wiring, turn_id: str) -> TurnResult | None:
    """Return the result of an ended turn. Returns None if the turn has not ended. Raises the errors of `has_ended`."""
    return wiring.store.turns.result(turn_id) if has_ended(wiring, turn_id) else None


def known_result(wiring: Wiring, session_id: str, turn_id: str) -> TurnResult | None:
    """Return the result of a turn if it was published. Raises the errors of `has_ended`."""
    body = wiring.state.events.result(session_id, turn_id)
    if body is not None:
        return TurnResult.from_stored(body)
    return None if wiring.state.events.known(session_id, turn_id) else stored_result(wiring, turn_id)


@dataclass(slots=True)
class WaitLimits:
    """The limits of a caller's wait, on a monotonic clock whose readings are passed in.

    timeout_s: the whole wait. None means no limit.
    idle_s: the longest time without an event. None means no limit.
    """

    turn_id: str
    timeout_s: float | None
    idle_s: float | None
    began: float
    _heard: float = field(init=False)

    def __post_init__(self) -> None:
        self._heard = self.began

    def event_arrived(self, now: float) -> None:
        self._heard = now

    def remaining_s(self, now: float) -> float:
        """Return the seconds until the first limit, at least 0; infinity without limits."""
        ends = (
            math.inf if self.timeout_s is None else self.began + self.timeout_s,
            math.inf if self.idle_s is None else self._heard + self.idle_s,
        )
        return max(0.0, min(ends) - now)

    def check(self, now: float) -> None:
        """Raise ResultTimeout if a limit has been reached."""
        if self.timeout_s is not None and now >= self.began + self.timeout_s:
            raise errors.ResultTimeout(
                f"turn {self.turn_id!r} has no result after {self.timeout_s:g} s. It continues; wait for it again later"
            )
        if self.idle_s is not None and now >= self._heard + self.idle_s:
            raise errors.ResultTimeout(f"turn {self.turn_id!r}: no event for {self.idle_s:g} s. It continues")


@contextmanager
def waiting_for_move(limits: WaitLimits) -> Generator[None]:
    """If the body raises TenantMoving, wait a moment, because the turn waits as well. Raises ResultTimeout."""
    try:
        yield
    except errors.TenantMoving:
        limits.check(time.monotonic())
        time.sleep(min(MOVING_S, limits.remaining_s(time.monotonic())))


def cancel_turn(wiring: Wiring, session_id: str, turn_id: str, reason: str, *, queued_only: bool = False) -> Cancelled:
    """Cancel a turn; with `queued_only`, only if it is not live. See `TurnHandle.cancel`, `Session.drop`."""
    brakes = wiring.people.brakes
    stop = brakes.drop if queued_only else brakes.cancel
    word = stop(session_id, turn_id, reason[:500])
    if word == "GONE" and queue_again(wiring, session_id, turn_id):
        word = stop(session_id, turn_id, reason[:500])
    if word == "GONE":
        brakes.nothing_to_cancel(session_id, turn_id)
    return _CANCEL_ANSWERS.get(word, "ended")


def hold_turn(wiring: Wiring, session_id: str, turn_id: str, spec: HoldSpec) -> str:
    """Place a hold and return its id. Raises InvalidInput if the turn has ended. See `TurnHandle.hold`."""
    word = wiring.people.brakes.hold(session_id, turn_id, spec)
    if word == "GONE" and queue_again(wiring, session_id, turn_id):
        # The id of the first hold was used up, because that hold has ended.
        spec = spec.model_copy(update={"id": f"{spec.id}b"})
        word = wiring.people.brakes.hold(session_id, turn_id, spec)
    if word in ("ENDED", "GONE"):
        raise errors.InvalidInput("turn_id", f"turn {turn_id!r} has ended; there is nothing left to hold")
    return spec.id


def queue_again(wiring: Wiring, session_id: str, turn_id: str) -> bool:
    """Queue a turn that SQL has and Redis does not, so that it can be cancelled or held.

    Returns False if it has ended, or if SQL does not know it.
    """
    row = wiring.store.turns.get(turn_id)
    request = None if row is None or row.ended_at is not None else wiring.store.turns.request(turn_id)
    if request is None or request.session_id != session_id:
        return False
    try:
        wiring.people.turn_queue.queue_again(request)
    except (errors.BuildUnserved, errors.SessionBusy):  # The turn was refused, which is an ending.
        return False
    return True


def check_until(until: object) -> frozenset[str]:
    """Return the reasons for a park that `until` of `TurnHandle.wait` names. Raises InvalidInput."""
    chosen: list[object] = [until] if isinstance(until, str) else list(cast("Iterable[object]", until))
    unknown = [word for word in chosen if word not in UNTIL_WORDS]
    if unknown or not chosen:
        raise errors.InvalidInput("until", f"{until!r} must consist of {', '.join(sorted(UNTIL_WORDS))}")
    return PARKED_FOR if "parked" in chosen else frozenset(str(word) for word in chosen) & PARKED_FOR


def is_parked(snapshot: TurnSnapshot | None, waits: frozenset[str]) -> bool:
    return snapshot is not None and snapshot.state is TurnState.PARKED and snapshot.awaits.value in waits


def turn_parked_error(
    turn_id: str, session_id: str, snapshot: TurnSnapshot | None, approvals: Sequence[Approval]
) -> errors.TurnParked:
    awaits = Awaits.PEOPLE if snapshot is None else snapshot.awaits
    pending = tuple(approval.id for approval in approvals if approval.state == "pending")
    return errors.TurnParked(turn_id, session_id, awaits.value, pending)


def is_only_progress(batch: Sequence[TurnEvent]) -> bool:
    """Return whether these events show that the turn is not parked, so its state need not be read."""
    return bool(batch) and all(event.kind in _PROGRESS_EVENTS for event in batch)


def events_so_far(wiring: Wiring, session_id: str, turn_id: str) -> tuple[Event, ...]:
    """Return the events there are now. See `TurnHandle.events_so_far`."""
    events: list[Event] = []
    while page := wiring.state.events.read(session_id, turn_id, events[-1].seq if events else 0, 0):
        events += page
        if page[-1].is_final:
            break
    return tuple(events)


def next_events(
    wiring: Wiring, session_id: str, turn_id: str, after: int, wait_s: float = POLL_S
) -> tuple[list[Event], bool]:
    """Return the events above `after`, waiting up to `wait_s` for the first, and whether no more will come."""
    events = wiring.state.events
    batch = events.read(session_id, turn_id, after, wait_s)
    if batch:
        return batch, batch[-1].is_final
    if not events.known(session_id, turn_id):
        return [], has_ended(wiring, turn_id)
    if not events.is_out(session_id, turn_id):
        return [], False
    # The event may have arrived between the two reads.
    return events.read(session_id, turn_id, after, 0), True
