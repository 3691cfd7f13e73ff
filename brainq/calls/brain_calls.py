"""What the calls of a brain's tools are run with."""

from __future__ import annotations

from dataclasses import dataclass

from brainq.brain import Brain
from brainq.calls.settle import CallSettler
from brainq.calls.start import Starts
from brainq.contracts.claim import CallClaim
from brainq.tools.opening import MEMORY_TOOL
from brainq.tools.tool import Tool


@dataclass(frozen=True, slots=True)
class BrainCalls:
    """All that differs between the calls of one brain and those of another. `memory` reads what it remembers."""

    brain: Brain
    starts: Starts
    settler: CallSettler
    memory: Tool | None

    def tool(self, claim: CallClaim) -> Tool | None:
        """What the call is of; None for a tool that the brain does not have."""
        if claim.tool == MEMORY_TOOL and claim.step == 0:
            return self.memory
        return self.brain.tools.get(claim.tool)
