"""What is told of a deployment's brains."""

from __future__ import annotations

from brainq.brain import Brain
from brainq.brains import Brains
from brainq.contracts.brain_seen import BrainSeen, ToolSeen


def brains_seen(brains: Brains) -> tuple[BrainSeen, ...]:
    """The default one first."""
    return tuple(_seen(brain, brain is brains.default) for brain in brains)


def _seen(brain: Brain, is_default: bool) -> BrainSeen:
    return BrainSeen(
        name=brain.name,
        model=brain.model if isinstance(brain.model, str) else brain.model.name,
        is_default=is_default,
        tools=tuple(
            ToolSeen(name=spec.name, effect=spec.effect, description=spec.description)
            for spec in brain.tools.specs.values()
        ),
        max_live_turns=brain.max_live_turns,
    )
