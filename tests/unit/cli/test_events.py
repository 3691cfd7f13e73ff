"""A turn's events as a person reads them."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from brainq.cli.pages.events import EventPrinter
from brainq.contracts.event import EventKind, TurnEvent
from brainq.contracts.status import Effect
from brainq.engine.turn.turn_diff import turn_diff

PLAN = [
    {"call": "c1-0", "tool": "read_note", "effect": "read_only"},
    {"call": "c1-1", "tool": "drop", "effect": "destructive"},
]


def shown(*events: tuple[str, dict[str, Any]], label: str = "", width: int = 200, terminal: bool = False) -> str:
    """What a timeline prints for these events, 100 ms apart."""
    out = StringIO()
    timeline = EventPrinter(Console(file=out, width=width, force_terminal=terminal, color_system=None), label)
    for number, (kind, data) in enumerate(events):
        event = TurnEvent(seq=number + 1, kind=EventKind(kind), at_ms=5000 + number * 100, data=data)
        timeline.show(event)
    timeline.close()
    return out.getvalue()


def delta(text: str, attempt: int = 1) -> tuple[str, dict[str, Any]]:
    return "text.delta", {"step": 1, "attempt": attempt, "text": text}


def test_times_are_relative_to_the_first_event() -> None:
    lines = shown(("turn.queued", {"ahead": 1}), ("turn.active", {"deadline_in_ms": 300_000})).splitlines()
    assert lines[0].split() == ["0.000", "turn", "queued", "behind", "1", "turn", "of", "its", "session"]
    assert lines[1].split()[:3] == ["0.100", "turn", "active"]
    assert lines[1].endswith("deadline in 5 min")
    paused = shown(("turn.queued", {"ahead": 0, "why": "paused"}))
    assert paused.split()[2:] == ["queued", "its", "session", "is", "paused"]


def test_a_call_is_named_by_its_steps_plan() -> None:
    text = shown(
        ("step.ended", {"step": 1, "calls": 2, "plan": PLAN, "input_tokens": 10, "output_tokens": 3}),
        ("call.ended", {"call": "c1-0", "status": "completed", "latency_ms": 1250}),
        ("call.running", {"call": "c1-0", "attempt": 2}),
        ("call.ended", {"call": "c1-1", "status": "denied", "latency_ms": 0, "detail": "duplicate"}),
    )
    asks, ended, running, denied = (line.split() for line in text.splitlines())
    assert asks[3:8] == ["replied", "2", "calls", "1", "read_only"]
    assert ended[1:] == ["c1-0", "completed", "read_note", "read_only", "1.2", "s"]
    assert running[1:] == ["c1-0", "running", "read_note", "read_only", "attempt", "2"]
    assert denied[1:] == ["c1-1", "denied", "drop", "destructive", "duplicate"]


def test_a_reader_that_resumes_names_calls_by_the_trace() -> None:
    out = StringIO()
    timeline = EventPrinter(Console(file=out, width=200))
    timeline.add_known_call("c1-0", "read_note", Effect.READ_ONLY)
    timeline.show(TurnEvent(seq=9, kind=EventKind.CALL_RUNNING, at_ms=1, data={"call": "c1-0", "attempt": 1}))
    assert "read_note" in out.getvalue()


def test_text_streams_inline_and_a_word_split_between_deltas_stays_whole() -> None:
    text = shown(delta("Hello wo"), delta("rld, how "), delta("are you"), ("turn.closing", {"ending": "completed"}))
    assert text.splitlines()[0].strip() == "│ Hello world, how are you"


def test_long_text_wraps_at_words_beside_its_gutter() -> None:
    lines = shown(delta("word " * 40), width=60, terminal=True).splitlines()
    assert len(lines) > 3
    assert all(line.startswith("       │ word") and len(line) < 60 for line in lines)


def test_a_second_attempt_says_that_it_replaces_the_first() -> None:
    text = shown(delta("half an"), ("step.started", {"step": 1, "attempt": 2}), delta("whole", attempt=2))
    first, again, second = text.splitlines()
    assert "half an" in first
    assert again.endswith("attempt 2: its text replaces the text of attempt 1")
    assert "whole" in second


def test_with_a_label_text_waits_until_it_is_whole_and_replaced_text_is_never_shown() -> None:
    text = shown(delta("half an"), ("step.started", {"step": 1, "attempt": 2}), delta("whole", attempt=2), label="A")
    assert "half" not in text
    assert all("A  " in line for line in text.splitlines())
    assert text.splitlines()[-1].endswith("whole")


def test_the_text_of_the_newest_step_is_kept() -> None:
    timeline = EventPrinter(Console(file=StringIO()))
    next_step: tuple[str, dict[str, Any]] = ("step.started", {"step": 2, "attempt": 1})
    for number, (kind, data) in enumerate([delta("first"), next_step, delta("the "), delta("answer")]):
        timeline.show(TurnEvent(seq=number + 1, kind=EventKind(kind), at_ms=0, data=data))
    assert timeline.text == "the answer"


def test_what_the_model_thought_is_shown_apart_and_is_no_answer() -> None:
    timeline = EventPrinter(Console(file=StringIO(), width=60))
    told: list[tuple[str, str]] = [("reasoning.delta", "I "), ("reasoning.delta", "look."), ("text.delta", "It rains.")]
    for number, (kind, text) in enumerate(told):
        data: dict[str, Any] = {"step": 1, "attempt": 1, "text": text}
        timeline.show(TurnEvent(seq=number + 1, kind=EventKind(kind), at_ms=0, data=data))
    assert timeline.text == "It rains."
    thought = ("reasoning.delta", {"step": 1, "attempt": 1, "text": "I look. "})
    text = shown(thought, delta("It rains."), terminal=True)
    assert "I look." in text.splitlines()[0]
    assert "It rains." in text.splitlines()[1]


def test_control_characters_and_markup_of_models_and_tools_are_not_obeyed() -> None:
    plan = [{"call": "c1-0", "tool": "[red]x\x1b[2J", "effect": "network"}]
    text = shown(
        delta("\x1b[2Jgone\x07 [bold]"),
        ("step.ended", {"step": 1, "calls": 1, "plan": plan, "input_tokens": 0, "output_tokens": 0}),
        ("call.running", {"call": "c1-0", "attempt": 1}),
        terminal=True,
    )
    assert "\x1b[2J" not in text
    assert "\x07" not in text
    assert "[bold]" in text
    assert "[red]x" in text


@pytest.mark.parametrize("kind", [kind for kind in EventKind if not kind.endswith(".delta")])
def test_every_kind_of_event_is_one_line(kind: EventKind) -> None:
    data: dict[str, Any] = {"step": 1, "call": "c1-0", "status": "failed", "ahead": 1, "deadline_in_ms": 1}
    data |= {"plan": [], "tokens_before": 2, "tokens_after": 1, "method": "rules", "context_full": 71}
    assert len(shown((kind.value, data)).splitlines()) == 1


def test_a_retry_of_the_model_and_a_tool_known_by_its_event_only() -> None:
    text = shown(
        ("step.retried", {"step": 1, "attempt": 1, "kind": "rate_limit", "wait_ms": 1500}),
        ("call.running", {"call": "c1-0", "tool": "read", "attempt": 1}),
    )
    retried, running = (" ".join(line.split()[1:]) for line in text.splitlines())
    assert retried == "step 1 retry rate_limit next try in 1.5 s"
    assert running == "c1-0 running read"


def test_what_comes_beside_the_steps() -> None:
    plan = [{"call": "c0-0", "tool": "get_context_pack", "effect": "read_only"}]
    text = shown(
        ("turn.opening", {"plan": plan}),
        ("call.ended", {"call": "c0-0", "status": "completed", "latency_ms": 20}),
        ("reflection", {"step": 2, "stub": ""}),
        ("reflection", {"step": 3, "stub": "model"}),
        ("compaction", {"dropped": 9, "method": "rules", "tokens_before": 900, "tokens_after": 400}),
    )
    opens, ended, reflects, stub, compacts = (" ".join(line.split()[1:]) for line in text.splitlines())
    assert opens == "turn opening 1 call before the first step"
    assert ended == "c0-0 completed get_context_pack read_only 20 ms"
    assert reflects == "aux reflection on step 2"
    assert stub == "aux reflection skipped: model"
    assert compacts == "aux compaction 900 to about 400 tokens of context summary by rules"


def said(*events: tuple[str, dict[str, Any]]) -> list[str]:
    """The lines without their times, with single spaces."""
    return [" ".join(line.split()[1:]) for line in shown(*events).splitlines()]


def test_a_call_that_waits_for_a_person() -> None:
    ask = {"call": "c1-1", "tool": "drop", "effect": "destructive", "reason": "drops are looked at"}
    plan = {"step": 1, "calls": 2, "plan": PLAN, "input_tokens": 1, "output_tokens": 1}
    asks, requested, parked, turn, decided, expired, resumed = said(
        ("step.ended", plan),
        ("approval.requested", {**ask, "expires_in_ms": 60_000}),
        ("call.parked", {"call": "c1-1", "why": "approval"}),
        ("turn.parked", {"awaits": "people"}),
        ("approval.decided", {"call": "c1-1", "decision": "approved", "edited": True}),
        ("approval.decided", {"call": "c1-1", "decision": "expired"}),
        ("turn.resumed", {"parked_ms": 90_000}),
    )
    assert asks.startswith("step 1")
    assert (
        requested
        == "c1-1 waiting drop destructive for an approval, see `brainq approvals` within 1 min drops are looked at"
    )
    assert parked == "c1-1 parked drop destructive until a person approves it"
    assert turn == "turn parked waiting for people; the deadline is paused"
    assert decided == "c1-1 approved drop destructive with other arguments"
    assert expired == "c1-1 expired drop destructive"
    assert resumed == "turn resumed after 1 min 30 s parked"


def test_a_call_is_named_by_the_question_that_comes_before_its_plan() -> None:
    ask = {"call": "c1-0", "tool": "drop", "effect": "destructive", "reason": "", "expires_in_ms": 1_000}
    assert said(("approval.requested", ask)) == [
        "c1-0 waiting drop destructive for an approval, see `brainq approvals` within 1.0 s"
    ]


def test_what_a_call_is_parked_for_is_said_in_words() -> None:
    whys = ("hold", "outside", "child", "something new")
    lines = said(*(("call.parked", {"call": "c1-0", "why": why}) for why in whys))
    assert [line.removeprefix("c1-0 parked ") for line in lines] == [
        "until the turn is released",
        "until its result comes from outside",
        "until its child turn has ended",
        "something new",
    ]


def test_holds_inputs_and_a_cancel() -> None:
    assert said(
        ("hold.placed", {"hold": "hold-1", "reason": "look\x1b[2J first", "kind": "hold"}),
        ("hold.placed", {"hold": "flag-1", "reason": "", "kind": "readiness"}),
        ("hold.released", {"hold": "hold-1"}),
        ("input.accepted", {"input": "m1"}),
        ("input.consumed", {"input": "m1", "step": 2}),
        ("input.bounced", {"input": "m2"}),
        ("turn.cancelling", {"reason": "enough"}),
        ("turn.cancelling", {"reason": ""}),
    ) == [
        "hold held hold-1 look\N{REPLACEMENT CHARACTER}[2J first",
        "hold not ready flag-1",
        "hold released hold-1",
        "input accepted m1 the next step reads it",
        "input consumed m1 by step 2",
        "input bounced m2 the input becomes a new turn",
        "turn stopping cancel requested enough",
        "turn stopping cancel requested",
    ]


def test_a_turns_diff_is_counted_not_printed() -> None:
    changes: list[dict[str, str | None]] = [
        {"path": "a.sql", "before": "-- one\n-- two\n", "after": "-- two\n+++ three\n"},
        {"path": "new", "before": None, "after": "diff --git a b\nx\r\n"},
        {"path": "gone", "before": "", "after": None},
        {"path": "big", "too_large": "1"},
    ]
    assert said(("turn.diff", {"diff": turn_diff(changes)})) == ["turn changed 4 files, +3 -1"]
    assert said(("turn.diff", {"diff": turn_diff(changes[:1])})) == ["turn changed 1 file, +1 -1"]
