"""Builds what finds what others lost."""

from __future__ import annotations

from brainq.brain.brains import live_turn_caps
from brainq.finalize.finalizer import TurnFinalizer
from brainq.turn.coordinator import Coordinator
from brainq.upkeep.rescue import Rescuer
from brainq.upkeep.schedules import ScheduleRunner
from brainq.upkeep.sweeper import CapacityKeeper, JudgementDoorbells, ParkExpiry, Sweeper
from brainq.upkeep.walks import Comparer
from brainq.wiring.services import Services, is_unavailable


def make_schedule_runner(parts: Services) -> ScheduleRunner:
    """Begins scheduled turns by Redis' clock."""
    from brainq.broker.timetable import next_ms  # Celery, which whoever sweeps has

    state, store, intake = parts.state, parts.store, parts.people.intake

    def now_ms() -> int:
        seconds, micros = state.redis.time()
        return seconds * 1000 + micros // 1000

    def runs(turn_id: str) -> bool:
        row = store.turns.get(turn_id)
        return row is not None and row.ended_at is None

    return ScheduleRunner(
        rows=store.schedules,
        submit=lambda request: intake.submit(request).turn_id,
        runs=runs,
        next_ms=next_ms,
        now_ms=now_ms,
        is_away=is_unavailable,
    )


def make_sweeper(parts: Services, coordinator: Coordinator, finalizer: TurnFinalizer) -> Sweeper:
    settings, state, store, people = parts.settings, parts.state, parts.store, parts.people
    caps, cap = live_turn_caps(parts.brains)
    capacity = CapacityKeeper(
        capacity=state.room,
        threads=lambda: sum(seen.threads for seen in state.workers.alive() if seen.pool == "coordinator"),
        max_turns=settings.max_live_turns,
        max_turns_a_tenant=settings.max_live_turns_a_tenant,
        own=settings.live_turns_of,
        caps=caps,
        cap=cap,
    )
    return Sweeper(
        every_s=settings.sweep_s,
        index=state.index,
        presence=state.presence,
        lanes=state.lanes,
        rescuer=Rescuer(calls=state.calls, intents=store.calls, max_attempts=settings.max_attempts),
        comparer=Comparer(index=state.index, accepted=store.turns, admission=people.admission),
        judges=JudgementDoorbells(store.judgements, state.finals),
        coordinator=coordinator,
        finalizer=finalizer,
        turns=state.turns,
        auxiliary=state.auxiliary,
        parks=ParkExpiry(calls=state.calls, cancel=state.turns.cancel),
        children=people.children,
        inputs=people.inputs,
        brakes=people.brakes,
        approvals=people.approval_healer,
        schedules=make_schedule_runner(parts),
        capacity=capacity,
    )
