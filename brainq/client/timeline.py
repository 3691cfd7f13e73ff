"""A turn's timeline: folded from its events while Redis has them, and put together from SQL later."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from brainq.adapters.sql.store import Store
from brainq.app.wiring.state import RedisState
from brainq.contracts.call import ToolTraceEntry
from brainq.contracts.event import Timeline, TimelineBar, TimelineSpan, TurnEvent, TurnTimeline
from brainq.contracts.model import Spend
from brainq.contracts.people import Approval
from brainq.contracts.rows import InputRow, StepRow, TurnRow
from brainq.engine.turn.timeline_fold import EMPTY_TIMELINE, fold_timeline, pool_for_effect


def read_timeline(store: Store, state: RedisState | None, row: TurnRow, events: Sequence[TurnEvent]) -> TurnTimeline:
    """Read a turn's timeline. `events` are all that Redis has of the turn; `state` is None while Redis is away."""
    turn_id = row.turn_id
    if state is not None and events and events[0].seq == 1:
        live = fold_timeline(EMPTY_TIMELINE, events)
        if not events[-1].is_final:
            now_ms = state.events.now_ms() - live.began_at_ms
            live = live.model_copy(update={"now_ms": max(live.now_ms, now_ms)})
        timeline = with_lanes(live, state.calls.trace(row.session_id, turn_id))
    else:
        timeline = timeline_from_sql(
            row,
            store.turn_lists.steps_of(turn_id),
            store.traces.of_turn(turn_id),
            store.spends.of_turn(turn_id),
            store.approvals.of_turn(turn_id),
            store.inputs.of_turn(turn_id),
        )
    bars = (*timeline.bars, *finalizer_bars(row, timeline, store.steps.of_turn(turn_id)))
    of_turn = {"turn_id": turn_id, "session_id": row.session_id, "bars": bars}
    return TurnTimeline.model_validate({**dict(timeline), **of_turn})


def with_lanes(timeline: Timeline, trace: Iterable[ToolTraceEntry]) -> Timeline:
    """Add the lanes of calls, which the trace has and events do not. Pure."""
    lanes = {f"call:{entry.call_id}": entry.lanes for entry in trace}
    bars = tuple(bar.model_copy(update={"lanes": lanes[bar.id]}) if lanes.get(bar.id) else bar for bar in timeline.bars)
    return timeline.model_copy(update={"bars": bars})


def timeline_from_sql(
    row: TurnRow,
    steps: int,
    trace: Sequence[ToolTraceEntry],
    spends: Sequence[Spend],
    approvals: Sequence[Approval],
    inputs: Sequence[InputRow],
) -> Timeline:
    """Return the timeline of a turn by SQL's rows. `steps` is the number of steps. Pure."""
    began = _ms(row.accepted_at)
    approval_of = {approval.call_id: approval for approval in approvals}
    calls = [_call_bar(entry, approval_of.get(entry.call_id), began) for entry in trace]
    ended_ms = 0 if row.ended_at is None else max(0, _ms(row.ended_at) - began)
    bars = [*_step_bars(steps, calls, spends, ended_ms), *calls]
    for sent in inputs:
        to_ms = None if sent.settled_at is None else max(0, _ms(sent.settled_at) - began)
        bars.append(
            TimelineBar(
                id=f"input:{sent.client_message_id}",
                kind="input",
                name="input",
                from_ms=max(0, _ms(sent.accepted_at) - began),
                to_ms=to_ms,
                step=sent.step or 0,
                outcome="" if sent.state == "accepted" else sent.state,
                is_exact=False,
            )
        )
    return Timeline(
        source="sql",
        began_at_ms=began,
        state=row.state,
        ending=row.ending,
        stop_reason=row.stop_reason,
        now_ms=ended_ms,
        bars=tuple(sorted(bars, key=lambda bar: bar.from_ms)),
    )


def finalizer_bars(row: TurnRow, timeline: Timeline, steps: Sequence[StepRow]) -> list[TimelineBar]:
    """Return the bars of the finalizer's steps that wrote to SQL or failed, in their order. Steps run one after
    another, so each begins at the end of the one before it. Pure."""
    before = next((bar.from_ms for bar in timeline.bars if bar.id == "finalizer"), timeline.now_ms)
    began, bars = _ms(row.accepted_at), list[TimelineBar]()
    for step in steps:
        to_ms = max(before, _ms(step.updated_at) - began)
        bars.append(
            TimelineBar(
                id=f"finalizer:{step.step}",
                kind="finalizer",
                name=step.step,
                from_ms=before,
                to_ms=None if step.state == "failed" else to_ms,
                pool="finalizer",
                outcome=step.state,
                detail="" if step.tries == 1 else f"{step.tries} tries",
                is_exact=False,
            )
        )
        before = to_ms
    return bars


def _call_bar(entry: ToolTraceEntry, approval: Approval | None, began: int) -> TimelineBar:
    def since(at_ms: int) -> int:
        return max(0, at_ms - began)

    spans: list[TimelineSpan] = []
    ended = since(entry.ended_at_ms) if entry.ended_at_ms else None
    if approval is not None:
        over = approval.decided_at or approval.expires_at
        until = since(entry.ended_at_ms) if entry.ended_at_ms else since(_ms(over))
        spans.append(
            TimelineSpan(
                kind="parked",
                from_ms=since(_ms(approval.created_at)),
                to_ms=max(since(_ms(approval.created_at)), min(until, since(_ms(over)))),
                why="approval",
            )
        )
    if entry.dispatched_at_ms:
        to_ms = since(entry.started_at_ms) if entry.started_at_ms else ended
        spans.append(
            TimelineSpan(kind="dispatched", from_ms=since(entry.dispatched_at_ms), to_ms=to_ms, attempt=entry.attempt)
        )
    if entry.started_at_ms:
        spans.append(
            TimelineSpan(kind="running", from_ms=since(entry.started_at_ms), to_ms=ended, attempt=entry.attempt)
        )
    return TimelineBar(
        id=f"call:{entry.call_id}",
        kind="call",
        name=entry.tool,
        from_ms=spans[0].from_ms if spans else ended or 0,
        to_ms=ended,
        step=entry.step,
        call_id=entry.call_id,
        effect=entry.effect,
        pool=pool_for_effect(entry.effect),
        outcome=entry.status.value if entry.status.is_settled else "",
        detail=entry.detail,
        spans=tuple(span for span in spans if span.to_ms != span.from_ms),
    )


def _step_bars(steps: int, calls: Sequence[TimelineBar], spends: Sequence[Spend], ended_ms: int) -> list[TimelineBar]:
    """Estimate when a step began, which is not recorded: after the last earlier call and before its own first call."""
    bars: list[TimelineBar] = []
    before = max((bar.to_ms or bar.from_ms for bar in calls if bar.step == 0), default=0)
    for step in range(1, steps + 1):
        own = [bar for bar in calls if bar.step == step]
        used = [spend for spend in spends if spend.kind == "step" and spend.step == step]
        to_ms = max(before, min((bar.from_ms for bar in own), default=before if step < steps else ended_ms))
        bars.append(
            TimelineBar(
                id=f"step:{step}",
                kind="step",
                name=f"step {step}",
                from_ms=before,
                to_ms=to_ms,
                step=step,
                pool="coordinator",
                outcome="calls" if own else "",
                input_tokens=sum(spend.input_tokens for spend in used),
                output_tokens=sum(spend.output_tokens for spend in used),
                is_exact=False,
            )
        )
        before = max([to_ms, *(bar.to_ms or bar.from_ms for bar in own)])
    return bars


def _ms(instant: datetime) -> int:
    return round(instant.timestamp() * 1000)
