"""The brains of a deployment: which of them a turn is for, one of something for each of them, and their
descriptions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeAlias, TypeVar, cast

from brainq.brain.brain import Brain
from brainq.contracts.brain import BrainDescription, ToolDescription
from brainq.contracts.turn import TurnRequest
from brainq.errors import InvalidInput

# One of something for each brain of a deployment.

T = TypeVar("T")

U = TypeVar("U")


class ByBrain(Generic[T]):
    """By the brains' names. The first is the default brain's, which has the turns that name none."""

    def __init__(self, items: Mapping[str, T]) -> None:
        """`items` has one at least."""
        self._items = dict(items)
        self._default = next(iter(self._items.values()))

    @property
    def names(self) -> tuple[str, ...]:
        """The default brain's first."""
        return tuple(self._items)

    @property
    def default(self) -> T:
        return self._default

    def of(self, name: str | None) -> T | None:
        """That of the brain of this name, or of the default brain; None for a brain that is not here."""
        return self._items.get(name) if name else self._default

    def each(self, make: Callable[[T], U]) -> ByBrain[U]:
        """What `make` makes of each."""
        return ByBrain({name: make(item) for name, item in self._items.items()})

    def __iter__(self) -> Iterator[T]:
        return iter(self._items.values())

    def __len__(self) -> int:
        return len(self._items)


# The brains of a deployment, and which of them a turn is for.


class Brains(ByBrain[Brain]):
    """The brains of this process.

    keep_names   turns name theirs. Not where there is one Brain and no list: it may be renamed while its turns wait
    """

    def __init__(self, items: Mapping[str, Brain], *, keep_names: bool) -> None:
        super().__init__(items)
        self.keep_names = keep_names


BrainsArgument: TypeAlias = Brain | Iterable[Brain] | Mapping[str, Brain] | Brains

"""One brain; several, of which the first is the default; or several by their names."""


def live_turn_caps(brains: Brains) -> tuple[dict[str, int], int | None]:
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
        return _check_names(cast("Mapping[object, object]", given))
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InvalidInput(
            "brains", f"{_with_article(given)} is not a Brain; make it with brain = Brain('name', model)"
        )
    return _distinct_brains(cast("Iterable[object]", given))


def require_brain(brains: Brains, name: str | None) -> Brain:
    """The brain of this name; None: the default one. Raises InvalidInput naming those there are."""
    found = brains.of(name)
    if found is None:
        raise InvalidInput("brain", f"there is no brain {name!r}; the brains are {', '.join(brains.names)}")
    return found


def with_brain_name(brains: Brains, request: TurnRequest) -> TurnRequest:
    """The request as it is kept: with the name of its brain, whatever the default is later; see `Brains.keep_names`.

    Raises InvalidInput for a brain that there is not.
    """
    brain = require_brain(brains, request.brain)
    name = brain.name if brains.keep_names else None
    return request if request.brain == name else request.model_copy(update={"brain": name})


def complete_request(brains: Brains, request: TurnRequest) -> TurnRequest:
    """The request with what its brain says where it says nothing."""
    brain = brains.of(request.brain)
    return request if brain is None else brain.complete(request)


def unknown_brain() -> Brain:
    """Stands for one that is not here and is waited for no longer. That one may have kept content out of SQL."""
    return Brain("unknown", "offline:rules", redact_logs=True)


def _check_names(given: Mapping[object, object]) -> Brains:
    for name, brain in given.items():
        if isinstance(brain, Brain) and brain.name != name:
            raise InvalidInput("brains", f"{name!r} has a brain of the name {brain.name!r}; make the two the same")
    return _distinct_brains(given.values())


def _distinct_brains(given: Iterable[object]) -> Brains:
    found: dict[str, Brain] = {}
    for brain in given:
        if not isinstance(brain, Brain):
            raise InvalidInput("brains", f"{_with_article(brain)} among them is not a Brain")
        if brain.name in found:
            raise InvalidInput("brains", f"two are named {brain.name!r}; give each a name of its own")
        found[brain.name] = brain
    if not found:
        raise InvalidInput("brains", "there is none; name one at least")
    return Brains(found, keep_names=True)


def _with_article(given: Any) -> str:
    name = type(given).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


# What is shown of a deployment's brains.


def describe_brains(brains: Brains) -> tuple[BrainDescription, ...]:
    """The default one first."""
    return tuple(_describe(brain, brain is brains.default) for brain in brains)


def _describe(brain: Brain, is_default: bool) -> BrainDescription:
    return BrainDescription(
        name=brain.name,
        model=brain.model if isinstance(brain.model, str) else brain.model.name,
        is_default=is_default,
        tools=tuple(
            ToolDescription(name=spec.name, effect=spec.effect, description=spec.description)
            for spec in brain.tools.specs.values()
        ),
        max_live_turns=brain.max_live_turns,
    )
