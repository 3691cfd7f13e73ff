"""Whether the brains load, and what they bring."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from brainq.brain import Brain
from brainq.brain_loading import load_brains
from brainq.brains import Brains
from brainq.cli.checks.mcp import check_mcp
from brainq.cli.style import counted
from brainq.errors import BrainqError
from brainq.preflight.check import Check, fail, ok
from brainq.preflight.model import check_model
from brainq.settings import Settings


def check_brains(settings: Settings) -> Iterator[Check]:
    try:
        brains = load_brains(settings.app)
    except BrainqError as error:
        yield fail("brain", str(error), "name your brain with -A module:variable or BRAINQ_APP")
        return
    for brain in brains:
        yield from _check(settings.app, brain, brains)


def _check(app: str, brain: Brain, brains: Brains) -> Iterator[Check]:
    specs = brain.tools.specs.values()
    effects = Counter(spec.effect.value for spec in specs)
    tools = ", ".join(f"{count} {effect}" for effect, count in effects.items())
    default = " (the default)" if len(brains) > 1 and brain is brains.default else ""
    yield ok(
        "brain",
        f"{app}: {brain.name!r}{default}, {counted(len(specs), 'tool')}" + (f" ({tools})" if tools else ""),
    )
    yield check_model(brain.model)
    if brain.auxiliary_model is not None:
        yield replace(check_model(brain.auxiliary_model), name="auxiliary model")
    yield from check_mcp(brain)
