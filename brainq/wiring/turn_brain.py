"""Which brain a turn has, where its id is all that is known."""

from __future__ import annotations

from functools import lru_cache

from brainq.brain import Brain
from brainq.brains import Brains
from brainq.store.repositories.turns import Turns

KEPT = 2048  # a turn keeps its brain for good


class TurnBrains:
    """As SQL has it, which is asked once."""

    def __init__(self, brains: Brains, turns: Turns) -> None:
        self._brains = brains
        self._turns = turns
        self._asked = lru_cache(KEPT)(self._ask)

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
