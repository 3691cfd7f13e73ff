"""Two brains of one deployment that have a tool of the same name and are otherwise different."""

from __future__ import annotations

import os
from typing import Any

from brainq import Brain, ChildTurn, Effect, PromptTemplate, RunContext, ScriptedProvider
from brainq.contracts.evaluation import JudgeCase, Judgement
from brainq.testing import calls, says
from tests.support.brains import diary

APP = "tests.support.brains.pair:brains"


class Noting:
    """A finalizer step of one brain."""

    name = "noting"

    def is_configured(self, brain: Any) -> bool:
        return True

    def run(self, context: Any) -> None:
        diary.note("step", turn=context.claim.turn_id)


class Strict:
    """A judge of one brain."""

    name = "strict"

    def judge(self, case: JudgeCase) -> Judgement:
        return Judgement(score=0.25, reason="too short", method="rules")


desk = Brain(
    "desk", ScriptedProvider([calls(("where", {}), ("ask_lab", {})), says("The desk has spoken.")]), "You are the desk."
)
lab = Brain(
    "lab",
    ScriptedProvider([calls(("where", {})), says("The lab has spoken.")]),
    "You are the lab.",
    final_steps=[Noting()],
    judges=[Strict()],
    prompts=[PromptTemplate(id="strictly", text="You are the lab.", judges=("strict",))],
)


@desk.tool(effect=Effect.READ_ONLY, name="where")
def at_desk(context: RunContext) -> str:
    """Say where this runs."""
    return f"desk {context.brain} {os.getpid()}"


@desk.tool(effect=Effect.READ_ONLY)
def ask_lab() -> ChildTurn:
    """Have the lab answer."""
    return ChildTurn("Where?", brain="lab")


@lab.tool(effect=Effect.LOCAL_WRITE, isolation="process", timeout_s=60.0, name="where")
def in_lab(context: RunContext) -> str:
    """Say where this runs, in a process of its own."""
    return f"lab {context.brain} {os.getpid()}"


brains = (desk, lab)
