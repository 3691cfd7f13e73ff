"""Who is told of calls that no worker ended."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from brainq import Brain, Effect, ScriptedProvider
from brainq.contracts.callbacks import PostToolUse
from brainq.contracts.claim import CallRef
from brainq.contracts.outcome import ToolSuccess
from brainq.people.posthook import PostHook
from brainq.testing import says
from tests.support.stand_in import stand_in

REF = CallRef("s1", "turn-1", "c1-0")


def hooked(told: list[PostToolUse]) -> PostHook:
    brain = Brain("shop", ScriptedProvider([says("Hi.")]), callbacks={"on_post_tool_use": told.append})

    @brain.tool(effect=Effect.READ_ONLY)
    def ask(name: str) -> str:
        "Ask somebody."
        return name

    def arguments(ref: CallRef) -> dict[str, Any]:
        return {"name": "Ann"}

    return PostHook(lambda ref: brain, stand_in(SimpleNamespace(arguments=arguments)))


@pytest.mark.parametrize(
    ("word", "is_told"),
    [("SETTLED", True), ("EARLY", True), ("LATE", False), ("USED", False), ("GONE", False)],
)
def test_the_hook_hears_of_a_result_that_is_the_calls_also_when_it_came_early(
    word: str, is_told: bool
) -> None:
    told: list[PostToolUse] = []
    hooked(told).ready(REF, "ask")(word, ToolSuccess(value="7"))
    assert [(use.call.name, use.call.arguments, use.outcome) for use in told] == (
        [("ask", {"name": "Ann"}, ToolSuccess(value="7"))] if is_told else []
    )
