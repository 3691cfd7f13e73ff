"""Print the timeline of `brainq show --timeline`, one line per bar."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from brainq.cli.output import EFFECT_STYLES, STATUS_STYLES, clean, duration, short
from brainq.contracts.event import TimelineBar, TimelineSpan, TurnTimeline

LABEL_WIDTH = 26
AFTER_WIDTH = 32
MIN_WIDTH = 20
MARKS = {"attempt": "█", "running": "█", "retry": "x", "planned": "·", "waiting": "-", "dispatched": "▒", "parked": "░"}
LEGEND = "█ running  ▒ queued  - waiting for its lane  ░ parked  · in a later wave  x after a failure  > not finished"


def print_timeline(console: Console, timeline: TurnTimeline) -> None:
    """Print the bars from left to right, from the turn's acceptance to its end, or to now."""
    whole_ms = max([timeline.now_ms, 1, *(bar.to_ms or bar.from_ms for bar in timeline.bars)])
    room = max(MIN_WIDTH, min(console.width, 160) - LABEL_WIDTH - AFTER_WIDTH - 2)
    console.print(Text(f"{'':<{LABEL_WIDTH}} 0{duration(whole_ms):>{room - 1}}", "dim"), soft_wrap=True)
    for bar in timeline.bars:
        style = EFFECT_STYLES.get(bar.effect.value, "") if bar.effect else "blue" if bar.pool else "dim"
        line = Text(f"{short(bar_label(bar), LABEL_WIDTH):<{LABEL_WIDTH}} ")
        line.append(render_bar(bar, whole_ms, timeline.now_ms, room), style).append(" ")
        took_ms = (timeline.now_ms if bar.to_ms is None else bar.to_ms) - bar.from_ms
        line.append(("" if bar.is_exact else "~") + duration(max(0, took_ms)), "dim")
        if outcome := short(f"{bar.outcome} {bar.detail}".strip(), 22):
            line.append(f" {outcome}", STATUS_STYLES.get(bar.outcome, "dim"))
        console.print(line, soft_wrap=True)
    console.print(Text(LEGEND, "dim"), soft_wrap=True)
    if timeline.source == "sql":
        console.print(
            Text("the turn is no longer in Redis: the times of steps, lanes, holds and reflections are unknown", "dim"),
            soft_wrap=True,
        )


def bar_label(bar: TimelineBar) -> str:
    match bar.kind:
        case "call":
            return f"  {bar.call_id} {clean(bar.name, lines=False)}"
        case "step" | "queued" | "cancelling" | "reflection" | "compaction" | "input":
            return bar.name if bar.kind == "step" else bar.kind
        case "finalizer":
            return "result" if bar.id == "finalizer" else f"  {bar.name}"
        case "parked" | "hold":
            return f"{bar.kind}: {clean(bar.name, lines=False)}"


def render_bar(bar: TimelineBar, whole_ms: int, now_ms: int, room: int) -> str:
    """Draw the bar in `room` characters."""
    cells = [" "] * room

    def at(ms: int) -> int:
        return min(room - 1, ms * room // whole_ms)

    def fill(from_ms: int, to_ms: int | None, mark: str) -> None:
        last = now_ms if to_ms is None else to_ms
        first = at(from_ms)
        for cell in range(first, max(first + 1, at(last) + (last == whole_ms))):
            cells[cell] = mark

    spans = bar.spans or (TimelineSpan(kind="attempt", from_ms=bar.from_ms, to_ms=bar.to_ms),)
    for span in spans:
        fill(span.from_ms, span.to_ms, MARKS[span.kind])
    if bar.to_ms is None:
        cells[at(now_ms)] = ">"
    return "".join(cells)
