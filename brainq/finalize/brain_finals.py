"""What a brain's ended turns are seen off with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from brainq.finalize.order import StepOrder
from brainq.finalize.parts import FinalParts


@dataclass(frozen=True, slots=True)
class BrainFinals:
    """All that differs between the ended turns of one brain and those of another."""

    brain: Any
    order: StepOrder
    parts: FinalParts | None = None

    @property
    def redacts(self) -> bool:
        return bool(getattr(self.brain, "redact_logs", False))
