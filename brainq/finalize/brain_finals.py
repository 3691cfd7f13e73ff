"""What a brain's ended turns are seen off with."""

from __future__ import annotations

from dataclasses import dataclass

from brainq.brain import Brain
from brainq.finalize.order import StepOrder
from brainq.finalize.parts import FinalParts


@dataclass(frozen=True, slots=True)
class BrainFinals:
    """All that differs between the ended turns of one brain and those of another."""

    brain: Brain
    order: StepOrder
    parts: FinalParts | None = None

    @property
    def redacts(self) -> bool:
        return self.brain.redact_logs
