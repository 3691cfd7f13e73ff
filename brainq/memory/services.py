"""A brain's extractor, learner and auxiliary model, as objects that the steps of memory use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from brainq.brain.brain import Brain
from brainq.contracts.brain import Memory
from brainq.contracts.memory import AutonomousResearchLearner, MemoryExtractor
from brainq.contracts.model import Price, unknown_price
from brainq.memory.extractors import ModelMemoryExtractor, RuleMemoryExtractor
from brainq.memory.learner import RuleResearchLearner
from brainq.models.auxiliary import AuxiliaryModel


def _session_scope(session_id: str) -> str:
    return session_id


@dataclass(frozen=True, slots=True)
class MemoryServices:
    """What a process binds once. A part that is None has no step.

    auxiliary   the model beside the turn's steps; None: everything goes by rules
    scope_of    from a session's id to whose memories its turns write
    price       of what its model calls use
    """

    extractor: MemoryExtractor | None = None
    learner: AutonomousResearchLearner | None = None
    auxiliary: AuxiliaryModel | None = None
    scope_of: Callable[[str], str] = _session_scope
    price: Price = unknown_price

    def memory_scope(self, session_id: str) -> str:
        """Whose memories the session's turns write. Raises TypeError when `scope_of` gives no name."""
        found: Any = self.scope_of(session_id)
        if not isinstance(found, str) or not found:
            raise TypeError(f"Memory.scope returned {found!r} for a session; it must return a text")
        return found


def make_memory_services(
    brain: Brain, auxiliary: AuxiliaryModel | None, price: Price = unknown_price
) -> MemoryServices:
    """Turns the brain's `model` and `rules` into objects; parts of its own stay as they are."""
    memory: Memory | None = brain.memory
    if memory is None:
        return MemoryServices(auxiliary=auxiliary, price=price)
    learner = RuleResearchLearner() if memory.learner == "rules" else memory.learner
    return MemoryServices(_extractor(memory, auxiliary), learner, auxiliary, memory.scope_of, price)


def _extractor(memory: Memory, auxiliary: AuxiliaryModel | None) -> MemoryExtractor | None:
    if memory.extractor == "model":
        rules = RuleMemoryExtractor()
        return rules if auxiliary is None else ModelMemoryExtractor(auxiliary, rules)
    return RuleMemoryExtractor() if memory.extractor == "rules" else memory.extractor
