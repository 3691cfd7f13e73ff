"""A turn as bars over time. Instants are ms since the turn was accepted."""

from __future__ import annotations

from typing import Literal

from brainq.contracts.base import Wire
from brainq.contracts.effect import Effect
from brainq.contracts.status import Ending, StopReason

BarKind = Literal[
    "queued",
    "step",
    "call",
    "parked",
    "hold",
    "input",
    "cancelling",
    "reflection",
    "compaction",
    "finalizer",
]
SpanKind = Literal["attempt", "retry", "planned", "waiting", "parked", "dispatched", "running"]


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

    source         `events` while Redis has the turn, then `sql`, which knows less (docs/events.md says what)
    began_at_ms    what all instants count from, as Redis' clock had it; of `sql` as the database's clock had it
    seq            the number of the last event that is in it; 0: none. The bars go on from the events above it
    state          queued, active, parked, closing, or the ending; `accepted` where Redis does not know the turn yet
    now_ms         when the last event that is in it was; of a timeline that was read, when that was
    idle_since_ms  since when the coordinator could go on, as far as it is told
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
