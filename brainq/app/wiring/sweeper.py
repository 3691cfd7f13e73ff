"""Build the sweeper, and list its parts. A new part of the upkeep needs one entry here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brainq.adapters.sql.records import SqlRecords
from brainq.app.wiring.services import configured_webhooks, is_unavailable
from brainq.engine.brain.brains import live_turn_caps
from brainq.engine.people.lost_turns import Arrivals, LostEnds, LostTurns
from brainq.engine.upkeep.due_checks import DueChecks
from brainq.engine.upkeep.lost_calls import Rescuer
from brainq.engine.upkeep.schedules import ScheduleRunner
from brainq.engine.upkeep.sweeper import CapacityPublisher, RowWalk, Sweeper, SweepPart

if TYPE_CHECKING:
    from collections.abc import Callable

    from brainq.adapters.sql.jobs import JobTable
    from brainq.app.wiring.wiring import Wiring

RING_AFTER_S = 1.0  # a job that is due for this long has no doorbell, or its doorbell was lost
RING_AT_ONCE = 100


def make_sweeper(wiring: Wiring) -> Sweeper:
    settings, state, store, people = wiring.settings, wiring.state, wiring.store, wiring.people
    lost_turns = LostTurns(
        state=state.sweeper,
        accepted=store.turns,
        turn_queue=people.turn_queue,
        calls=store.calls,
        patience_s=settings.lease_s,
        ends=LostEnds(state.finals, SqlRecords(store, configured_webhooks(settings)), wiring.turn_brains.redacts),
    )
    checks = DueChecks(
        every_s=settings.sweep_s,
        state=state.sweeper,
        calls=state.calls,
        turns=state.turns,
        rescuer=Rescuer(calls=state.calls, intents=store.calls, max_attempts=settings.max_attempts),
        lost_turns=lost_turns,
        coordinator=wiring.coordinator,
        finalizer=wiring.finalizer,
        children=people.children,
    )
    return Sweeper(
        every_s=settings.sweep_s,
        state=state.sweeper,
        checks=checks,
        comparisons=_comparisons(wiring, lost_turns),
        due_work=_due_work(wiring),
    )


def _comparisons(wiring: Wiring, lost_turns: LostTurns) -> tuple[SweepPart, ...]:
    tenants, people = wiring.tenants, wiring.people
    capacity, arrivals = _capacity(wiring), Arrivals(tenants, lost_turns, people.inputs)
    return (
        SweepPart("keep tombstones", lambda _: tenants.restore()),
        SweepPart("restore operators' stops", lambda _: people.stops.heal()),  # before a lost turn is begun again
        SweepPart("publish the capacity", lambda _: capacity.apply()),
        SweepPart("count what budgets have spent", wiring.budgets.restore),
        SweepPart("queue the turns of tenants that have arrived", lambda _: arrivals.queue()),
        SweepPart("compare SQL with Redis", RowWalk(lost_turns.compare).run),
        SweepPart("restore brakes", RowWalk(people.brakes.heal).run),
        SweepPart("heal inputs", RowWalk(people.inputs.heal).run),
        SweepPart("decide approvals again", RowWalk(people.approval_healer.heal).run),
    )


def _due_work(wiring: Wiring) -> tuple[SweepPart, ...]:
    finals, store, schedules = wiring.state.finals, wiring.store, make_schedule_runner(wiring)
    return (
        SweepPart("ring judges", lambda _: _ring_due(store.judgements, finals.ring_judge)),
        SweepPart("ring finalizer steps", lambda _: _ring_due(store.step_jobs, finals.ring_step)),
        SweepPart("begin scheduled turns", lambda _: schedules.run()),
    )


def _ring_due(jobs: JobTable, ring: Callable[[str, str, str], object]) -> None:
    """Ring for jobs whose doorbell was lost, or whose next try is due."""
    for session_id, turn_id, name in jobs.due(RING_AFTER_S, RING_AT_ONCE):
        ring(session_id, turn_id, name)


def _capacity(wiring: Wiring) -> CapacityPublisher:
    settings, state = wiring.settings, wiring.state
    caps, cap = live_turn_caps(wiring.brains)
    return CapacityPublisher(
        state=state.sweeper,
        threads=lambda: sum(seen.threads for seen in state.workers.alive() if seen.pool == "coordinator"),
        max_turns=settings.max_live_turns,
        max_turns_a_tenant=settings.max_live_turns_a_tenant,
        own=settings.live_turns_of,
        caps=caps,
        cap=cap,
    )


def make_schedule_runner(wiring: Wiring) -> ScheduleRunner:
    """Build what begins scheduled turns by Redis' clock."""
    state, store, intake = wiring.state, wiring.store, wiring.people.intake

    def runs(turn_id: str) -> bool:
        row = store.turns.get(turn_id)
        return row is not None and row.ended_at is None

    return ScheduleRunner(
        rows=store.schedules,
        submit=lambda request: intake.submit(request).turn_id,
        runs=runs,
        next_ms=_next_ms,
        now_ms=state.events.now_ms,
        is_unavailable=is_unavailable,
    )


def _next_ms(timing: str, zone: str, start_ms: int, after_ms: int) -> int | None:
    # Celery's parser costs a fifth of a second to import: only a process that has a schedule loads it.
    from brainq.adapters.celery.schedule_times import next_ms

    return next_ms(timing, zone, start_ms, after_ms)
