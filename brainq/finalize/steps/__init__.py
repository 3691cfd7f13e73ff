"""The finalizer's steps, one a file, in their order."""

from __future__ import annotations

from collections.abc import Sequence

from brainq.brain import Brain
from brainq.finalize.step import FinalStep
from brainq.finalize.steps.citations import AppendCitations
from brainq.finalize.steps.decision import RecordDecision
from brainq.finalize.steps.end import CallTurnEnd
from brainq.finalize.steps.judges import ScheduleJudges
from brainq.finalize.steps.learner import ObserveTurn
from brainq.finalize.steps.log import LogAnswer
from brainq.finalize.steps.memory import ExtractMemories
from brainq.finalize.steps.result import SendResult
from brainq.finalize.steps.usage import CallUsage

FIRST_STEP = AppendCitations.name
"""Of every brain's chain: a turn that is over before anybody has looked at its brain begins it, too."""


def steps_of(brain: Brain, more: Sequence[FinalStep] = ()) -> list[FinalStep]:
    """The chain of this brain: steps that are not configured are left out; `more` go before the last one."""
    steps: list[FinalStep] = [
        AppendCitations(),
        CallUsage(),
        LogAnswer(),
        SendResult(),
        ExtractMemories(),
        ObserveTurn(),
        ScheduleJudges(),
        RecordDecision(),
    ]
    return [step for step in (*steps, *more, CallTurnEnd()) if step.is_configured(brain)]
