"""The finalizer steps of a brain, in order: finalize's, memory's, and the brain's own."""

from __future__ import annotations

from collections.abc import Sequence

from brainq.brain.brain import Brain
from brainq.finalize.steps import (
    AppendCitations,
    CallTurnEnd,
    CallUsage,
    FinalStep,
    LogAnswer,
    RecordDecision,
    SendResult,
)
from brainq.memory.steps import ExtractMemories, ObserveTurn, ScheduleJudges

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
