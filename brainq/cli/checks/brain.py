"""Whether the brain loads, and what it brings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from brainq.brain_loading import load_brain
from brainq.cli.style import counted
from brainq.errors import BrainqError
from brainq.preflight.check import Check, fail, ok
from brainq.preflight.model import check_model
from brainq.settings import Settings


def check_brain(settings: Settings) -> Iterator[Check]:
    try:
        brain = load_brain(settings.app)
    except BrainqError as error:
        yield fail("brain", str(error), "name your brain with -A module:variable or BRAINQ_APP")
        return
    specs = brain.tools.specs.values()
    effects = Counter(spec.effect.value for spec in specs)
    tools = ", ".join(f"{count} {effect}" for effect, count in effects.items())
    yield ok(
        "brain",
        f"{settings.app}: {brain.name!r}, {counted(len(specs), 'tool')}" + (f" ({tools})" if tools else ""),
    )
    yield check_model(brain.model)
    if brain.auxiliary_model is not None:
        yield replace(check_model(brain.auxiliary_model), name="auxiliary model")
