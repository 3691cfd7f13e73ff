"""A timeline in a terminal."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from brainq.cli.pages.timeline import print_timeline, render_bar
from brainq.contracts.event import TimelineBar, TimelineSpan, TurnTimeline
from brainq.contracts.status import Effect


def span(kind: str, from_ms: int, to_ms: int | None) -> TimelineSpan:
    return TimelineSpan.model_validate({"kind": kind, "from_ms": from_ms, "to_ms": to_ms})


def test_a_bar_is_drawn_to_scale() -> None:
    call = TimelineBar(
        id="call:c1-0",
        kind="call",
        from_ms=100,
        to_ms=400,
        spans=(span("parked", 100, 200), span("dispatched", 200, 250), span("running", 250, 400)),
    )
    assert render_bar(call, 500, 500, 10) == "  ░░▒███  "
    assert render_bar(call.model_copy(update={"to_ms": None}), 400, 400, 8) == "  ░░▒██>"
    assert render_bar(TimelineBar(id="q", kind="queued", from_ms=0, to_ms=0), 500, 500, 5) == "█    "


def test_a_line_says_what_it_is_how_long_it_took_and_how_it_ended() -> None:
    bars = (
        TimelineBar(id="step:1", kind="step", name="step 1", from_ms=0, to_ms=90, pool="coordinator", outcome="calls"),
        TimelineBar(
            id="call:c1-0",
            kind="call",
            name="look\x1b[31m",
            call_id="c1-0",
            from_ms=90,
            effect=Effect.READ_ONLY,
            spans=(span("running", 90, None),),
        ),
        TimelineBar(id="finalizer:memory", kind="finalizer", name="memory", from_ms=90, to_ms=95, is_exact=False),
    )
    out = StringIO()
    timeline = TurnTimeline(turn_id="turn-1", session_id="s1", now_ms=2090, bars=bars)
    print_timeline(Console(file=out, width=120, color_system=None), timeline)
    axis, step, call, final, legend = out.getvalue().splitlines()
    assert axis.split() == ["0", "2.1", "s"]
    assert step.split()[:2] + step.split()[-3:] == ["step", "1", "90", "ms", "calls"]
    assert call.split()[0] == "c1-0"
    assert ">" in call
    assert call.endswith("2.0 s")
    assert "\x1b" not in call
    assert final.split()[-2:] == ["~5", "ms"]
    assert "parked" in legend
