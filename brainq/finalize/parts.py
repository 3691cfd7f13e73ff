"""The parts of a brain that its finalizer steps use, as objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from brainq.brain import Brain
from brainq.contracts.memory import AutonomousResearchLearner, MemoryExtractor
from brainq.contracts.parts import Memory
from brainq.contracts.usage import Price, no_price
from brainq.finalize.extract_model import ModelMemoryExtractor
from brainq.finalize.extract_rules import RuleMemoryExtractor
from brainq.finalize.learn import RuleResearchLearner
from brainq.providers.auxiliary import AuxiliaryModel


def _own_memories(session_id: str) -> str:
    return session_id


@dataclass(frozen=True, slots=True)
class FinalParts:
    """What a process binds once. A part that is None has no step.

    auxiliary   the model beside the turn's steps; None: everything goes by rules
    scope_of    from a session's id to whose memories its turns write
    price       of what its model calls use
    """

    extractor: MemoryExtractor | None = None
    learner: AutonomousResearchLearner | None = None
    auxiliary: AuxiliaryModel | None = None
    scope_of: Callable[[str], str] = _own_memories
    price: Price = no_price

    def scope(self, session_id: str) -> str:
        """Whose memories the session's turns write. Raises TypeError when `scope_of` gives no name."""
        found: Any = self.scope_of(session_id)
        if not isinstance(found, str) or not found:
            raise TypeError(f"Memory.scope returned {found!r} for a session; it must return a text")
        return found


def final_parts(brain: Brain, auxiliary: AuxiliaryModel | None, price: Price = no_price) -> FinalParts:
    """Turns the brain's `model` and `rules` into objects; parts of its own stay as they are."""
    memory: Memory | None = brain.memory
    if memory is None:
        return FinalParts(auxiliary=auxiliary, price=price)
    learner = RuleResearchLearner() if memory.learner == "rules" else memory.learner
    return FinalParts(_extractor(memory, auxiliary), learner, auxiliary, memory.scope_of, price)


def _extractor(memory: Memory, auxiliary: AuxiliaryModel | None) -> MemoryExtractor | None:
    if memory.extractor == "model":
        rules = RuleMemoryExtractor()
        return rules if auxiliary is None else ModelMemoryExtractor(auxiliary, rules)
    return RuleMemoryExtractor() if memory.extractor == "rules" else memory.extractor
