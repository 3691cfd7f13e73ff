"""A person's arguments in place of the model's."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest

from brainq.contracts.people import EditedCall
from brainq.contracts.status import Effect
from brainq.contracts.turn import TurnRequest
from brainq.engine.brain.brain import Brain
from brainq.engine.gates.canonical import fingerprint
from brainq.engine.people.edited_call import edited_call
from brainq.engine.tools.tool import make_tool
from brainq.errors import InvalidInput
from tests.support.hashes import args_hash
from tests.unit.engine.turn.views import REQUEST

BARE = TurnRequest(turn_id="t-1", session_id="s1", user_message="Hi")
brain = Brain("b", "openai:x")


@brain.tool(effect=Effect.LOCAL_WRITE, resources=("note:{path}",), deny_repeats=True)
def write(path: str, lines: int = 1, mode: Literal["new", "add"] = "new") -> None: ...


@brain.tool(effect=Effect.READ_ONLY, resources=("note:{path}",))
def read(path: str) -> None: ...


brain.tool(name="plain", resources=(), effect=Effect.NETWORK)(write)


def test_everything_that_follows_from_the_arguments_is_made_anew() -> None:
    arguments = {"path": "b.md", "lines": 3}
    edited = edited_call(brain, "write", arguments, "s1", REQUEST)

    assert (edited.args_hash, edited.fingerprint) == (args_hash(arguments), fingerprint("write", arguments))
    assert edited.lanes == ("note:b.md",)
    assert json.loads(edited.arguments_json) == {
        "arguments": arguments,
        "hash": args_hash(arguments),
        "lanes": ["note:b.md"],
        "cwd": "/w",
        "metadata": {"k": 1},
        "edited": True,
    }
    assert edited_call(brain, "plain", arguments, "s1", REQUEST).fingerprint == ""


def test_a_tool_without_resources_takes_its_sessions_lane_and_a_read_none() -> None:
    assert edited_call(brain, "plain", {"path": "a"}, "s1", BARE).lanes == ("session:s1",)
    found = edited_call(brain, "read", {"path": "a"}, "s1", BARE)
    digest = args_hash({"path": "a"})
    assert found == EditedCall(
        f'{{"arguments":{{"path":"a"}},"hash":"{digest}","lanes":[],"edited":true}}',
        digest,
        fingerprint("read", {"path": "a"}),
    )


def test_whole_numbers_are_one_however_they_are_written() -> None:
    one, same = (edited_call(brain, "write", {"path": "a", "lines": n}, "s1", BARE) for n in (2, 2.0))
    assert (one.args_hash, one.fingerprint, one.lanes) == (same.args_hash, same.fingerprint, same.lanes)


@pytest.mark.parametrize(
    ("tool", "arguments", "field", "words"),
    [
        ("wipe", {}, "tool", ["'wipe'", "plain, read, write"]),
        ("write", "path=a", "arguments", ["str", "object"]),
        ("write", {}, "arguments", ["'path' is a required property", "approve again"]),
        ("write", {"path": "a", "mode": "x"}, "arguments", ["$.mode", '["new", "add"]', "approve again"]),
        ("write", {"path": "a", "lines": [1]}, "arguments", ["$.lines", "integer", "array"]),
        ("write", {"path": "a", "lines": "3"}, "arguments.lines", ['"3" does not fit', "write 3"]),
        ("write", {"path": "a", "lines": "x"}, "arguments", ["$.lines", "integer", "string"]),
        ("write", {"path": "a", "force": True}, "arguments", ["'force'", "approve again"]),
        ("read", {"path": "a", "force": True}, "arguments.force", ["no such parameter", "leave it out"]),
        ("write", {"path": "a", "lines": float("nan")}, "arguments", ["not JSON"]),
        ("write", {"path": {1, 2}}, "arguments", ["not JSON"]),
        ("write", {"path": "half \ud83d"}, "arguments", ["surrogate"]),
        ("write", {"path": "a" * 1_000_001}, "arguments", ["1,000,000"]),
    ],
)
def test_what_does_not_fit_is_refused_never_mended(tool: str, arguments: Any, field: str, words: list[str]) -> None:
    with pytest.raises(InvalidInput) as refused:
        edited_call(brain, tool, arguments, "s1", BARE)

    assert refused.value.field == field
    for word in words:
        assert word in str(refused.value)
    assert "call again" not in str(refused.value)


def test_a_resource_whose_parameter_is_missing_is_named() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    remote = make_tool(write, name="remote", parameters=schema, resources=("note:{path}",))

    with pytest.raises(InvalidInput, match="pass path") as refused:
        edited_call(Brain("far", "openai:x", tools=[remote]), "remote", {}, "s1", BARE)
    assert refused.value.field == "path"


def test_the_given_arguments_are_not_kept() -> None:
    arguments: dict[str, Any] = {"path": "a"}
    edited = edited_call(brain, "write", arguments, "s1", BARE)
    arguments["path"] = "b"
    assert json.loads(edited.arguments_json)["arguments"] == {"path": "a"}
