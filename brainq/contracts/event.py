"""The events of a turn, numbered 1, 2, 3 ... without gaps in one Redis stream, and its timeline, which shows the same
facts as bars over time."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Self

from pydantic import JsonValue

from brainq.contracts.base import Wire
from brainq.contracts.status import Effect, Ending, StopReason

BarKind = Literal[
    "queued", "step", "call", "parked", "hold", "input", "cancelling", "reflection", "compaction", "finalizer"
]
SpanKind = Literal["attempt", "retry", "planned", "waiting", "parked", "dispatched", "running"]


class EventKind(StrEnum):
    """The kind of an event. `brainq.contracts.typed_events` has a class for each, with the fields of its `data`.

    A word that only a newer version knows is a kind, too, which is equal to no member.
    """

    TURN_QUEUED = "turn.queued"
    TURN_ACTIVE = "turn.active"
    TURN_OPENING = "turn.opening"  # memory and the context pack are read
    STEP_STARTED = "step.started"  # a higher attempt replaces the text of the lower
    STEP_RETRIED = "step.retried"  # the model failed, and is called again after the wait
    TEXT_DELTA = "text.delta"
    REASONING_DELTA = "reasoning.delta"  # the model's reasoning, before and between its text
    STEP_ENDED = "step.ended"  # the reply has calls, or could not be used
    CALL_WAITING = "call.waiting"  # for its lanes
    CALL_DISPATCHED = "call.dispatched"
    CALL_RUNNING = "call.running"
    CALL_PROGRESS = "call.progress"  # the newest report of its function, or of its server's task
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
    TURN_CANCELLING = "turn.cancelling"  # a cancel was requested
    BUDGET = "budget"  # a part of it is used up
    REFLECTION = "reflection"
    COMPACTION = "compaction"
    NOTICE = "notice"  # once a turn if its context is nearly full, and each time it waits for its model's limits
    TURN_DIFF = "turn.diff"  # once, before the ending
    TURN_CLOSING = "turn.closing"
    RESULT = "result"  # the one final event, and the last of all

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str):
            return None
        newer = str.__new__(cls, value)
        newer._name_ = newer._value_ = value
        return newer


class TurnEvent(Wire):
    """One event. `data` never holds prompts, arguments or results, except the arguments of a call that the reader runs
    itself. Text and reasoning deltas are the model's words, and a turn's diff is what its tools changed."""

    seq: int
    kind: EventKind
    at_ms: int
    data: dict[str, JsonValue]

    @property
    def is_final(self) -> bool:
        return self.kind is EventKind.RESULT


class TimelineSpan(Wire):
    """A part of a bar. `to_ms` is None while it lasts.

    kind: for a step `attempt`, or `retry` for a wait after the model was unavailable. For a call its state: `planned`
        (for a later wave), `waiting` (for its lanes), `parked`, `dispatched` (in its queue) or `running`.
    attempt: the number of the attempt at the step or the call.
    why: the failure before a `retry`, or what a `parked` call waits for.
    """

    kind: SpanKind
    from_ms: int
    to_ms: int | None = None
    attempt: int = 1
    why: str = ""


class TimelineBar(Wire):
    """A part of a turn that took time. `to_ms` is None while it lasts.

    id: unique in its turn: `step:1`, `call:c1-0`, `parked:1`, `hold:ID`, `input:ID`, `reflection:1`, `compaction:1`,
        `finalizer`, `finalizer:STEP`, `queued`, `cancelling`.
    name: a call's tool, a hold's reason, whom a parked turn waits for, or a finalizer step's name.
    pool: the pool of a step, a call or a finalizer step: coordinator, parallel, serial or finalizer. Empty for other
        bars.
    lanes: the lanes of a call, while Redis still has the turn.
    outcome: the result, once the bar has ended: a call's status; for a step `calls`, `answer`, or what was wrong with
        its reply; for input `consumed` or `bounced`; for the finalizer the ending; for its steps done, failed or dead.
    is_exact: False if its beginning and end were not recorded, so that it lies between known times.
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

    source: `events` while Redis has the turn, then `sql`, which has less (see docs/guides/events.md).
    began_at_ms: the origin of all times, by Redis' clock, or by the database's clock for `sql`.
    seq: the number of the last event in it, or 0. Later events continue the bars.
    state: queued, active, parked, closing, or the ending; `accepted` if Redis does not know the turn yet.
    now_ms: the time of the last event in it, or the time at which the timeline was read.
    idle_since_ms: the time from which the coordinator could have continued the turn, as far as it is known.
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
    """The timeline of a turn, with its ids."""

    turn_id: str
    session_id: str
