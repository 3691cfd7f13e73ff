"""P14: bad input is refused where it enters, with the field's name, before anything is stored."""

from __future__ import annotations

import re
from typing import Any

import pytest

from brainq import InvalidInput
from brainq.workers.tasks.register import submit_foreign
from tests.support.brains.obedient import script
from tests.support.pump import Pump


def _nested(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels):
        found = [found]
    return found


NESTED = _nested(3000)

BAD: dict[str, tuple[str, dict[str, Any]]] = {
    "no session": ("session_id", {"session_id": None}),
    "session with a space": ("session_id", {"session_id": "a b"}),
    "session with braces": ("session_id", {"session_id": "{s}"}),
    "empty session": ("session_id", {"session_id": ""}),
    "session with a newline": ("session_id", {"session_id": "s\n"}),
    "session of 129 characters": ("session_id", {"session_id": "s" * 129}),
    "session that is a number": ("session_id", {"session_id": 7}),
    "session that is a list": ("session_id", {"session_id": ["s"]}),
    "session not in ASCII": ("session_id", {"session_id": "größe"}),
    "turn id with a dot": ("turn_id", {"turn_id": "a.b.c"}),
    "turn id too short": ("turn_id", {"turn_id": "ab"}),
    "turn id too long": ("turn_id", {"turn_id": "t" * 65}),
    "turn id that is an object": ("turn_id", {"turn_id": {"a": 1}}),
    "request key with a slash": ("request_key", {"request_key": "a/b"}),
    "no message": ("user_message", {"user_message": None}),
    "empty message": ("user_message", {"user_message": ""}),
    "message of a million and one": ("user_message", {"user_message": "x" * 1_000_001}),
    "message that is a list": ("user_message", {"user_message": ["hi"]}),
    "message with half a surrogate pair": ("user_message", {"user_message": "hi \ud83d"}),
    "model that is a number": ("model", {"model": 5}),
    "system prompt of a million and one": ("system_prompt", {"system_prompt": "x" * 1_000_001}),
    "output schema that is a text": ("output_schema", {"output_schema": "object"}),
    "output schema with half a surrogate pair": ("output_schema", {"output_schema": {"a": "\ud83d"}}),
    "output schema nested too deep": ("output_schema", {"output_schema": {"a": NESTED}}),
    "limits that are a list": ("limits", {"limits": [1]}),
    "unknown limit": ("limits.max_stepps", {"limits": {"max_stepps": 3}}),
    "no time at all": ("limits.timeout_s", {"limits": {"timeout_s": 0}}),
    "time that is no number": ("limits.timeout_s", {"limits": {"timeout_s": "soon"}}),
    "time that is NaN": ("limits.timeout_s", {"limits": {"timeout_s": float("nan")}}),
    "endless time": ("limits.timeout_s", {"limits": {"timeout_s": float("inf")}}),
    "no steps": ("limits.max_steps", {"limits": {"max_steps": 0}}),
    "half a step": ("limits.max_steps", {"limits": {"max_steps": 1.5}}),
    "less than no calls": ("limits.max_tool_calls", {"limits": {"max_tool_calls": -1}}),
    "money below zero": ("limits.max_cost_usd", {"limits": {"max_cost_usd": -0.01}}),
    "citations that are a word": ("show_citations", {"show_citations": "perhaps"}),
    "prompt id too long": ("prompt_id", {"prompt_id": "p" * 201}),
    "a tag that is a number": ("prompt_tags", {"prompt_tags": [1]}),
    "too many tags": ("prompt_tags", {"prompt_tags": ["x"] * 101}),
    "a tag that is a text": ("prompt_tags", {"prompt_tags": ["x" * 201]}),
    "metadata that is a list": ("metadata", {"metadata": [1]}),
    "metadata with half a surrogate pair": ("metadata", {"metadata": {"a": "\ud83d"}}),
    "metadata nested too deep": ("metadata", {"metadata": {"a": NESTED}}),
    "a path too long": ("cwd", {"cwd": "/" * 4097}),
}

ONLY_PYTHON: dict[str, tuple[str, dict[str, Any]]] = {
    "tags that are one text": ("prompt_tags", {"prompt_tags": "important"}),
    "tags that are a number": ("prompt_tags", {"prompt_tags": 5}),
    "metadata that is no JSON": ("metadata", {"metadata": {"a": object()}}),
    "output schema that is no JSON": ("output_schema", {"output_schema": {"a": object()}}),
    "output schema with a set": ("output_schema", {"output_schema": {"a": {1}}}),
    "limits that are a number": ("limits", {"limits": 5}),
}

REMEDY = re.compile(
    r"\b(use|should|must|at most|at least|send|give|make|choose|leave|take|pick|the fields are|none of)\b"
    r"|\b(required|valid)\b",
    re.I,
)
"""An error that only complains leaves its reader with the question what would be right."""

GOOD: dict[str, Any] = {"session_id": "s1", "user_message": "hello", "turn_id": "turn-1"}


def stored(pump: Pump) -> tuple[list[Any], list[str]]:
    keys: Any = pump.wiring.state.redis.keys("*")
    return pump.wiring.store.turns.list(), keys


@pytest.mark.parametrize(("field", "change"), [*BAD.values(), *ONLY_PYTHON.values()], ids=[*BAD, *ONLY_PYTHON])
def test_p14_submit_refuses(pump: Pump, field: str, change: dict[str, Any]) -> None:
    given = GOOD | change
    with pytest.raises(InvalidInput) as refused:
        pump.client.submit(given.pop("session_id"), given.pop("user_message"), **given)
    assert refused.value.field.startswith(field)
    assert REMEDY.search(refused.value.problem), refused.value.problem
    assert len(str(refused.value)) < 600
    assert stored(pump) == ([], [])


@pytest.mark.parametrize(("field", "change"), BAD.values(), ids=list(BAD))
def test_p14_a_foreign_submit_is_rejected_with_its_reason(pump: Pump, field: str, change: dict[str, Any]) -> None:
    assert submit_foreign(pump.wiring, (), GOOD | change) == "rejected"
    (row,), keys = stored(pump)
    assert row.state == "rejected"
    assert (row.reject_reason or "").startswith(field)
    assert keys == []


FOREIGN: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "nothing": ((), {}, "turn_id"),
    "positional": (("s1", "hello"), {}, "arguments"),
    "no id of the producer's": ((), {"session_id": "s1", "user_message": "x"}, "turn_id"),
    "unknown field": ((), GOOD | {"userMessage": "x"}, "userMessage"),
    "unknown field in one object": ((GOOD | {"priority": 3},), {}, "priority"),
    "a list": (([1, 2],), {}, "arguments"),
    "a null": ((None,), {}, "arguments"),
}


@pytest.mark.parametrize(("args", "fields", "field"), FOREIGN.values(), ids=list(FOREIGN))
def test_p14_other_foreign_mistakes(pump: Pump, args: tuple[Any, ...], fields: dict[str, Any], field: str) -> None:
    assert submit_foreign(pump.wiring, args, fields) == "rejected"
    (row,), keys = stored(pump)
    assert (row.reject_reason or "").startswith(field)
    assert REMEDY.search((row.reject_reason or "").partition(": ")[2]), row.reject_reason
    assert keys == []


def test_a_foreign_submit_in_one_object_runs(pump: Pump) -> None:
    turn_id = submit_foreign(pump.wiring, ({**GOOD, "user_message": script(final="hi")},), {})
    assert pump.finish(pump.client.handle(turn_id)).text == "hi"


def test_a_foreign_submit_that_comes_twice_is_one_turn(pump: Pump) -> None:
    fields = GOOD | {"user_message": script()}
    assert submit_foreign(pump.wiring, (), dict(fields)) == submit_foreign(pump.wiring, (), dict(fields)) == "turn-1"
    pump.finish(pump.client.handle("turn-1"))
    assert submit_foreign(pump.wiring, (), dict(fields)) == "turn-1"
    assert pump.waiting() == []
    assert submit_foreign(pump.wiring, (), {**fields, "user_message": "other"}) == "rejected"
    row = pump.wiring.store.turns.get("turn-1")
    assert row is not None
    assert row.state == "completed", "a conflicting submit changed the turn it conflicted with"
