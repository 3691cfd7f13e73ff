"""Which brain a turn has, where its id is all that is known, and where its decision record is read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from brainq.brain.brain import Brain
from brainq.brain.brains import Brains
from brainq.contracts.evaluation import RuntimeDecisionRecord
from brainq.store.repositories.turn_records import Decisions
from brainq.store.repositories.turns import Turns

# Which brain a turn has, where its id is all that is known.

CACHED_TURNS = 2048  # a turn keeps its brain for good


class TurnBrains:
    """As SQL has it, which is asked once."""

    def __init__(self, brains: Brains, turns: Turns) -> None:
        self._brains = brains
        self._turns = turns
        self._asked = lru_cache(CACHED_TURNS)(self._ask)

    def name(self, turn_id: str) -> str | None:
        """None: the default brain's, or nobody knows the turn."""
        return self._asked(turn_id)

    def of(self, turn_id: str) -> Brain | None:
        """None for a brain that is not here."""
        return self._brains.of(self.name(turn_id))

    def redacts(self, turn_id: str) -> bool:
        """Whether SQL is to keep no content of the turn. What is not known is not kept."""
        brain = self.of(turn_id)
        return brain is None or brain.redact_logs

    def _ask(self, turn_id: str) -> str | None:
        request = self._turns.request(turn_id)
        return None if request is None else request.brain


# Where a turn's decision record is read: in its brain's own store, or in SQL.


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
