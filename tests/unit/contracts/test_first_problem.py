"""Every way in names the field that is wrong, however deep it lies, and never says what was sent."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from brainq.contracts.base import first_problem
from brainq.contracts.people import TurnInput
from brainq.contracts.tool import ClientTool
from brainq.contrib.mcp_server.requests import read_input
from brainq.contrib.mcp_server.tools import SubmitInput
from brainq.engine.people.admission import read_request
from brainq.errors import InvalidInput
from brainq.gateway.rest.bodies import SubmitBody
from brainq.gateway.rest.schedules import ScheduleBody
from brainq.gateway.rest.turn_control import OutsideResult

ONE: dict[str, Any] = {"session_id": "s1", "user_message": "hi"}
CALL: dict[str, Any] = {"id": "", "name": "look", "arguments": {}}
SECRET = "hunter2"
DEEP: list[tuple[dict[str, Any], str, str]] = [
    ({"options": {"temperature": SECRET}}, "options.temperature", "valid number"),
    ({"options": {"temprature": 1}}, "options.temprature", "did you mean temperature?"),
    ({"options": {"stop": [SECRET, 7]}}, "options.stop", "one text or several"),
    ({"options": {"tool_choice": " "}}, "options.tool_choice", "it is empty"),
    ({"options": {"extra_headers": {"x": SECRET}}}, "options.extra_headers", "may hold secrets"),
    ({"limits": {"max_steps": 0}}, "limits.max_steps", "greater than or equal to 1"),
    ({"limits": {"max_stepz": SECRET}}, "limits.max_stepz", "no such field"),
    ({"history": [{"role": "user", "content": "x"}, {"role": SECRET}]}, "history[1].role", "'assistant'"),
    ({"client_tools": [{"name": "a"}, {"name": "1"}]}, "client_tools[1].name", ""),
    ({"prompt_tags": ["a", 7]}, "prompt_tags[1]", "valid string"),
    ({"user_message": f"{SECRET}\ud83d"}, "user_message", "half of a surrogate pair"),
    ({"priority": SECRET}, "priority", "'high', 'normal' or 'low'"),
]


@pytest.mark.parametrize(("given", "field", "words"), DEEP)
def test_over_http_as_in_python(given: dict[str, Any], field: str, words: str) -> None:
    body = ONE | given
    with pytest.raises(ValidationError) as failed:
        SubmitBody.model_validate(body)
    told = first_problem(failed.value.errors(include_url=False), body)
    with pytest.raises(InvalidInput) as refused:
        read_request(body)
    for error in (told, refused.value):
        assert error.field == field
        assert words in error.problem
        assert SECRET not in str(error)


@pytest.mark.parametrize(("given", "field", "words"), DEEP[:7])
def test_over_mcp_too(given: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_input(SubmitInput, "arguments", {"message": "hi"} | given)
    assert refused.value.field == field
    assert words in refused.value.problem


def its(**fields: Any) -> dict[str, Any]:
    return ONE | fields


@pytest.mark.parametrize(
    ("model", "given", "field", "words"),
    [
        (SubmitBody, its(attachments=[{"data": 7}]), "attachments[0].data", "valid string"),
        (SubmitBody, its(attachments=[{"data": "x", "typ": ""}]), "attachments[0].typ", "no such field"),
        (SubmitBody, its(history=[{"role": "user", "calls": [CALL]}]), "history[0].calls[0].id", "at least"),
        (SubmitBody, {"session_id": "s1"}, "user_message", "required"),
        (SubmitBody, its(history=[{}]), "history[0].role", "required"),
        (ScheduleBody, its(name="a", when=[1]), "when", "crontab"),
        (ScheduleBody, its(name="a", when=-1), "when", "above 0"),
        (ScheduleBody, its(name="a", when="x" * 300), "when", "at most 200"),
        (ScheduleBody, its(name="a", at="soon"), "at", "2031-01-05T09:00:00+01:00"),
        (ScheduleBody, its(name="a", at="2031-01-05T09:00"), "at", "time zone"),
        (ScheduleBody, its(name="a", options={"seed": "x"}), "options.seed", "valid integer"),
        (OutsideResult, {"result": 1, "files": [{"data": "x"}, {}]}, "files[1].data", "required"),
    ],
)
def test_each_body_says_what_of_it_is_wrong(
    model: type[BaseModel], given: dict[str, Any], field: str, words: str
) -> None:
    with pytest.raises(ValidationError) as failed:
        model.model_validate(given)
    told = first_problem(failed.value.errors(include_url=False), given)
    assert told.field == field
    assert words in told.problem
    assert "Input" not in told.problem


def test_a_name_from_outside_is_cut_and_objects_are_walked_into() -> None:
    with pytest.raises(ValidationError) as failed:
        SubmitBody.model_validate(ONE | {"x" * 5_000: 1})
    assert len(first_problem(failed.value.errors(), ONE | {"x" * 5_000: 1}).field) == 60
    tools = [ClientTool.model_construct(name="1")]
    with pytest.raises(ValidationError) as failed:
        SubmitBody.model_validate(ONE | {"client_tools": [tools[0].model_dump()]})
    assert first_problem(failed.value.errors(), {"client_tools": tools}).field == "client_tools[0].name"


def test_a_message_and_an_input_lose_a_nul_alike() -> None:
    request = read_request({"session_id": "s1", "turn_id": "turn-1", "user_message": "a\x00b"})
    assert request.user_message == TurnInput(client_message_id="m1", text="a\x00b").text == "a\ufffdb"
