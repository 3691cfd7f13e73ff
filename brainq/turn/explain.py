"""What happens next to a turn, and why, in one sentence. Pure: from a snapshot, by the coordinator's own `decide`."""

from __future__ import annotations

from collections.abc import Collection

from brainq.contracts.effect import Effect
from brainq.contracts.snapshot import TurnSnapshot
from brainq.contracts.status import Awaits, TraceStatus, TurnState
from brainq.contracts.trace import ToolTraceEntry
from brainq.turn.decide import Compact, End, Reflect, Think, Wait, decide
from brainq.turn.facts import TurnFacts
from brainq.turn.queued import why_queued

POOL_OF = {
    Effect.READ_ONLY: "parallel",
    Effect.LOCAL_WRITE: "serial",
    Effect.NETWORK: "serial",
    Effect.DESTRUCTIVE: "serial",
}


def explain(
    snapshot: TurnSnapshot,
    *,
    sweep_s: float = 1.0,
    rering_s: float = 5.0,
    alive: Collection[str] | None = None,
) -> str:
    """One sentence without a full stop, such as `waits for c1-0 read_note (running 3.2 s on host-17)`.

    sweep_s, rering_s   the settings of this name: how soon what was lost is found
    alive               the pools that have a worker; None: nobody asked
    """
    needed = [] if alive is None else [pool for pool in _needs(snapshot) if pool not in alive]
    missing = "".join(f"; no {pool} is alive: `brainq worker {pool}` starts one" for pool in needed)
    return _what_next(snapshot, sweep_s, rering_s) + missing


def _what_next(snapshot: TurnSnapshot, sweep_s: float, rering_s: float) -> str:
    match snapshot.state:
        case TurnState.QUEUED:
            return why_queued(snapshot.session_id, snapshot.queue)
        case TurnState.ACTIVE | TurnState.PARKED:
            return _open(snapshot, sweep_s, rering_s)
        case TurnState.CLOSING:
            return f"closing as {_ending(snapshot)}: {_finalizer(snapshot)}"
        case _:
            if snapshot.finalizer_step:
                return f"ended as {_ending(snapshot)} and its result is out; {_finalizer(snapshot)}"
            return f"ended as {_ending(snapshot)}; nothing more happens"


def _needs(snapshot: TurnSnapshot) -> list[str]:
    """The pools without which nothing more happens to it."""
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


def _open(snapshot: TurnSnapshot, sweep_s: float, rering_s: float) -> str:
    decision = decide(_facts(snapshot))
    match decision:
        case Wait():
            return _waits(snapshot)
        case End():
            return f"ends next as {decision.ending.value}, because {decision.why}; {_who(snapshot, sweep_s, rering_s)}"
        case Reflect() | Compact():
            return f"{decision.why}; {_who(snapshot, sweep_s, rering_s)}"
        case Think():
            if not (snapshot.owner and snapshot.lease_remaining_ms > 0):
                return f"{decision.why}; {_who(snapshot, sweep_s, rering_s)}"
            again = f", attempt {snapshot.attempt}" if snapshot.attempt > 1 else ""
            step = decision.why.removesuffix(" is next")
            lease = _seconds(snapshot.lease_remaining_ms)
            return f"{step} is running on coordinator {snapshot.owner}{again} (lease {lease})"


def _who(snapshot: TurnSnapshot, sweep_s: float, rering_s: float) -> str:
    if snapshot.owner and snapshot.lease_remaining_ms > 0:
        return f"coordinator {snapshot.owner} has it (lease {_seconds(snapshot.lease_remaining_ms)})"
    if snapshot.owner:
        return (
            f"the lease of coordinator {snapshot.owner} ran out, another one is called within {sweep_s:g} s"
        )
    if snapshot.waits_ms:
        return f"it waits for {snapshot.waits_for}, for {_seconds(snapshot.waits_ms)} more"
    return f"a coordinator is called, and called again after {rering_s:g} s if that message was lost"


def _waits(snapshot: TurnSnapshot) -> str:
    if snapshot.awaits not in (Awaits.CALLS, Awaits.PEOPLE, Awaits.OUTSIDE, Awaits.CLIENT):
        return f"waits for {snapshot.awaits}"
    open_calls = [
        entry for entry in snapshot.trace if not entry.status.is_settled and entry.step == snapshot.step
    ]
    now = [_call(entry, snapshot.now_ms) for entry in open_calls if entry.status is not TraceStatus.PLANNED]
    later = [entry.call_id for entry in open_calls if entry.status is TraceStatus.PLANNED]
    waits = f"waits for {', '.join(now)}" if now else "waits for its next calls"
    return f"{waits}; then {', '.join(later)}" if later else waits


_PARKED = {
    "approval": "a person's approval of",
    "hold": "a hold to be released, before",
    "outside": "the outside result of",
    "child": "the child turn of",
    "client": "the client's result of",
}


def _call(entry: ToolTraceEntry, now_ms: int) -> str:
    match entry.status:
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
    """What is known of the turn from outside."""
    return TurnFacts(
        awaits=snapshot.awaits,
        remaining_ms=round(snapshot.budget.remaining_s * 1000),
        step=snapshot.step,
        steps_max=snapshot.budget.steps_max,
        cancel=snapshot.cancel_requested,
    )
