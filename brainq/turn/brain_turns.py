"""What a brain's turns are worked on with."""

from __future__ import annotations

from dataclasses import dataclass

from brainq.brain import Brain
from brainq.turn.auxiliary import AuxiliaryWork
from brainq.turn.think import Thinker
from brainq.turn.thinking import ThinkingManager


@dataclass(frozen=True, slots=True)
class BrainTurns:
    """All that differs between the turns of one brain and those of another."""

    brain: Brain
    thinker: Thinker
    auxiliary: AuxiliaryWork
    thinking: ThinkingManager
