"""The schemas say what producers may send, and what readers get."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from brainq.client.schemas import SCHEMAS, schema_of
from brainq.contracts.event import EventKind, TurnEvent
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import TurnResult
from brainq.contracts.typed_events import FIELDS
from brainq.engine.people.admission import read_foreign
from brainq.errors import InvalidInput

SENT: dict[str, Any] = {"turn_id": "order-17", "session_id": "monday", "user_message": "Restock apples"}


def fits(name: str, value: Any) -> bool:
    return Draft202012Validator(schema_of(name)).is_valid(value)


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_is_a_schema(name: str) -> None:
    schema = schema_of(name)
    Draft202012Validator.check_schema(schema)
    assert schema["title"] == f"brainq {name}"


@pytest.mark.parametrize(
    "given",
    [
        SENT,
        {**SENT, "request_key": "order-17"},
        {"request_key": "k", "session_id": "acme:1", "user_message": "hi"},
        {**SENT, "limits": {"max_steps": 3, "timeout_s": None}, "prompt_tags": ["a"], "metadata": {"a": [1, None]}},
        {**SENT, "history": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]},
        {**SENT, "attachments": [{"data": "aGk=", "name": "a.txt"}]},
        {**SENT, "history": [{"role": "user", "attachments": [{"data": "aGk="}]}]},
        {**SENT, "client_tools": [{"name": "look", "parameters": {"type": "object", "properties": {}}}]},
        {
            **SENT,
            "on_busy": "merge",
            "priority": "low",
            "kind": "review",
            "seed": "empty",
            "readiness": False,
            "greeting": "Hello",
        },
    ],
)
def test_what_fits_submit_is_taken(given: dict[str, Any]) -> None:
    assert fits("submit", given)
    assert read_foreign((), given)[0].session_id == given["session_id"]


@pytest.mark.parametrize(
    "given",
    [
        {**SENT, "turn_id": "a b"},
        {**SENT, "turn_id": "ch-17"},
        {**SENT, "request_key": "in-17"},
        {**SENT, "request_key": "schedule:17:1"},
        {**SENT, "session_id": "{1}"},
        {**SENT, "user_message": " "},
        {"session_id": "monday", "user_message": "hi"},
        {"request_key": "", "session_id": "monday", "user_message": "hi"},
        {**SENT, "parent": {"session_id": "a", "turn_id": "b12", "call_id": "c1-0"}},
        {**SENT, "colour": "red"},
        {**SENT, "limits": {"max_steps": 0}},
        {**SENT, "on_busy": "wait"},
        {**SENT, "attachments": [{"sha256": "0" * 64, "media_type": "image/png", "size": 1}]},
        {**SENT, "priority": 9},
    ],
)
def test_what_is_refused_does_not_fit_submit(given: dict[str, Any]) -> None:
    assert not fits("submit", given)
    with pytest.raises(InvalidInput):
        read_foreign((), given)


@pytest.mark.parametrize("kind", EventKind)
def test_an_event_of_each_kind_fits_and_none_with_fields_of_another(kind: EventKind) -> None:
    event = TurnEvent(seq=1, kind=kind, at_ms=5, data=dict.fromkeys(FIELDS[kind], "x"))
    said = event.model_dump(mode="json")
    assert fits("event", said)
    assert not fits("event", {**said, "data": {"colour": "red"}})


def test_a_result_fits() -> None:
    result = TurnResult(
        turn_id="order-17", session_id="monday", text="done", ending=Ending.COMPLETED, stop_reason=StopReason.ANSWERED
    )
    assert fits("result", result.model_dump(mode="json"))
    assert not fits("result", {"text": "done"})
