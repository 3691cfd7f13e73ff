"""The fold of A2A: a client that is dropped at every event and subscribes again holds the same whole."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from a2a.server.tasks.task_manager import append_artifact_to_task
from a2a.types.a2a_pb2 import (
    TASK_STATE_CANCELED,
    TASK_STATE_COMPLETED,
    TASK_STATE_FAILED,
    TASK_STATE_INPUT_REQUIRED,
    TASK_STATE_WORKING,
    StreamResponse,
    Task,
)
from a2a.utils.proto_utils import validate_proto_required_fields
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

from brainq.contracts.event import EventKind, TurnEvent
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import TurnResult
from brainq.contrib.a2a.routes import TaskStream
from brainq.contrib.a2a.tasks import (
    ANSWER,
    FoldedTask,
    fold_event,
    fold_events,
    new_task,
    render_task,
    task_updates,
)

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4)
CALLS = ("c1-0", "c1-1", "c2-0")


def plain(kind: EventKind, **data: Any) -> tuple[EventKind, dict[str, Any]]:
    return kind, data


@st.composite
def deltas(draw: st.DrawFn) -> tuple[EventKind, dict[str, Any]]:
    step, attempt = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    return plain(EventKind.TEXT_DELTA, step=step, attempt=attempt, text=draw(WORDS))


@st.composite
def asks(draw: st.DrawFn) -> tuple[EventKind, dict[str, Any]]:
    call, reason = draw(st.sampled_from(CALLS)), draw(WORDS)
    return plain(EventKind.APPROVAL_REQUESTED, call=call, tool="save", reason=reason, expires_in_ms=60_000)


SAID = st.one_of(
    deltas(),
    asks(),
    st.sampled_from(
        [
            plain(EventKind.TURN_QUEUED, ahead=1),
            plain(EventKind.TURN_ACTIVE, deadline_in_ms=1),
            plain(EventKind.TURN_PARKED, awaits="people"),
            plain(EventKind.TURN_RESUMED, parked_ms=1),
            plain(EventKind.STEP_STARTED, step=2, attempt=1),
            plain(EventKind.NOTICE, context_full=80, step=1),
            *(plain(EventKind.APPROVAL_DECIDED, call=call, decision="approved") for call in CALLS),
            *(plain(EventKind.CALL_ENDED, call=call, tool="save") for call in CALLS),
        ]
    ),
)


@st.composite
def turns(draw: st.DrawFn) -> tuple[list[TurnEvent], TurnResult]:
    said = [*draw(st.lists(SAID, max_size=14)), plain(EventKind.RESULT)]
    events = [
        TurnEvent(seq=seq, kind=kind, at_ms=1_700_000_000_000 + seq, data=data)
        for seq, (kind, data) in enumerate(said, start=1)
    ]
    streamed = "".join(str(event.data.get("text", "")) for event in events[-4:])
    result = TurnResult(
        turn_id="t01",
        session_id="s1",
        text=draw(st.one_of(WORDS, st.just(streamed))),
        ending=draw(st.sampled_from(Ending)),
        stop_reason=StopReason.ANSWERED,
        last_agent_message=draw(st.none() | WORDS),
        parsed={"apples": [3, None, "😀"]} if draw(st.booleans()) else None,
    )
    return events, result


def seen(task: Task) -> dict[str, Any]:
    """A task with the parts of its answer joined: a client has one for each update, where we have one."""
    found: dict[str, Any] = json_format.MessageToDict(task)
    for artifact in found.get("artifacts", ()):
        if artifact["artifactId"] == ANSWER:
            artifact["parts"] = "".join(part["text"] for part in artifact["parts"])
    return found


def take(task: Task, update: StreamResponse) -> None:
    """What a client does with an update, by the SDK's own function where it has one."""
    validate_proto_required_fields(update)
    if update.HasField("status_update"):
        task.status.CopyFrom(update.status_update.status)
    else:
        append_artifact_to_task(task, update.artifact_update)


@given(turns(), st.sets(st.integers(0, 15)))
def test_a_client_dropped_at_any_events_holds_the_same_whole(
    turn: tuple[list[TurnEvent], TurnResult], drops: set[int]
) -> None:
    events, result = turn
    told = new_task("t01", "s1")
    held = render_task(told)
    for number, event in enumerate(events):
        if number in drops:
            told = fold_events(
                new_task("t01", "s1"), events[:number]
            )  # at another gateway, which knows the events alone
            held = render_task(told)
        after = fold_event(told, event, result)
        for update in task_updates(told, after):
            take(held, update)
        told = after
        assert seen(held) == seen(render_task(told))
    whole = fold_events(new_task("t01", "s1"), events, result)
    assert seen(held) == seen(render_task(whole))
    validate_proto_required_fields(held)
    assert whole.is_over


@given(turns(), st.integers(0, 14))
def test_updates_over_many_events_at_once_lead_to_the_same(turn: tuple[list[TurnEvent], TurnResult], at: int) -> None:
    events, result = turn
    first = fold_events(new_task("t01", "s1"), events[: min(at, len(events) - 1)])
    whole = fold_events(new_task("t01", "s1"), events, result)
    held = render_task(first)
    for update in task_updates(first, whole):
        take(held, update)
    assert seen(held) == seen(render_task(whole))


def told(*said: tuple[EventKind, dict[str, Any]]) -> FoldedTask:
    return fold_events(
        new_task("t01", "s1"),
        [TurnEvent(seq=seq, kind=kind, at_ms=seq, data=data) for seq, (kind, data) in enumerate(said, 1)],
    )


ASKED = plain(EventKind.APPROVAL_REQUESTED, call="c1-0", tool="save", reason="it is dear", expires_in_ms=0)
ACTIVE = plain(EventKind.TURN_ACTIVE)
PARKED = plain(EventKind.TURN_PARKED, awaits="people")


def test_input_is_required_while_a_parked_turn_asks() -> None:
    assert told(ACTIVE, ASKED).visible_state == TASK_STATE_WORKING, "reads beside it may still run"
    assert told(ACTIVE, PARKED).visible_state == TASK_STATE_WORKING, "it waits for what no client can give"
    asking = told(ACTIVE, ASKED, PARKED)
    assert asking.visible_state == TASK_STATE_INPUT_REQUIRED
    words, data = render_task(asking).status.message.parts
    assert words.text == "save needs an approval (it is dear)"
    assert json_format.MessageToDict(data.data)["call"] == "t01-c1-0"
    decided = plain(EventKind.APPROVAL_DECIDED, call="c1-0", decision="denied")
    assert told(ACTIVE, ASKED, PARKED, decided).visible_state == TASK_STATE_WORKING


def test_an_ending_is_a_state_with_its_reason_and_keeps_what_was_said() -> None:
    said = (ACTIVE, plain(EventKind.TEXT_DELTA, step=1, attempt=1, text="So far"))
    for ending, state in (
        (Ending.COMPLETED, TASK_STATE_COMPLETED),
        (Ending.CANCELLED, TASK_STATE_CANCELED),
        (Ending.TIMED_OUT, TASK_STATE_FAILED),
        (Ending.FAILED, TASK_STATE_FAILED),
    ):
        result = TurnResult(
            turn_id="t01", session_id="s1", text="It is so.", ending=ending, stop_reason=StopReason.ANSWERED
        )
        last = TurnEvent(seq=3, kind=EventKind.RESULT, at_ms=3, data={})
        task = render_task(fold_event(told(*said), last, result))
        assert task.status.state == state
        completed = ending is Ending.COMPLETED
        assert task.artifacts[0].parts[0].text == ("It is so." if completed else "So far")
        assert [part.text for part in task.status.message.parts] == ([] if completed else ["It is so."])


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("", "the model's service answered 401", "the model's service answered 401"),
        ("It broke.", "no worker has it", "no worker has it"),
        ("", None, "failed: model_error"),
    ],
)
def test_a_task_that_failed_says_its_error(text: str, error: str | None, words: str) -> None:
    result = TurnResult(
        turn_id="t01", session_id="s1", text=text, ending=Ending.FAILED, stop_reason=StopReason.MODEL_ERROR, error=error
    )
    task = render_task(fold_event(told(ACTIVE), TurnEvent(seq=2, kind=EventKind.RESULT, at_ms=3, data={}), result))
    assert task.status.state == TASK_STATE_FAILED
    assert [part.text for part in task.status.message.parts] == [words]


class FakeHandle:
    turn_id, session_id = "t01", "s1"

    async def approvals(self) -> list[Any]:
        return [SimpleNamespace(id=f"t01-{call}", arguments={}, args_hash="h") for call in CALLS]


def test_a_stream_ends_when_its_task_begins_to_ask_and_not_while_it_asks_on() -> None:
    """Two approvals are open; who subscribes, or decides one of them, reads on to the next change."""
    second = plain(EventKind.APPROVAL_REQUESTED, call="c1-1", tool="save", reason="dear, too", expires_in_ms=60_000)
    decided = plain(EventKind.APPROVAL_DECIDED, call="c1-0", decision="approved")

    def last_of(*said: tuple[EventKind, dict[str, Any]]) -> bool:
        stream: Any = TaskStream(FakeHandle(), told(*said[:-1]), 1)  # pyright: ignore[reportArgumentType]
        kind, data = said[-1]
        event = TurnEvent(seq=len(said), kind=kind, at_ms=len(said), data=data)
        return asyncio.run(stream.write(event)).is_last

    assert last_of(ACTIVE, ASKED, second, PARKED), "it begins to ask"
    assert not last_of(ACTIVE, ASKED, second, PARKED, decided), "the other is still open"
    assert not last_of(ACTIVE, ASKED, PARKED, decided)
