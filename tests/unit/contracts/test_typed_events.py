"""Events as classes: one a kind, with the fields of their data, and one for kinds of a newer version."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from pydantic import ValidationError

from brainq.contracts.event import EventKind, TurnEvent
from brainq.contracts.typed_events import (
    FIELDS,
    CallEnded,
    CallProgress,
    Event,
    HoldPlaced,
    StepRetried,
    TextDelta,
    TypedEvent,
    UnknownEvent,
    make_event,
)


def describe(event: Event) -> str:
    match event:
        case TextDelta(text=text):
            return text
        case CallEnded(tool=tool, status="failed"):
            return f"{tool} failed"
        case UnknownEvent():
            return event.kind.value
        case _:
            return type(event).__name__


@pytest.mark.parametrize("kind", EventKind)
def test_each_kind_has_a_class_of_its_own_in_the_union(kind: EventKind) -> None:
    event = make_event(3, kind.value, 5, {})
    assert type(event) in get_args(Event)
    assert isinstance(event, TypedEvent)
    assert event.kind is event.known_kind is kind
    assert TurnEvent.model_validate_json(event.model_dump_json()).model_dump() == event.model_dump()


def test_the_union_has_every_class_and_no_more() -> None:
    assert {cls.known_kind for cls in get_args(Event) if issubclass(cls, TypedEvent)} == set(EventKind) == set(FIELDS)
    assert len(get_args(Event)) == len(EventKind) + 1


@pytest.mark.parametrize(
    ("kind", "data", "described"),
    [
        ("text.delta", {"text": "Hello", "step": 1, "attempt": 2}, "Hello"),
        ("call.ended", {"tool": "refund", "status": "failed"}, "refund failed"),
        ("call.ended", {"tool": "refund", "status": "completed"}, "CallEnded"),
        ("turn.teleported", {"where": "elsewhere"}, "turn.teleported"),
    ],
)
def test_events_are_matched_by_class_and_field(kind: str, data: dict[str, Any], described: str) -> None:
    assert describe(make_event(1, kind, 5, data)) == described


def test_a_missing_field_has_its_default() -> None:
    progress, text = make_event(1, "call.progress", 5, {"call": "c1-0"}), make_event(2, "text.delta", 5, {})
    assert isinstance(progress, CallProgress)
    assert isinstance(text, TextDelta)
    assert (progress.done, progress.total, progress.message) == (0, None, "")
    assert (text.attempt, text.text) == (1, "")


def test_a_field_named_kind_has_another_name() -> None:
    hold, retry = (
        make_event(1, "hold.placed", 5, {"kind": "readiness"}),
        make_event(1, "step.retried", 5, {"kind": "x"}),
    )
    assert isinstance(hold, HoldPlaced)
    assert isinstance(retry, StepRetried)
    assert (hold.hold_kind, retry.failure) == ("readiness", "x")
    assert "kind" in FIELDS[EventKind.HOLD_PLACED]


def test_a_kind_of_a_newer_version_is_kept_whole() -> None:
    event = make_event(7, "turn.teleported", 5, {"where": "elsewhere"})
    assert isinstance(event, UnknownEvent)
    assert not event.is_final
    assert event.data == {"where": "elsewhere"}
    assert event.kind not in set(EventKind)
    assert '"kind":"turn.teleported"' in event.model_dump_json()


def test_an_event_is_frozen() -> None:
    event = make_event(1, "text.delta", 5, {"text": "a"})
    with pytest.raises(ValidationError):
        event.seq = 2  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
