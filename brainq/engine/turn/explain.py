"""Explains, in one sentence, what happens next to a turn or why it is still queued. Pure: the functions apply the
coordinator's own `decide` to a snapshot."""

from __future__ import annotations

from collections.abc import Collection

from brainq.contracts.call import ToolTraceEntry
from brainq.contracts.ids import PREFIX_BOUNDARY, tenant_of
from brainq.contracts.status import Awaits, Effect, TraceStatus, TurnState
from brainq.contracts.stop import PAUSED_BY
from brainq.contracts.view import QueuePosition, TurnSnapshot
from brainq.engine.turn.decide import Compact, End, Reflect, Think, TurnFacts, Wait, decide

POOL_OF = {
    Effect.READ_ONLY: "parallel",
    Effect.LOCAL_WRITE: "serial",
    Effect.NETWORK: "serial",
    Effect.DESTRUCTIVE: "serial",
}
_PARKED = {
    "approval": "a person's approval of",
    "hold": "a hold to be released, before",
    "outside": "the outside result of",
    "child": "the child turn of",
    "client": "the client's result of",
}
_HOW_LIFTED = "`brainq stops` shows who paused it, and how to lift that"


def why_queued(session_id: str, place: QueuePosition | None) -> str:
    """Return one sentence without a full stop, such as `queued behind the live turn 01k7x2 of its session`."""
    if place is None:
        return "no longer queued; it begins now"
    if place.is_paused:
        why = _behind_pause(session_id, place)
    elif place.live:
        why = _behind_turn(place)
    elif place.brain:
        why = _for_brain_cap(session_id, place)
    elif place.ahead_for_capacity is not None:
        why = _for_capacity(session_id, place)
    else:
        why = "queued, and nothing is before it: a coordinator's sweeper lets it begin"
    if place.gives_up_ms is None:
        return why
    return f"{why}; if it has not begun in {duration_text(place.gives_up_ms)}, it ends (max_wait_s)"


def _behind_pause(session_id: str, place: QueuePosition) -> str:
    since = f" for {duration_text(place.paused_ms)}" if place.paused_ms else ""
    reason = f" ({place.paused_why})" if place.paused_why else ""
    held = "it" if place.ahead == 0 else f"it and the {_turns(place.ahead)} before it"
    live = f"; its live turn {place.live} goes on" if place.live else ""
    return (
        f"queued: session {session_id} is paused{since}{reason}{live}; `brainq resume {session_id}` lets {held} begin"
    )


def _behind_turn(place: QueuePosition) -> str:
    if place.ahead == 0:
        return f"queued behind the live turn {place.live} of its session"
    return f"queued behind {_turns(place.ahead + 1)} of its session, of which {place.live} is live"


def _for_brain_cap(session_id: str, place: QueuePosition) -> str:
    if place.ahead:
        return f"queued behind {_turns(place.ahead)} of its session, the first of which waits for brain {place.brain}"
    tenant = _tenant(session_id)
    before = (
        f"{place.ahead_for_capacity} of {tenant} before it"
        if place.ahead_for_capacity
        else f"it is the next of {tenant}"
    )
    return (
        f"queued: {place.brain_live} of {place.brain_cap} turns of brain {place.brain} are live; {before}; "
        "to allow more, raise the brain's max_live_turns"
    )


def _tenant(session_id: str) -> str:
    name = tenant_of(session_id).removesuffix(PREFIX_BOUNDARY)
    return f"tenant {name}" if name else "the sessions without a tenant"


def _for_capacity(session_id: str, place: QueuePosition) -> str:
    tenant = _tenant(session_id)
    until, remedy = "queued until the fleet has room", ""
    if place.full == "tenant":
        until = f"queued until fewer turns of {tenant} are live: its share is {place.share}"
        remedy = "; to raise it, set BRAINQ_LIVE_TURNS_OF or add coordinators"
    elif place.full:
        remedy = "; to allow more, add coordinators or raise BRAINQ_MAX_LIVE_TURNS"
    ahead = (place.ahead_for_capacity or 0) + place.ahead
    of_priority = f", by its priority {place.priority}" if place.priority != "normal" else ""
    before = f"{ahead} of {tenant} before it" if ahead else f"it is the next of {tenant}"
    return f"{until}; {before}{of_priority}{remedy}"


def _turns(count: int) -> str:
    return f"{count} {'turn' if count == 1 else 'turns'}"


def duration_text(ms: int) -> str:
    """Return a duration for people, such as `3.2 s`, `14 min`, `5 h` or `3 days`."""
    seconds = max(0, ms) / 1000
    if seconds < 120:
        return f"{seconds:.1f} s"
    if seconds < 7_200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3_600:.0f} h" if seconds < 172_800 else f"{seconds / 86_400:.0f} days"


def waits_for_build(build: str) -> str:
    return (
        f"waits for build {build}, to whose brain it is pinned, but no coordinator of it is running; start "
        f"workers of it, or `brainq versions release {build} --to BUILD`"
    )


def explain(
    snapshot: TurnSnapshot, *, sweep_s: float = 1.0, rering_s: float = 5.0, alive: Collection[str] | None = None
) -> str:
    """Return one sentence without a full stop, such as `waits for c1-0 read_note (running 3.2 s on host-17)`.

    sweep_s, rering_s   the settings of these names, which decide how soon lost work is found
    alive               the pools that have a worker; None if that is not known
    """
    needed = [] if alive is None else [pool for pool in _needs(snapshot) if pool not in alive]
    missing = "".join(f"; no {pool} worker is alive: `brainq worker {pool}` starts one" for pool in needed)
    return _what_next(snapshot, sweep_s, rering_s) + missing


def _what_next(snapshot: TurnSnapshot, sweep_s: float, rering_s: float) -> str:
    if snapshot.waits_for_build:
        return waits_for_build(snapshot.waits_for_build)
    match snapshot.state:
        case TurnState.QUEUED:
            return why_queued(snapshot.session_id, snapshot.queue)
        case TurnState.ACTIVE | TurnState.PARKED:
            return _next_of_open_turn(snapshot, sweep_s, rering_s)
        case TurnState.CLOSING:
            return f"closing as {_ending(snapshot)}: {_finalizer(snapshot)}"
        case _:
            if snapshot.finalizer_step:
                return f"ended as {_ending(snapshot)} and its result is out; {_finalizer(snapshot)}"
            return f"ended as {_ending(snapshot)}; nothing more happens"


def _needs(snapshot: TurnSnapshot) -> list[str]:
    """Return the pools without which the turn cannot make progress."""
    match snapshot.state:
        case TurnState.QUEUED:
            return ["coordinator"]
        case TurnState.ACTIVE if snapshot.awaits is Awaits.CALLS:
            waiting = (TraceStatus.DISPATCHED, TraceStatus.WAITING)
            pools = {POOL_OF[entry.effect] for entry in snapshot.trace if entry.status in waiting}
            return ["coordinator", *sorted(pools)]
        case TurnState.ACTIVE:
            return ["coordinator"]
        case TurnState.PARKED:
            return []
        case _:
            return ["finalizer"] if snapshot.finalizer_step else []


def _next_of_open_turn(snapshot: TurnSnapshot, sweep_s: float, rering_s: float) -> str:
    decision = decide(_facts(snapshot))
    match decision:
        case Wait():
            return _waiting_calls(snapshot)
        case End():
            return f"ends next as {decision.ending.value}, because {decision.why}; {_next(snapshot, sweep_s, rering_s)}"
        case Reflect() | Compact():
            return f"{decision.why}; {_next(snapshot, sweep_s, rering_s)}"
        case Think():
            if not (snapshot.owner and snapshot.lease_remaining_ms > 0):
                return f"{decision.why}; {_next(snapshot, sweep_s, rering_s)}"
            again = f", attempt {snapshot.attempt}" if snapshot.attempt > 1 else ""
            step = decision.why.removesuffix(" is next")
            lease = _seconds(snapshot.lease_remaining_ms)
            return f"{step} is running on coordinator {snapshot.owner}{again} (lease {lease})"


def _next(snapshot: TurnSnapshot, sweep_s: float, rering_s: float) -> str:
    if snapshot.owner and snapshot.lease_remaining_ms > 0:
        return f"coordinator {snapshot.owner} has it (lease {_seconds(snapshot.lease_remaining_ms)})"
    if snapshot.owner:
        return f"the lease of coordinator {snapshot.owner} ran out; another one is called within {sweep_s:g} s"
    if snapshot.waits_ms and PAUSED_BY in snapshot.waits_for:
        return f"it waits, because {snapshot.waits_for}; {_HOW_LIFTED}"
    if snapshot.waits_ms:
        return f"it waits for {snapshot.waits_for}, for {_seconds(snapshot.waits_ms)} more"
    return f"a coordinator is called, and called again after {rering_s:g} s if that message was lost"


def _waiting_calls(snapshot: TurnSnapshot) -> str:
    if snapshot.waits_for and snapshot.state is TurnState.PARKED:
        left = duration_text(snapshot.waits_ms)
        until = f"continues when it is raised, or when its next window begins in {left}"
        return f"waits for {snapshot.waits_for}, which is spent: {until}"
    if snapshot.awaits not in (Awaits.CALLS, Awaits.PEOPLE, Awaits.OUTSIDE, Awaits.CLIENT):
        return f"waits for {snapshot.awaits}"
    open_calls = [entry for entry in snapshot.trace if not entry.status.is_settled and entry.step == snapshot.step]
    now = [_call(entry, snapshot.now_ms) for entry in open_calls if entry.status is not TraceStatus.PLANNED]
    later = [entry.call_id for entry in open_calls if entry.status is TraceStatus.PLANNED]
    waits = f"waits for {', '.join(now)}" if now else "waits for its next calls"
    return f"{waits}; then {', '.join(later)}" if later else waits


def _call(entry: ToolTraceEntry, now_ms: int) -> str:
    match entry.status:
        case TraceStatus.PARKED if entry.stop:
            return f"{entry.call_id} {entry.tool}, because {entry.stop} is paused; {_HOW_LIFTED}"
        case TraceStatus.PARKED:
            return f"{_PARKED[entry.park]} {entry.call_id} {entry.tool}"
        case TraceStatus.RUNNING:
            state = f"running {_seconds(now_ms - entry.started_at_ms)} on {entry.owner or 'a worker'}"
        case TraceStatus.DISPATCHED:
            state = f"in its queue for {_seconds(now_ms - entry.dispatched_at_ms)}"
        case TraceStatus.WAITING:
            state = f"waits for the lane {', '.join(entry.lanes)}" if entry.lanes else "waits for its lane"
        case _:
            state = entry.status.value
    return f"{entry.call_id} {entry.tool} ({state})"


def _finalizer(snapshot: TurnSnapshot) -> str:
    if snapshot.finalizer_tries == 0:
        return f"the finalizer is called for its step {snapshot.finalizer_step}"
    return f"the finalizer is at its step {snapshot.finalizer_step}, try {snapshot.finalizer_tries}"


def _ending(snapshot: TurnSnapshot) -> str:
    ending = snapshot.ending.value if snapshot.ending else snapshot.state.value
    reason = snapshot.stop_reason.value if snapshot.stop_reason else ""
    return ending if reason in ("", ending) else f"{ending} ({reason})"


def _seconds(ms: int) -> str:
    return f"{max(0, ms) / 1000:.1f} s"


def _facts(snapshot: TurnSnapshot) -> TurnFacts:
    """Return the facts about the turn that a snapshot shows."""
    return TurnFacts(
        awaits=snapshot.awaits,
        remaining_ms=round(snapshot.budget.remaining_s * 1000),
        step=snapshot.step,
        steps_max=snapshot.budget.steps_max,
        cancel=snapshot.cancel_requested,
    )
