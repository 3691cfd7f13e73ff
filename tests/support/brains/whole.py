"""A brain with every optional part. Its finalizer steps and judge wait at gates before and after their effect.

order("memory.before", gate)    the next worker at the step waits there
order("memory.after", gate)     it waits once the effect is committed, before the chain continues
"""

from __future__ import annotations

import os
from typing import Any

from brainq import Brain, Callbacks, Effect, Memory, PromptTemplate, ScriptedProvider
from brainq.app.wiring import finalizer
from brainq.contracts.callbacks import TurnEnd, UsageInfo
from brainq.contracts.evaluation import JudgeCase, Judgement
from brainq.contracts.model import ModelRequest
from brainq.engine.memory.steps import make_memory_services
from brainq.engine.models.scripted import ModelReply, says
from tests.support.brains import diary

PROMPT_ID = "judged"
MESSAGE = "I prefer tea. My cat is called Miso. What do you know about the harbour?"
PACK = {"relevant_facts": ["The harbour closes at nine."], "preferences": ["short answers"]}


def _called_back(name: str, turn_id: str, step_key: str) -> None:
    diary.note(name, turn=turn_id, key=step_key)


def on_usage(info: UsageInfo) -> None:
    _called_back("usage", info.turn_id, info.step_key)


def on_turn_end(info: TurnEnd) -> None:
    _called_back("end", info.turn_id, info.step_key)


def answer(request: ModelRequest) -> ModelReply:
    return says("The harbour closes at nine.")


class Own:
    """A judge of the brain, which a test may stop at a gate."""

    name = "own"

    def judge(self, case: JudgeCase) -> Judgement:
        diary.note("own judge", turn=case.turn_id)
        diary.pass_gate(diary.ordered("own.judge"))
        return Judgement(score=0.5, reason=f"{len(case.transcript.splitlines())} lines", method="rules")


brain = Brain(
    "whole",
    ScriptedProvider(rules=answer, name="whole"),
    "You know the harbour.",
    callbacks=Callbacks(on_usage=on_usage, on_turn_end=on_turn_end),
    show_citations=True,
    memory=Memory(),
    prompts=[PromptTemplate(id=PROMPT_ID, text="You know the harbour.", judges=("relevance", "own"))],
    judges=[Own()],
)


@brain.tool(effect=Effect.READ_ONLY)
def get_context_pack(query: str) -> dict[str, Any]:
    """Context.

    Args:
        query: words
    """
    return PACK


def _hold(step: Any) -> None:
    """Put gates around a step's `run`, at which a test injects a fault into a real worker."""
    run = step.run

    def held(self: Any, context: Any) -> None:
        turn = context.claim.turn_id
        for place in ("before", "after"):
            if place == "after":
                run(self, context)
            gate = diary.ordered(f"{self.name}.{place}")
            if gate:
                diary.note(f"{self.name}.{place}", turn=turn)
                diary.pass_gate(gate)

    step.run = held


if os.environ.get("BRAINQ_APP", "").startswith(__name__):  # in its workers alone, not where a test imports it
    for made in finalizer.steps_of(brain, make_memory_services(brain, None)):
        _hold(type(made))
