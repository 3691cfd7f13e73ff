"""Brains: what they take, and how they are found."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from inspect import unwrap
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from brainq.contracts.brain import Approvals, Children
from brainq.contracts.callbacks import Callbacks, Deny, PreToolUse, TurnInfo
from brainq.contracts.status import Effect
from brainq.contracts.turn import Limits
from brainq.engine.brain.brain import Brain
from brainq.engine.brain.brains import live_turn_caps, load_brains, read_brains
from brainq.engine.tools.tool import make_tool
from brainq.errors import InvalidInput, SetupError, ToolSchemaError


def note(path: str) -> str:
    return path


def on_turn_start(info: TurnInfo) -> None: ...


def test_a_decorated_function_stays_itself() -> None:
    brain = Brain("b", "openai:x")

    marked = brain.tool(effect=Effect.READ_ONLY, timeout_s=3, resources=("n:{path}",), lane="global")(note)
    brain.tool(name="other")(note)

    assert marked is note
    spec = brain.tools["note"].spec
    assert (spec.effect, spec.timeout_s, spec.resources) == (Effect.READ_ONLY, 3.0, ("n:{path}", "global"))
    assert brain.tools["other"].spec.effect is Effect.DESTRUCTIVE


def test_a_bare_mark_counts_as_destructive() -> None:
    brain = Brain("b", "openai:x")

    @brain.tool
    async def wipe(disk: str) -> None: ...

    assert brain.tools["wipe"].spec.effect is Effect.DESTRUCTIVE
    assert brain.tools["wipe"].is_async


def test_tools_can_be_given_and_names_are_taken_once() -> None:
    brain = Brain("b", "openai:x", tools=[note, make_tool(note, name="read", effect=Effect.READ_ONLY)])

    assert list(brain.tools) == ["note", "read"]
    with pytest.raises(InvalidInput, match="'note'"):
        brain.tool(note)


def test_a_bad_tool_is_refused_when_it_is_defined() -> None:
    brain = Brain("b", "openai:x")
    with pytest.raises(ToolSchemaError, match="'note'"):
        brain.tool(resources=("n:{nope}",))(note)


def test_defaults() -> None:
    brain = Brain("b", "openai:x", "Be brief.")

    assert brain.limits == Limits()
    assert brain.callbacks == Callbacks()
    assert (brain.parallel_tools, brain.show_citations, brain.redact_logs) == (True, False, False)
    assert brain.prompt_for(TurnInfo("turn", "s", "hi")) == "Be brief."


def test_people_are_asked_and_children_started_as_the_brain_says() -> None:
    plain = Brain("b", "openai:x")
    approvals = Approvals(effects=(Effect.DESTRUCTIVE, Effect.NETWORK, Effect.NETWORK), timeout_s=60)
    strict = Brain("b", "openai:x", approvals=approvals, children=Children(max_depth=1, max_turns=0))

    @strict.tool(approval="it is your money")
    def pay(amount: int) -> None: ...

    assert (plain.approvals, plain.children) == (Approvals((), 3600.0), Children(3, 8))
    assert strict.approvals == Approvals((Effect.DESTRUCTIVE, Effect.NETWORK), 60.0)
    assert strict.children == Children(1, 0)
    assert strict.tools["pay"].approval == "it is your money"
    bad: Any = async_items
    with pytest.raises(ToolSchemaError, match="'note'"):
        strict.tool(approval=bad)(note)


@pytest.mark.parametrize(
    ("part", "fields", "words"),
    [
        (Approvals, {"effects": Effect.DESTRUCTIVE}, ["effects", "(Effect.DESTRUCTIVE,)"]),
        (Approvals, {"effects": None}, ["effects", "None"]),
        (Approvals, {"effects": ("destructive",)}, ["effects", "'destructive'", "Effect.LOCAL_WRITE"]),
        (Approvals, {"timeout_s": 0}, ["timeout_s", "above 0"]),
        (Approvals, {"timeout_s": float("nan")}, ["timeout_s", "nan"]),
        (Approvals, {"timeout_s": float("inf")}, ["timeout_s", "inf"]),
        (Approvals, {"timeout_s": 31_536_001}, ["timeout_s", "31536000", "a year"]),
        (Approvals, {"timeout_s": "60"}, ["timeout_s", "'60'", "number"]),
        (Approvals, {"timeout_s": True}, ["timeout_s", "number"]),
        (Children, {"max_depth": -1}, ["max_depth", "-1", "0 to 100"]),
        (Children, {"max_depth": 101}, ["max_depth", "101"]),
        (Children, {"max_turns": 1.5}, ["max_turns", "1.5", "whole"]),
        (Children, {"max_turns": True}, ["max_turns", "True"]),
    ],
)
def test_a_part_refuses_what_makes_no_sense(
    part: type[Approvals | Children], fields: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(InvalidInput) as refused:
        part(**fields)

    for word in words:
        assert word in str(refused.value)


@pytest.mark.parametrize("cap", [0, -1, 2.0, True, "2", 1_000_001])
def test_a_cap_that_makes_no_sense_is_refused(cap: Any) -> None:
    with pytest.raises(InvalidInput, match=r"max_live_turns: .* from 1 to 1,000,000, or None .*, got " + repr(cap)):
        Brain("b", "openai:x", max_live_turns=cap)


def test_caps_are_of_brains_that_turns_name_and_of_the_only_one() -> None:
    lab, desk = Brain("lab", "openai:x", max_live_turns=2), Brain("desk", "openai:x")
    assert (lab.max_live_turns, desk.max_live_turns) == (2, None)
    assert live_turn_caps(read_brains([desk, lab])) == ({"lab": 2}, None)
    assert live_turn_caps(read_brains([lab])) == ({"lab": 2}, None), "its turns name it"
    assert live_turn_caps(read_brains(lab)) == ({}, 2)


def test_a_prompt_can_be_made_for_the_turn() -> None:
    brain = Brain("b", "openai:x", lambda turn: f"Turn {turn.turn_number} of {turn.session_id}.")
    assert brain.prompt_for(TurnInfo("turn", "s", "hi", turn_number=3)) == "Turn 3 of s."


@pytest.mark.parametrize(
    "given",
    [
        Callbacks(on_turn_start=on_turn_start),
        {"on_turn_start": on_turn_start},
        SimpleNamespace(on_turn_start=on_turn_start, other=1),
    ],
)
def test_callbacks_come_in_three_shapes(given: object) -> None:
    kept = Brain("b", "openai:x", callbacks=given).callbacks
    assert unwrap(cast("Any", kept.on_turn_start)) is on_turn_start
    assert replace(kept, on_turn_start=None) == Callbacks()


def test_callbacks_as_decorators() -> None:
    brain = Brain("b", "openai:x")

    @brain.on_pre_tool_use
    def check(use: PreToolUse) -> Deny | None:
        return None

    assert unwrap(cast("Any", brain.callbacks.on_pre_tool_use)) is check
    for name in ("on_turn_start", "on_usage", "on_post_tool_use", "on_stream_chunk", "on_turn_end"):
        callback: Callable[[Any], None] = lambda told: None  # noqa: E731
        assert getattr(brain, name)(callback) is callback
        assert unwrap(getattr(brain.callbacks, name)) is callback
    with pytest.raises(InvalidInput, match="already has one"):
        brain.on_pre_tool_use(check)


async def async_items(told: Any) -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"callbacks": {"on_turn_begin": on_turn_start}}, ["on_turn_begin", "on_turn_start, on_usage"]),
        ({"callbacks": SimpleNamespace(on_tool=on_turn_start)}, ["on_tool", "on_pre_tool_use"]),
        ({"callbacks": {"on_usage": 3}}, ["on_usage", "function"]),
        ({"callbacks": {"on_usage": async_items}}, ["on_usage", "async generator"]),
        ({"name": "two words"}, ["name", "two words"]),
        ({"model": ""}, ["model", "provider:model"]),
        ({"model": "gpt-5"}, ["model", "did you mean openai:gpt-5?"]),
        ({"model": "opnai:gpt-5"}, ["model", "did you mean openai:gpt-5?"]),
        ({"auxiliary_model": "claude-x"}, ["model", "did you mean anthropic:claude-x?"]),
        ({"model": 3}, ["model", "Provider"]),
        ({"system_prompt": 3}, ["system_prompt"]),
        ({"approvals": (Effect.DESTRUCTIVE,)}, ["approvals", "tuple", "Approvals(...)"]),
        ({"approvals": None}, ["approvals", "Approvals(...)"]),
        ({"children": 3}, ["children", "int", "Children(...)"]),
    ],
)
def test_bad_fields_are_named(fields: dict[str, Any], words: list[str]) -> None:
    given: dict[str, Any] = {"name": "b", "model": "openai:x"} | fields
    with pytest.raises(InvalidInput) as refused:
        Brain(**given)

    for word in words:
        assert word in str(refused.value)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory with two modules, off the import path."""
    (tmp_path / "brain_here.py").write_text(
        "from brainq.engine.brain.brain import Brain\n"
        "brain = Brain('first', 'openai:x')\n"
        "class inner:\n    other = Brain('second', 'openai:x')\n"
        "number = 3\n"
    )
    (tmp_path / "brain_broken.py").write_text("import no_such_module_at_all\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    yield tmp_path
    for name in ("brain_here", "brain_broken"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("reference", "name"),
    [("brain_here", "first"), ("brain_here:brain", "first"), ("brain_here:inner.other", "second")],
)
def test_a_brain_is_found_by_name_from_the_working_directory(here: Path, reference: str, name: str) -> None:
    assert load_brains(reference).default.name == name


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("", ["module:attr"]),
        ("no_such_brain_module", ["no_such_brain_module", "no_such_brain_module.py"]),
        ("brain_broken", ["no_such_module_at_all"]),
        ("brain_here:nope", ["'nope'", "brain_here"]),
        ("brain_here:number", ["int", "not a Brain"]),
    ],
)
def test_what_cannot_be_loaded_says_what_was_tried(here: Path, reference: str, words: list[str]) -> None:
    with pytest.raises(SetupError) as refused:
        load_brains(reference)

    for word in ["BRAINQ_APP", *words]:
        assert word in str(refused.value)
