"""What the turn taught."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from brainq.brain import Brain
from brainq.contracts.memory import AutonomousResearchLearner, Observation
from brainq.contracts.recorded import RecordedTurn
from brainq.finalize.recorded import recorded_turn
from brainq.finalize.step import StepContext
from brainq.providers.within import within

LIMIT_S = 60.0


class ObserveTurn:
    """Asks the learner and writes its observations, in one transaction with the step.

    However the turn ended: one without an answer leaves a question open. Only a turn that never began, because it
    was cancelled in the queue, is passed over: the log has no message of it to learn from.
    """

    name = "learner"
    limit_s: float | None = None  # its part has a limit of its own

    def __init__(self, limit_s: float = LIMIT_S) -> None:
        self._limit_s = limit_s

    def is_configured(self, brain: Brain) -> bool:
        return brain.memory is not None and brain.memory.learner is not None

    def run(self, context: StepContext) -> None:
        parts, turn, claim = context.parts, context.turn, context.claim
        source_event_id = context.records.source_event_id(claim.turn_id)
        if parts is None or parts.learner is None or not source_event_id:
            return
        recorded = recorded_turn(turn, context.conversation(), turn.context_pack_json, claim.step_key)
        items = _observed(parts.learner, recorded, source_event_id, self._limit_s)
        context.records.record_observations(claim, parts.scope(claim.session_id), source_event_id, items)


def _observed(
    learner: AutonomousResearchLearner, turn: RecordedTurn, source_event_id: str, limit_s: float
) -> Sequence[Observation]:
    found: list[Any] = within(limit_s, "learner", lambda: list(learner.observe_turn(turn, source_event_id)))
    for item in found:
        if not isinstance(item, Observation):
            raise TypeError(f"observe_turn returned a {type(item).__name__}; it must return Observations")
    return found
