"""A turn's timeline is a fold: from any number on it comes to the same."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from brainq.client.timeline import finalizer_bars, timeline_from_sql, with_lanes
from brainq.contracts.call import ToolTraceEntry
from brainq.contracts.event import EventKind, Timeline, TimelineBar, TurnEvent
from brainq.contracts.model import Spend
from brainq.contracts.people import Approval
from brainq.contracts.rows import InputRow, StepRow, TurnRow
from brainq.contracts.status import Effect, Ending, StopReason, TraceStatus
from brainq.engine.turn.timeline_fold import EMPTY_TIMELINE, fold_timeline

BEGAN = 1_700_000_000_000
PLAN = [
    {"call": "c1-0", "tool": "look", "effect": "read_only"},
    {"call": "c1-1", "tool": "save", "effect": "local_write"},
]
# (ms since the first, kind, data)
STORY: list[tuple[int, str, dict[str, Any]]] = [
    (0, "turn.queued", {"ahead": 1}),
    (50, "turn.active", {"deadline_in_ms": 1000}),
    (60, "turn.opening", {"plan": [{"call": "c0-0", "tool": "memory", "effect": "read_only"}]}),
    (60, "call.dispatched", {"call": "c0-0", "attempt": 1}),
    (70, "call.running", {"call": "c0-0", "tool": "memory", "attempt": 1}),
    (80, "call.ended", {"call": "c0-0", "tool": "memory", "status": "completed", "latency_ms": 10, "detail": ""}),
    (100, "step.started", {"step": 1, "attempt": 1}),
    (110, "step.retried", {"step": 1, "attempt": 1, "kind": "server", "wait_ms": 40}),
    (160, "text.delta", {"step": 1, "attempt": 1, "text": "Let me"}),
    (170, "step.started", {"step": 1, "attempt": 2}),
    (200, "step.ended", {"step": 1, "calls": 2, "plan": PLAN, "input_tokens": 10, "output_tokens": 3}),
    (200, "call.dispatched", {"call": "c1-0", "attempt": 1}),
    (210, "call.running", {"call": "c1-0", "tool": "look", "attempt": 1}),
    (230, "call.dispatched", {"call": "c1-0", "attempt": 2}),
    (240, "call.running", {"call": "c1-0", "tool": "look", "attempt": 2}),
    (250, "input.accepted", {"input": "m1"}),
    (260, "call.ended", {"call": "c1-0", "tool": "look", "status": "failed", "latency_ms": 20, "detail": "boom"}),
    (260, "call.parked", {"call": "c1-1", "why": "approval"}),
    (260, "turn.parked", {"awaits": "people"}),
    (500, "turn.resumed", {"parked_ms": 240}),
    (500, "hold.placed", {"hold": "h1", "reason": "", "kind": "readiness"}),
    (500, "call.waiting", {"call": "c1-1"}),
    (520, "hold.released", {"hold": "h1"}),
    (520, "call.dispatched", {"call": "c1-1", "attempt": 1}),
    (530, "call.running", {"call": "c1-1", "tool": "save", "attempt": 1}),
    (600, "call.ended", {"call": "c1-1", "tool": "save", "status": "completed", "latency_ms": 70, "detail": ""}),
    (650, "reflection", {"step": 1}),
    (660, "compaction", {"dropped": 3, "method": "rules", "tokens_before": 9, "tokens_after": 4}),
    (670, "step.started", {"step": 2, "attempt": 1}),
    (670, "input.consumed", {"input": "m1", "step": 2}),
    (700, "hold.placed", {"hold": "h2", "reason": "look", "kind": "hold"}),
    (690, "notice", {"context_full": 80, "step": 2}),
    (800, "turn.closing", {"ending": "completed", "stop_reason": "answered"}),
    (820, "result", {"ending": "completed", "stop_reason": "answered", "elapsed_ms": 750}),
]
EVENTS = [
    TurnEvent(seq=number, kind=EventKind(kind), at_ms=BEGAN + at, data=data)
    for number, (at, kind, data) in enumerate(STORY, 1)
]
WHOLE = fold_timeline(EMPTY_TIMELINE, EVENTS)


def bar(timeline: Timeline, bar_id: str) -> TimelineBar:
    (found,) = [bar for bar in timeline.bars if bar.id == bar_id]
    return found


def spans(timeline: Timeline, bar_id: str) -> list[tuple[object, ...]]:
    return [(span.kind, span.from_ms, span.to_ms, span.attempt, span.why) for span in bar(timeline, bar_id).spans]


@given(st.lists(st.integers(0, len(EVENTS)), max_size=4), st.integers(0, 5))
def test_resuming_at_any_number_comes_to_the_same(cuts: list[int], again: int) -> None:
    timeline, before = EMPTY_TIMELINE, 0
    for cut in [*sorted(cuts), len(EVENTS)]:
        # Some events come twice.
        timeline = fold_timeline(timeline, EVENTS[max(0, before - again) : cut])
        timeline = Timeline.model_validate_json(timeline.model_dump_json())
        before = cut
    assert timeline == WHOLE


@given(st.integers(1, len(EVENTS)))
def test_what_goes_on_is_open_and_nothing_else(number: int) -> None:
    timeline = fold_timeline(EMPTY_TIMELINE, EVENTS[:number])
    assert timeline.seq == number
    for each in timeline.bars:
        assert each.to_ms is None or each.from_ms <= each.to_ms <= timeline.now_ms
        open_spans = [span for span in each.spans if span.to_ms is None]
        assert len(open_spans) == (each.to_ms is None and each.kind in ("step", "call"))
        assert not (open_spans and each.spans[-1].kind != "retry" and open_spans[-1] is not each.spans[-1])


def test_a_step_has_its_attempts_and_retries() -> None:
    assert spans(WHOLE, "step:1") == [
        ("attempt", 100, 170, 1, ""),
        ("retry", 110, 150, 1, "server"),
        ("attempt", 170, 200, 2, ""),
    ]
    first, last = bar(WHOLE, "step:1"), bar(WHOLE, "step:2")
    assert (first.outcome, first.input_tokens, first.output_tokens, first.pool) == ("calls", 10, 3, "coordinator")
    assert (last.from_ms, last.to_ms, last.outcome) == (670, 800, "answer")


def test_a_call_has_what_it_waited_for() -> None:
    assert spans(WHOLE, "call:c1-0") == [
        ("dispatched", 200, 210, 1, ""),
        ("running", 210, 230, 1, ""),
        ("dispatched", 230, 240, 2, ""),
        ("running", 240, 260, 2, ""),
    ]
    assert spans(WHOLE, "call:c1-1") == [
        ("planned", 200, 260, 1, ""),
        ("parked", 260, 500, 1, "approval"),
        ("waiting", 500, 520, 1, ""),
        ("dispatched", 520, 530, 1, ""),
        ("running", 530, 600, 1, ""),
    ]
    read, write = bar(WHOLE, "call:c1-0"), bar(WHOLE, "call:c1-1")
    assert (read.outcome, read.detail, read.pool, read.step) == ("failed", "boom", "parallel", 1)
    assert (write.pool, write.effect, write.name) == ("serial", Effect.LOCAL_WRITE, "save")


def test_waits_and_what_was_done_beside_the_steps() -> None:
    told = {each.id: (each.from_ms, each.to_ms, each.name, each.outcome) for each in WHOLE.bars}
    assert told["queued"] == (0, 50, "", "")
    assert told["parked:1"] == (260, 500, "people", "")
    assert told["hold:h1"] == (500, 520, "readiness", "")
    assert told["hold:h2"] == (700, 800, "look", "")
    assert told["input:m1"] == (250, 670, "input", "consumed")
    assert told["reflection:1"] == (600, 650, "reflection", "")
    assert told["compaction:1"] == (650, 660, "compaction", "")
    assert told["finalizer"] == (800, 820, "until the result is out", "completed")
    assert (WHOLE.state, WHOLE.ending, WHOLE.stop_reason) == ("completed", Ending.COMPLETED, StopReason.ANSWERED)
    assert (WHOLE.began_at_ms, WHOLE.now_ms) == (BEGAN, 820)


def test_a_retry_that_was_not_waited_out_ends_with_its_step() -> None:
    kinds = ("turn.active", "step.started", "step.retried", "turn.closing")
    data: list[dict[str, Any]] = [
        {},
        {"step": 1, "attempt": 1},
        {"step": 1, "attempt": 1, "kind": "server", "wait_ms": 9000},
        {"ending": "cancelled", "stop_reason": "cancelled"},
    ]
    events = [
        TurnEvent(seq=number + 1, kind=EventKind(kind), at_ms=BEGAN + 10 * number, data=data[number])
        for number, kind in enumerate(kinds)
    ]
    ended = fold_timeline(EMPTY_TIMELINE, events)
    assert spans(ended, "step:1") == [("attempt", 10, 30, 1, ""), ("retry", 20, 30, 1, "server")]
    assert bar(ended, "step:1").outcome == ""


def test_lanes_come_from_the_trace() -> None:
    entry = trace("c1-1", lanes=("session:s1",))
    assert bar(with_lanes(WHOLE, [entry]), "call:c1-1").lanes == ("session:s1",)
    assert bar(with_lanes(WHOLE, [entry]), "call:c1-0").lanes == ()


ACCEPTED = datetime.fromtimestamp(BEGAN / 1000, UTC)
ROW = TurnRow(
    row=1,
    turn_id="turn-1",
    request_key="turn-1",
    session_id="s1",
    state="completed",
    reject_reason=None,
    turn_number=1,
    ending=Ending.COMPLETED,
    stop_reason=StopReason.ANSWERED,
    error=None,
    accepted_at=ACCEPTED,
    ended_at=ACCEPTED + timedelta(milliseconds=900),
)


def trace(call_id: str, at: tuple[int, int, int] = (0, 0, 0), **more: Any) -> ToolTraceEntry:
    values: dict[str, Any] = {"tool": "look", "effect": Effect.READ_ONLY, "status": TraceStatus.COMPLETED, "wave": 1}
    for name, ms in zip(("dispatched_at_ms", "started_at_ms", "ended_at_ms"), at, strict=True):
        values[name] = BEGAN + ms if ms else 0
    return ToolTraceEntry(call_id=call_id, step=int(call_id[1]), **(values | more))


def test_from_sql_alone_steps_lie_between_the_calls() -> None:
    approval = Approval(
        id="turn-1-c1-1",
        turn_id="turn-1",
        session_id="s1",
        call_id="c1-1",
        tool="save",
        effect=Effect.LOCAL_WRITE,
        args_hash="h",
        state="approved",
        created_at=ACCEPTED + timedelta(milliseconds=260),
        expires_at=ACCEPTED + timedelta(hours=1),
        decided_at=ACCEPTED + timedelta(milliseconds=500),
    )
    sent = InputRow(
        1, "s1", "m1", "turn-1", "", None, False, "h", "consumed", 2, None,
        ACCEPTED + timedelta(milliseconds=250), ACCEPTED + timedelta(milliseconds=900),
    )  # fmt: skip
    calls = [
        trace("c0-0", (60, 70, 80)),
        trace("c1-0", (200, 210, 260)),
        trace("c1-1", (520, 530, 600), effect=Effect.LOCAL_WRITE),
        trace("c1-2", (0, 0, 200), status=TraceStatus.DENIED),
    ]
    kept = timeline_from_sql(ROW, 2, calls, [Spend(step=1, input_tokens=10, output_tokens=3)], [approval], [sent])
    told = {each.id: (each.from_ms, each.to_ms, each.outcome, each.is_exact) for each in kept.bars}
    assert told == {
        "call:c0-0": (60, 80, "completed", True),
        "step:1": (80, 200, "calls", False),
        "call:c1-0": (200, 260, "completed", True),
        "call:c1-2": (200, 200, "denied", True),
        "input:m1": (250, 900, "consumed", False),
        "call:c1-1": (260, 600, "completed", True),
        "step:2": (600, 900, "", False),
    }
    assert spans(kept, "call:c1-1") == [
        ("parked", 260, 500, 1, "approval"),
        ("dispatched", 520, 530, 1, ""),
        ("running", 530, 600, 1, ""),
    ]
    assert (kept.source, kept.seq, kept.now_ms, kept.state) == ("sql", 0, 900, "completed")
    assert bar(kept, "step:1").input_tokens == 10


def test_the_finalizers_steps_lie_one_behind_the_other() -> None:
    def step(name: str, state: Any, ms: int, tries: int = 1) -> StepRow:
        return StepRow("turn-1", name, state, tries, None, "k", ACCEPTED + timedelta(milliseconds=ms))

    steps = [step("log", "done", 815), step("memory", "dead", 900, 5), step("learner", "failed", 950, 2)]
    told = [
        (each.id, each.from_ms, each.to_ms, each.outcome, each.detail) for each in finalizer_bars(ROW, WHOLE, steps)
    ]
    assert told == [
        ("finalizer:log", 800, 815, "done", ""),
        ("finalizer:memory", 815, 900, "dead", "5 tries"),
        ("finalizer:learner", 900, None, "failed", "2 tries"),
    ]
