"""Where a turn's requests stand in the line for its model's limit."""

from __future__ import annotations

from brainq.contracts.view import TurnView
from brainq.providers.places import Asker

GOES_ON = 0
BEGINS = {"high": 1, "normal": 2, "low": 3}
LONGEST_MS = 86_400_000  # so long after it became active a turn waits for no place any more


def left_line(view: TurnView, did: str) -> str:
    """The line that the turn is done with, as `stands` says it; "" for none. It was rung to ask for its place: now it
    has had it, is over, or was answered by another model. One that waits again, or was lost, stands there still."""
    if not view.stands or did.startswith("waits for ") or did == "lost":
        return ""
    step = int(
        view.stands.rsplit(" ", 2)[-2]
    )  # of its ticket: the session, the turn, the step and what it is for
    return view.stands if step > view.step or view.step == 0 else ""


def asker_of(view: TurnView) -> Asker:
    """What goes on, and what another turn waits for, goes before what has not begun: else that takes the places, and
    nothing is ever done. Its time stands still while it waits: what it has done is not lost because many began at
    once. A turn without a reply so far may wait for its `max_wait_s`, and its time has not begun."""
    request = view.request
    goes_on = view.step > 0 or view.compaction_tried_at > 0 or request.parent is not None
    rank = GOES_ON if goes_on else BEGINS[request.priority]
    since_ms, most_ms = (
        (view.active_at_ms, LONGEST_MS)
        if view.max_wait_ms is None or view.step > 0
        else (view.created_at_ms, view.max_wait_ms)
    )
    may_wait_s = max(0.0, (since_ms + most_ms - view.now_ms) / 1000)
    return Asker(rank, may_wait_s, has_begun=view.step > 0)
