"""The fold of a turn's numbered events into its timeline: `fold(fold(NOTHING, first), rest) == fold(NOTHING, all)`.

Pure.

docs/guides/events.md states the rules for folds elsewhere, such as in a browser.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from brainq.contracts.event import BarKind, EventKind, SpanKind, Timeline, TimelineBar, TimelineSpan, TurnEvent
from brainq.contracts.status import Effect, Ending, StopReason

EMPTY_TIMELINE = Timeline()
"""The timeline before the first event."""

THINKING_STARTERS = frozenset(
    {
        EventKind.TURN_ACTIVE,
        EventKind.TURN_RESUMED,
        EventKind.STEP_ENDED,
        EventKind.CALL_ENDED,
        EventKind.REFLECTION,
        EventKind.COMPACTION,
    }
)
"""After these events the coordinator can continue. Its work between steps is published only when it is done."""


def fold_timeline(timeline: Timeline, events: Iterable[TurnEvent]) -> Timeline:
    """Return the timeline with these events added. They follow those in the timeline; an event that it already has
    changes nothing."""
    folding = _TimelineFold(timeline)
    for event in events:
        folding.add(event)
    return folding.timeline()


def pool_for_effect(effect: Effect) -> str:
    """Return the pool that runs calls with this effect."""
    return "parallel" if effect is Effect.READ_ONLY else "serial"


class _TimelineFold:
    def __init__(self, start: Timeline) -> None:
        self._start = start
        self._bars = {bar.id: bar for bar in start.bars}
        self._seq = start.seq
        self._began = start.began_at_ms
        self._now = start.now_ms
        self._idle = start.idle_since_ms
        self._state = start.state
        self._ending, self._stop_reason = start.ending, start.stop_reason

    def timeline(self) -> Timeline:
        return Timeline(
            source=self._start.source,
            began_at_ms=self._began,
            seq=self._seq,
            state=self._state,
            ending=self._ending,
            stop_reason=self._stop_reason,
            now_ms=self._now,
            idle_since_ms=self._idle,
            bars=tuple(self._bars.values()),
        )

    def add(self, event: TurnEvent) -> None:
        if event.seq <= self._seq:
            return
        if not self._seq:
            self._began = event.at_ms
        self._seq = event.seq
        # Redis' clock may step back, but a bar may not.
        self._now = max(self._now, event.at_ms - self._began)
        rule = _RULES.get(event.kind)
        if rule is not None:
            rule(self, event.data)
        if event.kind in THINKING_STARTERS:
            self._idle = self._now

    def _open(self, bar_id: str, kind: BarKind, **fields: Any) -> None:
        if bar_id not in self._bars:
            self._bars[bar_id] = TimelineBar.model_validate(
                {"id": bar_id, "kind": kind, "from_ms": self._now, **fields}
            )

    def _change(self, bar_id: str, **fields: Any) -> None:
        if bar_id in self._bars:
            self._bars[bar_id] = self._bars[bar_id].model_copy(update=fields)

    def _close(self, bar_id: str, **fields: Any) -> None:
        bar = self._bars.get(bar_id)
        if bar is not None and bar.to_ms is None:
            self._change(bar_id, to_ms=self._now, spans=self._ended(bar), **fields)

    def _ended(self, bar: TimelineBar) -> tuple[TimelineSpan, ...]:
        """Return the spans of a bar that ends now. No span stays open or ends later, and empty spans are left out."""
        ended: list[TimelineSpan] = []
        for span in bar.spans:
            if span.to_ms is None or span.to_ms > self._now:
                span = span.model_copy(update={"to_ms": self._now})
            if span.to_ms != span.from_ms:
                ended.append(span)
        return tuple(ended)

    def _enter(self, bar_id: str, kind: SpanKind, attempt: int, why: str = "") -> None:
        """End the bar's current span, and begin the next one."""
        bar = self._bars.get(bar_id)
        if bar is not None:
            span = TimelineSpan(kind=kind, from_ms=self._now, attempt=attempt, why=why)
            self._change(bar_id, to_ms=None, spans=(*self._ended(bar), span))

    def _plan(self, data: Mapping[str, Any], step: int) -> None:
        for call in cast("list[dict[str, str]]", data.get("plan") or []):
            effect, bar_id = Effect(call["effect"]), f"call:{call['call']}"
            self._open(
                bar_id,
                "call",
                name=call["tool"],
                step=step,
                call_id=call["call"],
                effect=effect,
                pool=pool_for_effect(effect),
            )
            self._enter(bar_id, "planned", 1)

    def _count(self, kind: BarKind) -> int:
        return sum(bar.kind == kind for bar in self._bars.values())

    def queued(self, data: Mapping[str, Any]) -> None:
        self._state = "queued"
        self._open("queued", "queued")

    def active(self, data: Mapping[str, Any]) -> None:
        self._state = "active"
        self._close("queued")

    def opening(self, data: Mapping[str, Any]) -> None:
        self._plan(data, 0)

    def step_started(self, data: Mapping[str, Any]) -> None:
        bar_id = f"step:{data['step']}"
        self._open(bar_id, "step", name=f"step {data['step']}", step=data["step"], pool="coordinator")
        self._enter(bar_id, "attempt", data["attempt"])

    def step_retried(self, data: Mapping[str, Any]) -> None:
        bar = self._bars.get(f"step:{data['step']}")
        if bar is not None:
            wait = TimelineSpan(
                kind="retry",
                from_ms=self._now,
                to_ms=self._now + int(data["wait_ms"]),
                attempt=data["attempt"],
                why=": ".join(filter(None, (str(data["kind"]), data.get("model")))),
            )
            self._change(bar.id, spans=(*bar.spans, wait))

    def step_ended(self, data: Mapping[str, Any]) -> None:
        self._close(
            f"step:{data['step']}",
            outcome=data.get("problem") or "calls",
            input_tokens=data["input_tokens"],
            output_tokens=data["output_tokens"],
        )
        self._plan(data, data["step"])

    def call_waiting(self, data: Mapping[str, Any]) -> None:
        self._call(data, "waiting")

    def call_parked(self, data: Mapping[str, Any]) -> None:
        self._call(data, "parked", str(data["why"]))

    def call_dispatched(self, data: Mapping[str, Any]) -> None:
        self._call(data, "dispatched")

    def call_running(self, data: Mapping[str, Any]) -> None:
        self._call(data, "running")

    def _call(self, data: Mapping[str, Any], kind: SpanKind, why: str = "") -> None:
        bar = self._bars.get(f"call:{data['call']}")
        if bar is not None:
            known = bar.spans[-1].attempt if bar.spans else 1
            self._enter(bar.id, kind, int(data.get("attempt") or known), why)

    def call_ended(self, data: Mapping[str, Any]) -> None:
        self._close(f"call:{data['call']}", outcome=data["status"], detail=data.get("detail") or "")

    def hold_placed(self, data: Mapping[str, Any]) -> None:
        self._open(f"hold:{data['hold']}", "hold", name=data["reason"] or data["kind"])

    def hold_released(self, data: Mapping[str, Any]) -> None:
        self._close(f"hold:{data['hold']}")

    def input_accepted(self, data: Mapping[str, Any]) -> None:
        self._open(f"input:{data['input']}", "input", name="input")

    def input_consumed(self, data: Mapping[str, Any]) -> None:
        self._close(f"input:{data['input']}", outcome="consumed", step=data["step"])

    def input_bounced(self, data: Mapping[str, Any]) -> None:
        self._close(f"input:{data['input']}", outcome="bounced")

    def turn_parked(self, data: Mapping[str, Any]) -> None:
        self._state = "parked"
        self._open(f"parked:{self._count('parked') + 1}", "parked", name=data["awaits"])

    def turn_resumed(self, data: Mapping[str, Any]) -> None:
        self._state = "active"
        self._close(f"parked:{self._count('parked')}")

    def turn_cancelling(self, data: Mapping[str, Any]) -> None:
        self._open("cancelling", "cancelling", name=data["reason"])

    def reflection(self, data: Mapping[str, Any]) -> None:
        self._beside("reflection", int(data["step"]), data.get("stub") or "")

    def compaction(self, data: Mapping[str, Any]) -> None:
        self._beside("compaction", 0, data.get("method") or "")

    def _beside(self, kind: BarKind, step: int, detail: str) -> None:
        bar_id = f"{kind}:{self._count(kind) + 1}"
        self._open(
            bar_id, kind, name=kind, from_ms=self._idle, to_ms=self._now, step=step, pool="coordinator", detail=detail
        )

    def closing(self, data: Mapping[str, Any]) -> None:
        self._state, self._ending = "closing", Ending(data["ending"])
        self._stop_reason = StopReason(data["stop_reason"])
        for bar in tuple(self._bars.values()):
            is_answer = bar.kind == "step" and self._ending is Ending.COMPLETED
            self._close(bar.id, **({"outcome": "answer"} if is_answer else {}))
        self._open("finalizer", "finalizer", name="until the result is out", pool="finalizer")

    def result(self, data: Mapping[str, Any]) -> None:
        self._state, self._ending = str(data["ending"]), Ending(data["ending"])
        self._stop_reason = StopReason(data["stop_reason"])
        self._close("finalizer", outcome=self._state)


_RULES: dict[EventKind, Callable[[_TimelineFold, Mapping[str, Any]], None]] = {
    EventKind.TURN_QUEUED: _TimelineFold.queued,
    EventKind.TURN_ACTIVE: _TimelineFold.active,
    EventKind.TURN_OPENING: _TimelineFold.opening,
    EventKind.STEP_STARTED: _TimelineFold.step_started,
    EventKind.STEP_RETRIED: _TimelineFold.step_retried,
    EventKind.STEP_ENDED: _TimelineFold.step_ended,
    EventKind.CALL_WAITING: _TimelineFold.call_waiting,
    EventKind.CALL_PARKED: _TimelineFold.call_parked,
    EventKind.CALL_DISPATCHED: _TimelineFold.call_dispatched,
    EventKind.CALL_RUNNING: _TimelineFold.call_running,
    EventKind.CALL_ENDED: _TimelineFold.call_ended,
    EventKind.HOLD_PLACED: _TimelineFold.hold_placed,
    EventKind.HOLD_RELEASED: _TimelineFold.hold_released,
    EventKind.INPUT_ACCEPTED: _TimelineFold.input_accepted,
    EventKind.INPUT_CONSUMED: _TimelineFold.input_consumed,
    EventKind.INPUT_BOUNCED: _TimelineFold.input_bounced,
    EventKind.TURN_PARKED: _TimelineFold.turn_parked,
    EventKind.TURN_RESUMED: _TimelineFold.turn_resumed,
    EventKind.TURN_CANCELLING: _TimelineFold.turn_cancelling,
    EventKind.REFLECTION: _TimelineFold.reflection,
    EventKind.COMPACTION: _TimelineFold.compaction,
    EventKind.TURN_CLOSING: _TimelineFold.closing,
    EventKind.RESULT: _TimelineFold.result,
}
"""The other kinds change no bar."""
