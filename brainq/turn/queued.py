"""Why a queued turn has not begun, and what would let it. Pure."""

from __future__ import annotations

from brainq.contracts.queue_place import QueuePlace
from brainq.contracts.session_prefix import BOUNDARY, tenant_of


def why_queued(session_id: str, place: QueuePlace | None) -> str:
    """One sentence without a full stop, such as `queued behind the live turn 01k7x2 of its session`."""
    if place is None:
        return "queued no more; it begins now"
    if place.is_paused:
        why = _paused(session_id, place)
    elif place.live:
        why = _behind(place)
    elif place.brain:
        why = _for_brain(session_id, place)
    elif place.in_line is not None:
        why = _for_room(session_id, place)
    else:
        why = "queued, and nothing is before it: a coordinator's sweeper lets it begin"
    if place.gives_up_ms is None:
        return why
    return f"{why}; it ends unbegun in {span(place.gives_up_ms)}, as its max_wait_s says"


def _paused(session_id: str, place: QueuePlace) -> str:
    since = f" for {span(place.paused_ms)}" if place.paused_ms else ""
    said = f" ({place.paused_why})" if place.paused_why else ""
    held = "it" if place.ahead == 0 else f"it and the {_turns(place.ahead)} before it"
    live = f"; its live turn {place.live} goes on" if place.live else ""
    return (
        f"queued: session {session_id} is paused{since}{said}{live}; "
        f"`brainq resume {session_id}` lets {held} begin"
    )


def _behind(place: QueuePlace) -> str:
    if place.ahead == 0:
        return f"queued behind the live turn {place.live} of its session"
    return f"queued behind {_turns(place.ahead + 1)} of its session, of which {place.live} is live"


def _for_brain(session_id: str, place: QueuePlace) -> str:
    if place.ahead:
        return f"queued behind {_turns(place.ahead)} of its session, the first of which waits for brain {place.brain}"
    tenant = _tenant(session_id)
    before = f"{place.in_line} of {tenant} before it" if place.in_line else f"it is the next of {tenant}"
    return (
        f"queued: {place.brain_live} of {place.brain_cap} turns of brain {place.brain} are live; {before}; "
        "the brain's max_live_turns says how many may be"
    )


def _tenant(session_id: str) -> str:
    name = tenant_of(session_id).removesuffix(BOUNDARY)
    return f"tenant {name}" if name else "the sessions without a tenant"


def _for_room(session_id: str, place: QueuePlace) -> str:
    tenant = _tenant(session_id)
    until, remedy = "queued until the fleet has room", ""
    if place.full == "tenant":
        until = f"queued until fewer turns of {tenant} are live: its share is {place.share}"
        remedy = "; BRAINQ_LIVE_TURNS_OF, or more coordinators, make that more"
    elif place.full:
        remedy = "; more coordinators, or BRAINQ_MAX_LIVE_TURNS, make more"
    ahead = (place.in_line or 0) + place.ahead
    of_priority = f", by its priority {place.priority}" if place.priority != "normal" else ""
    before = f"{ahead} of {tenant} before it" if ahead else f"it is the next of {tenant}"
    return f"{until}; {before}{of_priority}{remedy}"


def _turns(count: int) -> str:
    return f"{count} {'turn' if count == 1 else 'turns'}"


def span(ms: int) -> str:
    """A time as people say it: `3.2 s`, `14 min`, `5 h`, `3 days`."""
    seconds = max(0, ms) / 1000
    if seconds < 120:
        return f"{seconds:.1f} s"
    if seconds < 7_200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3_600:.0f} h" if seconds < 172_800 else f"{seconds / 86_400:.0f} days"
