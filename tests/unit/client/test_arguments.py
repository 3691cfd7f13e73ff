"""What a client checks before it sends: options, schemas and shapes."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import brainq
from brainq import (
    AsyncClient,
    AsyncFlag,
    AsyncHold,
    AsyncMemories,
    AsyncSession,
    AsyncTurnHandle,
    Client,
    Flag,
    Hold,
    LimitsOverride,
    Memories,
    Operator,
    Session,
    ThinkLevel,
    TurnHandle,
    TurnRuntimeState,
)
from brainq.client import checks
from brainq.client.options import SubmitOptions, submit_fields
from brainq.client.schemas import SCHEMAS, schema_of
from brainq.contracts.brain import ThinkLevelName
from brainq.contracts.event import EventKind, TurnEvent
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import MAX_MESSAGE_CHARS, LimitsFields, TurnResult
from brainq.contracts.typed_events import FIELDS
from brainq.engine.people.admission import read_foreign
from brainq.errors import InvalidInput

# What is refused at the intake, by field.


@pytest.mark.parametrize(
    ("field", "text", "message_id", "readiness"),
    [
        ("text", "", None, None),
        ("text", "  \n", None, None),
        ("text", "  \n", None, True),
        ("text", None, None, None),
        ("text", "x" * (MAX_MESSAGE_CHARS + 1), None, None),
        ("text", "\ud800", None, None),
        ("client_message_id", "x", "a b", None),
        ("client_message_id", "x", "", None),
        ("client_message_id", "x", "x" * 129, None),
        ("readiness", "x", None, "yes"),
    ],
)
def test_input_that_cannot_be_sent(field: str, text: Any, message_id: Any, readiness: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        checks.turn_input(text, message_id, readiness)
    assert refused.value.field == field
    assert len(str(refused.value)) < 300


def test_input_is_sent_as_it_is_and_gets_an_id_of_its_own() -> None:
    first, second = (checks.turn_input(" as it is\n", None, None) for _ in range(2))
    assert first.text == " as it is\n"
    assert first.client_message_id != second.client_message_id
    assert len(checks.turn_input("x" * MAX_MESSAGE_CHARS, "m1", None).text) == MAX_MESSAGE_CHARS
    assert checks.turn_input("", "m1", False).readiness is False


@pytest.mark.parametrize("expires_in_s", [0, -1, float("nan"), float("inf"), 1e12, True, "60", None])
def test_a_hold_stands_for_a_finite_time(expires_in_s: Any) -> None:
    with pytest.raises(InvalidInput, match="expires_in_s"):
        checks.hold("hold", "", expires_in_s, "deny")


@pytest.mark.parametrize(("reason", "policy", "field"), [("", "odd", "on_expiry"), (None, "deny", "reason")])
def test_a_hold_says_why_and_what_follows(reason: Any, policy: Any, field: str) -> None:
    with pytest.raises(InvalidInput, match=field):
        checks.hold("hold", reason, 60, policy)
    with pytest.raises(InvalidInput, match="at most 500"):
        checks.hold("hold", "x" * 501, 60, "deny")


@pytest.mark.parametrize("wrong", ["", "turn-1", "turn-1.", "-c1-0", "a b-c1-0", "turn-1-c 1", 7, None])
def test_an_approval_is_named_by_turn_and_call(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="id: "):
        checks.approval(wrong)
    assert checks.approval("turn-1.c1-0") == checks.approval("turn-1-c1-0") == "turn-1-c1-0"


def test_a_page_goes_on_after_a_call_of_its_turn_or_so_many_messages() -> None:
    assert checks.after_call("turn-1", None) is None
    assert checks.after_call("turn-1", "turn-1-c2-0") == "c2-0"
    for wrong in ("turn-2-c2-0", "c2-0", "", 7):
        with pytest.raises(InvalidInput):
            checks.after_call("turn-1", wrong)
    assert checks.after_count(0) == 0
    for wrong in (-1, True, "5", None):
        with pytest.raises(InvalidInput, match="after"):
            checks.after_count(wrong)


def test_states_and_limits_are_known_words_and_numbers() -> None:
    assert checks.approval_state("all") is None
    assert checks.approval_state("denied") == "denied"
    with pytest.raises(InvalidInput, match="pending, approved"):
        checks.approval_state("odd")
    for wrong in (0, 10_001, True, "5"):
        with pytest.raises(InvalidInput, match="limit"):
            checks.limit(wrong)


# The options of a submit: one type, which every verb that takes them shows, and the fields of a request.


def keywords(verb: Any) -> list[str]:
    return [of.name for of in inspect.signature(verb).parameters.values() if of.kind is of.KEYWORD_ONLY]


@pytest.mark.parametrize("kind", [Client, AsyncClient, Session, AsyncSession])
def test_every_submit_shows_its_options_with_their_types(kind: Any) -> None:
    assert keywords(kind.submit) == list(SubmitOptions.__annotations__)
    assert "on_busy: 'OnBusy' = 'enqueue'" in str(inspect.signature(kind.submit))


def test_help_on_submit_teaches_each_option() -> None:
    for name in SubmitOptions.__annotations__:
        assert name in (Client.submit.__doc__ or ""), name


@pytest.mark.parametrize("verb", [Client.submit, Client.run, Client.schedule, AsyncClient.schedule])
def test_what_passes_options_on_shows_them_too(verb: Any) -> None:
    assert set(SubmitOptions.__annotations__) <= set(keywords(verb))


def test_an_option_of_a_wrong_name_is_a_type_error_with_the_near_one() -> None:
    with pytest.raises(TypeError, match=r"submit\(\) got an unexpected keyword argument 'modle'; did.*'model'\?"):
        submit_fields(Client.submit, {"modle": "openai:gpt-4.1"})
    with pytest.raises(TypeError, match=r"'zzzz'$"):
        submit_fields(Client.submit, {"zzzz": 1})
    with pytest.raises(TypeError, match=r"schedule\(\) got .* 'on_runing'; did.*'on_running'\?"):
        submit_fields(Client.schedule, {"on_runing": "queue"})


def test_limits_can_be_written_as_a_dict_of_their_fields() -> None:
    assert set(LimitsFields.__annotations__) == set(LimitsOverride.model_fields)


def test_every_level_of_thinking_has_its_word() -> None:
    assert ThinkLevelName.__args__ == tuple(ThinkLevel)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


# The schemas say what producers may send, and what readers get.


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


# The public classes' shapes: who decides is always named, and an asynchronous twin has the shape of the other.


TWINS = (
    (Client, AsyncClient),
    (TurnHandle, AsyncTurnHandle),
    (Session, AsyncSession),
    (Hold, AsyncHold),
    (Flag, AsyncFlag),
    (Memories, AsyncMemories),
)


def members(kind: type) -> dict[str, Any]:
    of_classes = [vars(base) for base in reversed(kind.__mro__) if base is not object]
    return {name: member for of in of_classes for name, member in of.items() if not name.startswith("_")}


def verbs() -> Iterator[tuple[str, Any]]:
    for kind in (*(kind for twins in TWINS for kind in twins), Operator, TurnRuntimeState):
        for name, member in members(kind).items():
            if inspect.isfunction(member):
                yield f"{kind.__name__}.{name}", member


def parameters(verb: Any) -> list[tuple[str, Any, Any]]:
    return [(of.name, of.kind, of.default) for of in inspect.signature(verb).parameters.values()][1:]


def test_who_decides_is_given_by_keyword_only() -> None:
    named = {
        name: inspect.signature(verb).parameters["by"].kind
        for name, verb in verbs()
        if "by" in inspect.signature(verb).parameters
    }
    assert {"Client.approve", "Client.deny", "Client.edit", "AsyncClient.deny"} <= set(named)
    assert set(named.values()) == {inspect.Parameter.KEYWORD_ONLY}, named


@pytest.mark.parametrize(("sync", "twin"), TWINS, ids=lambda kind: kind.__name__)
def test_a_twin_has_every_member_in_the_same_shape(sync: type, twin: type) -> None:
    theirs, ours = members(twin), members(sync)
    assert sorted(theirs) == sorted(ours)
    for name, member in ours.items():
        assert isinstance(member, property) == isinstance(theirs[name], property), name
        if inspect.isfunction(member) and not takes_options(theirs[name]):
            assert parameters(theirs[name]) == parameters(member), name


def takes_options(verb: Any) -> bool:
    """`**options: Unpack[SubmitOptions]`, which a type checker compares."""
    return any(of.kind is of.VAR_KEYWORD for of in inspect.signature(verb).parameters.values())


def test_no_public_property_of_a_twin_is_a_coroutine() -> None:
    assert brainq.AsyncSession.is_paused is not None
    for _, twin in TWINS:
        properties = [member for member in members(twin).values() if isinstance(member, property)]
        assert not any(inspect.iscoroutinefunction(member.fget) for member in properties)
