"""Events of a turn: one Redis Stream, numbered 1, 2, 3 ... without gaps; and its timeline, the same as bars
over time.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import JsonValue

from brainq.contracts.base import Wire
from brainq.contracts.status import Effect, Ending, StopReason

BarKind = Literal[
    "queued", "step", "call", "parked", "hold", "input", "cancelling", "reflection", "compaction", "finalizer"
]
SpanKind = Literal["attempt", "retry", "planned", "waiting", "parked", "dispatched", "running"]


class EventKind(StrEnum):
    """What an event tells; `FIELDS` says what its `data` holds."""

    TURN_QUEUED = "turn.queued"
    TURN_ACTIVE = "turn.active"
    TURN_OPENING = "turn.opening"  # memory and the context pack are read
    STEP_STARTED = "step.started"  # a higher attempt replaces the text of the lower
    STEP_RETRIED = "step.retried"  # the model failed, and is asked again after the wait
    TEXT_DELTA = "text.delta"
    REASONING_DELTA = "reasoning.delta"  # what the model thinks, before and between its text
    STEP_ENDED = "step.ended"  # the reply asks for calls, or could not be acted on
    CALL_WAITING = "call.waiting"  # for its lanes
    CALL_DISPATCHED = "call.dispatched"
    CALL_RUNNING = "call.running"
    CALL_PROGRESS = "call.progress"  # the newest of what its function, or its server's task, says
    CALL_PARKED = "call.parked"
    CALL_ENDED = "call.ended"
    APPROVAL_REQUESTED = "approval.requested"
    APPROVAL_DECIDED = "approval.decided"
    HOLD_PLACED = "hold.placed"
    HOLD_RELEASED = "hold.released"
    INPUT_ACCEPTED = "input.accepted"
    INPUT_CONSUMED = "input.consumed"
    INPUT_BOUNCED = "input.bounced"
    TURN_PARKED = "turn.parked"  # the deadline does not run
    TURN_RESUMED = "turn.resumed"
    TURN_CANCELLING = "turn.cancelling"  # a cancel was asked for
    BUDGET = "budget"  # something of it is used up
    REFLECTION = "reflection"
    COMPACTION = "compaction"
    NOTICE = "notice"  # once a turn: its context is nearly full; and each time it waits for its model's limits
    TURN_DIFF = "turn.diff"  # once, before the ending
    TURN_CLOSING = "turn.closing"
    RESULT = "result"  # the one final event; after it nothing comes


FIELDS: dict[EventKind, tuple[str, ...]] = {
    EventKind.TURN_QUEUED: ("ahead", "why"),
    EventKind.TURN_ACTIVE: ("deadline_in_ms",),
    EventKind.TURN_OPENING: ("plan",),
    EventKind.STEP_STARTED: ("step", "attempt"),
    EventKind.STEP_RETRIED: ("step", "attempt", "kind", "wait_ms", "model"),
    EventKind.TEXT_DELTA: ("step", "attempt", "text"),
    EventKind.REASONING_DELTA: ("step", "attempt", "text"),
    EventKind.STEP_ENDED: ("step", "calls", "plan", "input_tokens", "output_tokens", "problem"),
    EventKind.CALL_WAITING: ("call",),
    EventKind.CALL_DISPATCHED: ("call", "attempt"),
    EventKind.CALL_RUNNING: ("call", "tool", "attempt"),
    EventKind.CALL_PROGRESS: ("call", "done", "total", "message"),
    EventKind.CALL_PARKED: ("call", "why", "tool", "arguments"),
    EventKind.CALL_ENDED: ("call", "tool", "status", "latency_ms", "detail"),
    EventKind.APPROVAL_REQUESTED: ("call", "tool", "effect", "reason", "expires_in_ms"),
    EventKind.APPROVAL_DECIDED: ("call", "decision", "edited"),
    EventKind.HOLD_PLACED: ("hold", "reason", "kind"),
    EventKind.HOLD_RELEASED: ("hold",),
    EventKind.INPUT_ACCEPTED: ("input",),
    EventKind.INPUT_CONSUMED: ("input", "step"),
    EventKind.INPUT_BOUNCED: ("input",),
    EventKind.TURN_PARKED: ("awaits",),
    EventKind.TURN_RESUMED: ("parked_ms",),
    EventKind.TURN_CANCELLING: ("reason",),
    EventKind.BUDGET: ("spent",),
    EventKind.REFLECTION: ("step", "stub"),
    EventKind.COMPACTION: ("dropped", "method", "tokens_before", "tokens_after"),
    EventKind.NOTICE: ("context_full", "step", "waits_for", "wait_ms"),
    EventKind.TURN_DIFF: ("diff",),
    EventKind.TURN_CLOSING: ("ending", "stop_reason"),
    EventKind.RESULT: ("ending", "stop_reason", "elapsed_ms"),
}
"""The fields of each kind's `data`; docs/guides/events.md says what they mean."""


class TurnEvent(Wire):
    """One event. `data` never holds prompts, arguments or results, but for the arguments of a call that the reader is
    to run itself; text and reasoning deltas are the model's words, and a turn's diff is what its tools changed."""

    seq: int
    kind: EventKind
    at_ms: int
    data: dict[str, JsonValue]

    @property
    def is_final(self) -> bool:
        return self.kind is EventKind.RESULT


class TimelineSpan(Wire):
    """A part of a bar. `to_ms` is None while it lasts.

    kind      of a step: `attempt`, and in it `retry`, a wait after the model could not be had; of a call what it was:
              `planned` (for a later wave), `waiting` (for its lanes), `parked`, `dispatched` (in its queue), `running`
    attempt   of the step or the call
    why       of `retry` what went wrong; of `parked` what is waited for
    """

    kind: SpanKind
    from_ms: int
    to_ms: int | None = None
    attempt: int = 1
    why: str = ""


class TimelineBar(Wire):
    """Something that took time. `to_ms` is None while it lasts.

    id        unique in its turn: `step:1`, `call:c1-0`, `parked:1`, `hold:ID`, `input:ID`, `reflection:1`,
              `compaction:1`, `finalizer`, `finalizer:STEP`, `queued`, `cancelling`
    name      a call's tool, a hold's reason, whom a parked turn waits for, a finalizer step's name
    pool      of a step, a call, a finalizer step: coordinator, parallel, serial, finalizer; empty for no pool
    lanes     of a call, as far as Redis still has the turn
    outcome   once it is over: a call's status; of a step `calls`, `answer`, or what was wrong with its reply; of
              input `consumed` or `bounced`; of the finalizer the ending; of its steps done, failed or dead
    is_exact  False: nobody wrote down when it began and ended; it lies between what is known
    """

    id: str
    kind: BarKind
    name: str = ""
    from_ms: int
    to_ms: int | None = None
    step: int = 0
    call_id: str = ""
    effect: Effect | None = None
    pool: str = ""
    lanes: tuple[str, ...] = ()
    outcome: str = ""
    detail: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    is_exact: bool = True
    spans: tuple[TimelineSpan, ...] = ()


class Timeline(Wire):
    """A turn's bars, in the order they began.

    source         `events` while Redis has the turn, then `sql`, which knows less (docs/guides/events.md says what)
    began_at_ms    what all instants count from, as Redis' clock had it; of `sql` as the database's clock had it
    seq            the number of the last event that is in it; 0: none. The bars go on from the events above it
    state          queued, active, parked, closing, or the ending; `accepted` where Redis does not know the turn yet
    now_ms         when the last event that is in it was; of a timeline that was read, when that was
    idle_since_ms  since when the coordinator could go on, as far as it is known
    """

    source: Literal["events", "sql"] = "events"
    began_at_ms: int = 0
    seq: int = 0
    state: str = "accepted"
    ending: Ending | None = None
    stop_reason: StopReason | None = None
    now_ms: int = 0
    idle_since_ms: int = 0
    bars: tuple[TimelineBar, ...] = ()


class TurnTimeline(Timeline):
    """The timeline of one turn."""

    turn_id: str
    session_id: str
