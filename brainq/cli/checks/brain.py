"""Whether the brain loads, and what it brings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from brainq.brain import load_brain
from brainq.cli.checks.check import Check, fail, ok, warn
from brainq.cli.style import counted
from brainq.errors import BrainqError
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
    yield from _model(settings, brain.model)


def _model(settings: Settings, model: object) -> Iterator[Check]:
    from brainq.providers.base import Provider
    from brainq.providers.resolve import resolve_model

    if isinstance(model, Provider):
        yield ok("model", f"{model.name}, an object of the brain's own")
        return
    try:
        provider, name = resolve_model(str(model), None)
    except BrainqError as error:
        yield warn("model", str(error), "workers need this; install or set it where they run")
        return
    yield ok("model", f"{provider.name}:{name}")
