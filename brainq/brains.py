"""The brains of a deployment, and which of them a turn is for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, cast

from brainq.brain import Brain
from brainq.by_brain import ByBrain
from brainq.contracts.turn import TurnRequest
from brainq.errors import InvalidInput


class Brains(ByBrain[Brain]):
    """The brains of this process.

    keep_names   turns name theirs. Not where there is one Brain and no list: it may be renamed while its turns wait
    """

    def __init__(self, items: Mapping[str, Brain], *, keep_names: bool) -> None:
        super().__init__(items)
        self.keep_names = keep_names


GivenBrains: TypeAlias = Brain | Iterable[Brain] | Mapping[str, Brain] | Brains
"""One brain; several, of which the first is the default; or several by their names."""


def caps_of(brains: Brains) -> tuple[dict[str, int], int | None]:
    """The caps of brains whose turns name theirs, by their names; and that of the only one, whose turns name none."""
    caps = {brain.name: brain.max_live_turns for brain in brains if brain.max_live_turns is not None}
    return (caps, None) if brains.keep_names else ({}, brains.default.max_live_turns)


def read_brains(given: object) -> Brains:
    """Raises InvalidInput naming what is no brain, or what two of them share."""
    if isinstance(given, Brains):
        return given
    if isinstance(given, Brain):
        return Brains({given.name: given}, keep_names=False)
    if isinstance(given, Mapping):
        return _named(cast("Mapping[object, object]", given))
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InvalidInput(
            "brains", f"{_kind(given)} is not a Brain; make it with brain = Brain('name', model)"
        )
    return _different(cast("Iterable[object]", given))


def brain_named(brains: Brains, name: str | None) -> Brain:
    """The brain of this name; None: the default one. Raises InvalidInput naming those there are."""
    found = brains.of(name)
    if found is None:
        raise InvalidInput("brain", f"there is no brain {name!r}; the brains are {', '.join(brains.names)}")
    return found


def naming_its_brain(brains: Brains, request: TurnRequest) -> TurnRequest:
    """The request as it is kept: with the name of its brain, whatever the default is later; see `Brains.keep_names`.

    Raises InvalidInput for a brain that there is not.
    """
    brain = brain_named(brains, request.brain)
    name = brain.name if brains.keep_names else None
    return request if request.brain == name else request.model_copy(update={"brain": name})


def completed(brains: Brains, request: TurnRequest) -> TurnRequest:
    """The request with what its brain says where it says nothing."""
    brain = brains.of(request.brain)
    return request if brain is None else brain.complete(request)


def unknown_brain() -> Brain:
    """Stands for one that is not here and is waited for no longer. That one may have kept content out of SQL."""
    return Brain("unknown", "offline:rules", redact_logs=True)


def _named(given: Mapping[object, object]) -> Brains:
    for name, brain in given.items():
        if isinstance(brain, Brain) and brain.name != name:
            raise InvalidInput(
                "brains", f"{name!r} has a brain of the name {brain.name!r}; make the two the same"
            )
    return _different(given.values())


def _different(given: Iterable[object]) -> Brains:
    found: dict[str, Brain] = {}
    for brain in given:
        if not isinstance(brain, Brain):
            raise InvalidInput("brains", f"{_kind(brain)} among them is not a Brain")
        if brain.name in found:
            raise InvalidInput("brains", f"two are named {brain.name!r}; give each a name of its own")
        found[brain.name] = brain
    if not found:
        raise InvalidInput("brains", "there is none; name one at least")
    return Brains(found, keep_names=True)


def _kind(given: Any) -> str:
    name = type(given).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
