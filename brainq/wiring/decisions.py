"""Where a turn's decision record is read: in its brain's own store, or in SQL."""

from __future__ import annotations

from dataclasses import dataclass

from brainq.contracts.decision import RuntimeDecisionRecord
from brainq.store.repositories.decisions import Decisions
from brainq.wiring.turn_brain import TurnBrains


@dataclass(frozen=True, slots=True)
class DecisionReader:
    brains: TurnBrains
    kept: Decisions

    def get(self, turn_id: str) -> RuntimeDecisionRecord | None:
        """None where there is none yet. SQL is asked for turns of brains that this process does not have."""
        brain = self.brains.of(turn_id)
        if brain is None or brain.decisions is None:
            return self.kept.get(turn_id)
        return brain.decisions.get(turn_id) or self.kept.get(turn_id)
