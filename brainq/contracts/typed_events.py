"""The events of a turn as classes, one a kind, with the fields of their `data` as attributes.

    match event:
        case TextDelta():
            print(event.text)
        case CallEnded(tool=tool, status="failed"):
            print(tool, "failed")

This is the one list of the fields that events have. docs/guides/events.md explains them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, Self, TypeAlias, TypeVar, cast, overload

from pydantic import ConfigDict, JsonValue

from brainq.contracts.event import EventKind, TurnEvent

T = TypeVar("T")
Plan: TypeAlias = Sequence[Mapping[str, str]]


class DataField(Generic[T]):
    """A field of an event's `data`.

    default: its value in an event that lacks it, such as one of an older version.
    key: its name in `data`, if the attribute has another one.
    """

    def __init__(self, default: T, key: str = "") -> None:
        self._default = default
        self.key = key

    def __set_name__(self, owner: type, name: str) -> None:
        self.key = self.key or name

    @overload
    def __get__(self, event: None, owner: type) -> Self: ...
    @overload
    def __get__(self, event: TurnEvent, owner: type) -> T: ...
    def __get__(self, event: TurnEvent | None, owner: type) -> Self | T:
        return self if event is None else cast("T", event.data.get(self.key, self._default))


class TypedEvent(TurnEvent):
    """The base class of the events of one kind."""

    model_config = ConfigDict(ignored_types=(DataField,), defer_build=True)
    known_kind: ClassVar[EventKind]

    def __init_subclass__(cls, *, of: EventKind, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.known_kind = of


def _text(key: str = "") -> DataField[str]:
    return DataField("", key)


def _number(default: int = 0) -> DataField[int]:
    return DataField(default)


class TurnQueued(TypedEvent, of=EventKind.TURN_QUEUED):
    """An event of a turn that waits: for `session`, `room` or `brain`, or because its session is `paused`."""

    ahead = _number()
    why = _text()


class TurnActive(TypedEvent, of=EventKind.TURN_ACTIVE):
    """The event of a turn that begins to run."""

    deadline_in_ms = _number()


class TurnOpening(TypedEvent, of=EventKind.TURN_OPENING):
    """The event of reading memory and the context pack."""

    plan = DataField[Plan](())


class StepStarted(TypedEvent, of=EventKind.STEP_STARTED):
    """The begin of a model call. A higher `attempt` replaces the text of the lower."""

    step = _number()
    attempt = _number(1)


class StepRetried(TypedEvent, of=EventKind.STEP_RETRIED):
    """The failure of a model call, which is repeated after `wait_ms`. `failure` is `data["kind"]`."""

    step = _number()
    attempt = _number(1)
    failure = _text("kind")
    wait_ms = _number()
    model = DataField[str | None](None)


class TextDelta(TypedEvent, of=EventKind.TEXT_DELTA):
    """A part of the model's text."""

    step = _number()
    attempt = _number(1)
    text = _text()


class ReasoningDelta(TypedEvent, of=EventKind.REASONING_DELTA):
    """A part of the model's reasoning."""

    step = _number()
    attempt = _number(1)
    text = _text()


class StepEnded(TypedEvent, of=EventKind.STEP_ENDED):
    """The end of a model call whose reply has calls, or could not be used (`problem`)."""

    step = _number()
    calls = _number()
    plan = DataField[Plan](())
    input_tokens = _number()
    output_tokens = _number()
    problem = _text()


class CallWaiting(TypedEvent, of=EventKind.CALL_WAITING):
    """The event of a call that waits for its lanes."""

    call = _text()


class CallDispatched(TypedEvent, of=EventKind.CALL_DISPATCHED):
    """The event of a call that enters a worker's queue."""

    call = _text()
    attempt = _number(1)


class CallRunning(TypedEvent, of=EventKind.CALL_RUNNING):
    """The event of a call that a worker starts."""

    call = _text()
    tool = _text()
    attempt = _number(1)


class CallProgress(TypedEvent, of=EventKind.CALL_PROGRESS):
    """A report of a call's progress."""

    call = _text()
    done = DataField[float](0)
    total = DataField[float | None](None)
    message = _text()


class CallParked(TypedEvent, of=EventKind.CALL_PARKED):
    """The event of a call that waits for somebody. If `why` is `client`, the reader runs `tool` with `arguments`, which
    are JSON text."""

    call = _text()
    why = _text()
    tool = _text()
    arguments = _text()


class CallEnded(TypedEvent, of=EventKind.CALL_ENDED):
    """The end of a call."""

    call = _text()
    tool = _text()
    status = _text()
    latency_ms = _number()
    detail = _text()


class ApprovalRequested(TypedEvent, of=EventKind.APPROVAL_REQUESTED):
    """The event of a call that needs a person's decision."""

    call = _text()
    tool = _text()
    effect = _text()
    reason = _text()
    expires_in_ms = _number()


class ApprovalDecidedEvent(TypedEvent, of=EventKind.APPROVAL_DECIDED):
    """A decision about a call: `approved`, `denied` or `expired`."""

    call = _text()
    decision = _text()
    edited = DataField[bool](False)


class HoldPlaced(TypedEvent, of=EventKind.HOLD_PLACED):
    """The begin of a hold. `hold_kind`, which is `data["kind"]`, is `hold` or `readiness`."""

    hold = _text()
    reason = _text()
    hold_kind = _text("kind")


class HoldReleased(TypedEvent, of=EventKind.HOLD_RELEASED):
    """The end of a hold."""

    hold = _text()


class InputAccepted(TypedEvent, of=EventKind.INPUT_ACCEPTED):
    """The event of input that was sent into the turn."""

    input = _text()


class InputConsumed(TypedEvent, of=EventKind.INPUT_CONSUMED):
    """The event of input that the model reads at this step."""

    input = _text()
    step = _number()


class InputBounced(TypedEvent, of=EventKind.INPUT_BOUNCED):
    """The event of input that became a turn of its own."""

    input = _text()


class TurnParkedEvent(TypedEvent, of=EventKind.TURN_PARKED):
    """The event of a turn that waits for `people`, `outside` or `client`."""

    awaits = _text()


class TurnResumed(TypedEvent, of=EventKind.TURN_RESUMED):
    """The event of a parked turn that continues."""

    parked_ms = _number()


class TurnCancelling(TypedEvent, of=EventKind.TURN_CANCELLING):
    """A request to cancel the turn."""

    reason = _text()


class BudgetUsedUp(TypedEvent, of=EventKind.BUDGET):
    """The event of a budget that is used up: `steps`, `tokens` or `cost`."""

    spent = _text()


class Reflection(TypedEvent, of=EventKind.REFLECTION):
    """A reflection of the model. `stub` is the reason why it had nothing to add."""

    step = _number()
    stub = _text()


class Compaction(TypedEvent, of=EventKind.COMPACTION):
    """The event of older messages that became a summary."""

    dropped = _number()
    method = _text()
    tokens_before = _number()
    tokens_after = _number()


class Notice(TypedEvent, of=EventKind.NOTICE):
    """A notice that the turn's context is nearly full, or that the turn waits for its model's limits."""

    context_full = DataField[int | None](None)
    step = _number()
    waits_for = _text()
    wait_ms = _number()


class TurnDiff(TypedEvent, of=EventKind.TURN_DIFF):
    """The changes that the turn's tools reported, as one unified diff."""

    diff = _text()


class TurnClosing(TypedEvent, of=EventKind.TURN_CLOSING):
    """The event of a turn whose ending is decided."""

    ending = _text()
    stop_reason = _text()


class ResultOut(TypedEvent, of=EventKind.RESULT):
    """The final event: the result is out."""

    ending = _text()
    stop_reason = _text()
    elapsed_ms = _number()


class UnknownEvent(TurnEvent):
    """An event of a kind that only a newer version knows. `kind.value` is its word."""

    model_config = ConfigDict(defer_build=True)


Event: TypeAlias = (
    TurnQueued
    | TurnActive
    | TurnOpening
    | StepStarted
    | StepRetried
    | TextDelta
    | ReasoningDelta
    | StepEnded
    | CallWaiting
    | CallDispatched
    | CallRunning
    | CallProgress
    | CallParked
    | CallEnded
    | ApprovalRequested
    | ApprovalDecidedEvent
    | HoldPlaced
    | HoldReleased
    | InputAccepted
    | InputConsumed
    | InputBounced
    | TurnParkedEvent
    | TurnResumed
    | TurnCancelling
    | BudgetUsedUp
    | Reflection
    | Compaction
    | Notice
    | TurnDiff
    | TurnClosing
    | ResultOut
    | UnknownEvent
)
"""Any event of a turn. Its class, like its `kind`, tells which attributes it has."""

_CLASSES: dict[EventKind, type[TypedEvent]] = {cls.known_kind: cls for cls in TypedEvent.__subclasses__()}
FIELDS: dict[EventKind, tuple[str, ...]] = {
    kind: tuple(field.key for field in vars(cls).values() if isinstance(field, DataField))
    for kind, cls in _CLASSES.items()
}
"""The fields of each kind's `data`."""


def make_event(seq: int, kind: str, at_ms: int, data: dict[str, JsonValue]) -> Event:
    """Return an event as the class of its kind."""
    known = EventKind(kind)
    return cast("Event", _CLASSES.get(known, UnknownEvent)(seq=seq, kind=known, at_ms=at_ms, data=data))
