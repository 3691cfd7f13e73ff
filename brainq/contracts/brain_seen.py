"""A brain as those see it who submit turns."""

from __future__ import annotations

from brainq.contracts.base import Wire
from brainq.contracts.effect import Effect


class ToolSeen(Wire):
    """A tool that the brain's model may call."""

    name: str
    effect: Effect
    description: str


class BrainSeen(Wire):
    """A brain of the deployment.

    model        `provider:model`, or the name of the brain's own Provider
    is_default   it has the turns that name no brain
    tools        in the order they were added
    max_live_turns   how many of its turns may be live at once; None: no cap
    """

    name: str
    model: str
    is_default: bool
    tools: tuple[ToolSeen, ...]
    max_live_turns: int | None = None
