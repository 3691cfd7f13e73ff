"""How long a call has after its token expired, before it is cut off."""

from __future__ import annotations

from dataclasses import dataclass

from brainq.calls.attempt import COOPERATIVE_GRACE_S, GRACE_S
from brainq.tools.tool import Tool


@dataclass(frozen=True, slots=True)
class Grace:
    """After its deadline a tool that takes a RunContext has 0.25 s, another one 0.05 s. After a cancel one that takes a
    RunContext, or that changes something, has `cancel_s`: how it ends is worth more than the wait."""

    cancel_s: float = COOPERATIVE_GRACE_S

    def of(self, tool: Tool, *, is_cancelled: bool) -> float:
        """Seconds."""
        usual = GRACE_S if tool.context_param is None else COOPERATIVE_GRACE_S
        if is_cancelled and (tool.context_param is not None or not tool.spec.effect.is_read):
            return max(usual, self.cancel_s)
        return usual
