"""How a step's model is asked: whose word counts, and that a turn whose calls are forced can answer."""

from __future__ import annotations

import pytest

from brainq.contracts.model_options import NO_OPTIONS, ModelOptions, TurnOptions
from brainq.engine.turn.begin import check_tool_choice, step_options
from brainq.errors import InvalidInput

BRAIN = ModelOptions(temperature=1, seed=7, extra_headers={"x-team": "blue"})


def test_step_over_turn_over_brain() -> None:
    turn, step = TurnOptions(temperature=0.5, top_p=0.9), ModelOptions(temperature=0)
    assert step_options(1, BRAIN, TurnOptions()) == BRAIN
    assert step_options(1, BRAIN, turn).explicit() == BRAIN.explicit() | {"temperature": 0.5, "top_p": 0.9}
    assert step_options(1, BRAIN, turn, step).explicit() == BRAIN.explicit() | {"temperature": 0, "top_p": 0.9}


@pytest.mark.parametrize("choice", ["required", "look"])
def test_what_forces_a_call_holds_for_the_first_step(choice: str) -> None:
    for brain, turn in (
        (ModelOptions(tool_choice=choice), TurnOptions()),
        (NO_OPTIONS, TurnOptions(tool_choice=choice)),
    ):
        assert [step_options(step, brain, turn).tool_choice for step in (1, 2, 3)] == [choice, None, None]


@pytest.mark.parametrize("choice", ["auto", "none", None])
def test_what_forces_none_holds_for_all(choice: str | None) -> None:
    turn = TurnOptions(tool_choice=choice)
    assert [step_options(step, NO_OPTIONS, turn).tool_choice for step in (1, 2, 3)] == [choice] * 3


def test_a_step_may_be_forced_by_itself() -> None:
    chosen = ModelOptions(tool_choice="required")
    assert step_options(3, NO_OPTIONS, TurnOptions(tool_choice="none"), chosen).tool_choice == "required"


@pytest.mark.parametrize(
    ("choice", "tools", "words"),
    [
        ("lok", ["look", "pay"], "did you mean 'look'?"),
        ("zzz", ["look", "pay"], "the turn's tools are look, pay"),
        ("look", [], "the turn's tools are none"),
    ],
)
def test_a_tool_that_is_not_there_cannot_be_forced(choice: str, tools: list[str], words: str) -> None:
    with pytest.raises(InvalidInput, match="tool_choice") as refusal:
        check_tool_choice(TurnOptions(tool_choice=choice), tools)
    assert words in refusal.value.problem


@pytest.mark.parametrize("choice", ["auto", "none", "required", "look", None])
def test_words_need_no_tool(choice: str | None) -> None:
    check_tool_choice(TurnOptions(tool_choice=choice), ["look"])
