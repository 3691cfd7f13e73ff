"""The brains of a deployment: they are loaded by name, chosen for a turn, and described."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeAlias, TypeVar, cast

from brainq.contracts.brain import BrainDescription, ToolDescription
from brainq.contracts.turn import TurnRequest
from brainq.engine.brain.brain import Brain
from brainq.engine.models.providers import Provider
from brainq.errors import BrainNotLoaded, InvalidInput
from brainq.runtime.observe.tracebacks import user_traceback, where_raised
from brainq.runtime.settings.environment import TYPED_OPTIONS
from brainq.runtime.text.failures import failure_text

T = TypeVar("T")
U = TypeVar("U")
DEFAULT_ATTR = "brain"
DEFAULT_APP = "app:brain"
"""The default of the setting. Users who see it in an error may not know it."""


class ByBrain(Generic[T]):
    """One item for each brain, by the brain's name. The first belongs to the default brain, which turns without a
    brain's name have."""

    def __init__(self, items: Mapping[str, T]) -> None:
        """Take at least one item."""
        self._items = dict(items)
        self._default = next(iter(self._items.values()))
        self.of: Callable[[str | None], T | None] = {**items, "": self._default, None: self._default}.get
        """Returns the item of the brain of this name, or of the default brain. Returns None for a brain that is not
        here."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the brains, that of the default brain first."""
        return tuple(self._items)

    @property
    def default(self) -> T:
        return self._default

    def each(self, make: Callable[[T], U]) -> ByBrain[U]:
        """Return the result of `make` for each item."""
        return ByBrain({name: make(item) for name, item in self._items.items()})

    def __iter__(self) -> Iterator[T]:
        return iter(self._items.values())

    def __len__(self) -> int:
        return len(self._items)


class Brains(ByBrain[Brain]):
    """The brains of this process.

    keep_names   whether turns name their brain. They do not if there is one Brain and no list, which may be renamed
                 while its turns wait
    """

    def __init__(self, items: Mapping[str, Brain], *, keep_names: bool) -> None:
        super().__init__(items)
        self.keep_names = keep_names


BrainsArgument: TypeAlias = Brain | Iterable[Brain] | Mapping[str, Brain] | Brains
"""One brain; several, of which the first is the default; or several by their names."""


def live_turn_caps(brains: Brains) -> tuple[dict[str, int], int | None]:
    """Return the live-turn caps by brain for turns that name their brain, and the cap of the only brain if turns name
    none."""
    caps = {brain.name: brain.max_live_turns for brain in brains if brain.max_live_turns is not None}
    return (caps, None) if brains.keep_names else ({}, brains.default.max_live_turns)


def read_brains(given: object) -> Brains:
    """Return the brains. Raises InvalidInput naming an object that is not a brain, or the name of two brains."""
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
    """Return the brain of this name, or the default one for None. Raises InvalidInput naming the known brains."""
    found = brains.of(name)
    if found is None:
        raise InvalidInput("brain", f"there is no brain {name!r}; the brains are {', '.join(brains.names)}")
    return found


def with_brain_name(brains: Brains, request: TurnRequest) -> TurnRequest:
    """Return the request as it is stored: with the name of its brain, whatever the default is later (see
    `Brains.keep_names`).

    Raises InvalidInput for an unknown brain.
    """
    brain = require_brain(brains, request.brain)
    name = brain.name if brains.keep_names else None
    return request if request.brain == name else request.model_copy(update={"brain": name})


def complete_request(brains: Brains, request: TurnRequest) -> TurnRequest:
    """Return the request with its brain's values in fields that it leaves open."""
    brain = brains.of(request.brain)
    return request if brain is None else brain.complete(request)


def unknown_brain() -> Brain:
    """Return a stand-in for a brain that is not here and that nobody waits for any longer. It keeps content out of SQL,
    as the brain may have done."""
    return Brain("unknown", "offline:rules", redact_logs=True)


def _check_names(given: Mapping[object, object]) -> Brains:
    for name, brain in given.items():
        if isinstance(brain, Brain) and brain.name != name:
            raise InvalidInput("brains", f"{name!r} has a brain named {brain.name!r}; use the same name for both")
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
        raise InvalidInput("brains", "there are none; give at least one")
    return Brains(found, keep_names=True)


def _with_article(given: Any) -> str:
    name = type(given).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def describe_brains(brains: Brains) -> tuple[BrainDescription, ...]:
    """Return the descriptions of the brains, the default one first."""
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


def load_brains(reference: str) -> Brains:
    """Return the brain named `module:attr`, or all of a list, tuple or mapping of brains. `:attr` defaults to `:brain`.

    Puts the working directory on the import path, as Celery does. Raises BrainNotLoaded, which says who named the brain
    and what was tried, or in which file and line the module failed. That error is its cause.
    """
    module_name, _, attr = reference.strip().partition(":")
    attr = attr or DEFAULT_ATTR
    tried = f"tried {attr!r} of module {module_name!r} (working directory {os.getcwd()})"
    if not module_name:
        raise BrainNotLoaded("no brain was named; set BRAINQ_APP to module:attr, such as BRAINQ_APP=myapp.agent:brain")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name != module_name.partition(".")[0] and error.name != module_name:
            raise _import_failure(reference, error) from error
        raise BrainNotLoaded(
            f"{_reference_source(reference)}: there is no module {error.name!r} in {os.getcwd()}, nor is it installed"
            f"{_remedy(reference, module_name)}"
        ) from error
    except Exception as error:
        raise _import_failure(reference, error) from error
    for part in attr.split("."):
        if not hasattr(found, part):
            raise BrainNotLoaded(
                f"{_reference_source(reference)}: the module has no {attr!r}; {tried}{_brains_in_module(module_name)}"
            )
        found = getattr(found, part)
    try:
        return read_brains(found)
    except InvalidInput as wrong:
        raise BrainNotLoaded(
            f"{_reference_source(reference)}: {wrong.problem}; {tried}{_brains_in_module(module_name)}"
        ) from wrong


_NONE_NAMED = "no brain was named"


def _reference_source(reference: str) -> str:
    """Return the setting or option that names the brain."""
    typed = f"-A {reference}"
    if TYPED_OPTIONS.get("BRAINQ_APP") == typed and os.environ.get("BRAINQ_APP") == reference:
        return typed
    if os.environ.get("BRAINQ_APP"):
        return f"BRAINQ_APP={reference!r}"
    if reference == DEFAULT_APP:
        return f"{_NONE_NAMED}, and the default, {reference!r}"
    return f"app={reference!r} (BRAINQ_APP)"


def _remedy(reference: str, module_name: str) -> str:
    if os.environ.get("BRAINQ_APP") or reference != DEFAULT_APP:
        file = f"{module_name.partition('.')[0]}.py"
        return f". Run this where {file} is, or name another one: -A module:variable, or BRAINQ_APP"
    return (
        ". Run this where app.py is, or name the brain: BRAINQ_APP=module:attr (in .env, too), -A module:attr, or "
        "Client(brain=...)"
    )


def _brains_in_module(module_name: str) -> str:
    """Return the names of the brains in a module that was imported."""
    held = vars(sys.modules[module_name])
    found = [f"{module_name}:{name}" for name, value in held.items() if isinstance(value, Brain)]
    return f". There is {', '.join(found[:5])}" if found else ""


def _import_failure(reference: str, error: Exception) -> BrainNotLoaded:
    """Return the error with the place in the user's own code that failed. Frames of brainq and of the import system are
    left out."""
    text, where = failure_text(error), where_raised(error)
    if isinstance(error, SyntaxError):
        text, where = f"{type(error).__name__}: {error.msg}", f"{error.filename}:{error.lineno}"
    named = f"{_reference_source(reference)} could not be imported: "
    # The file is enough for the default brain: the mistake is not that no other brain was chosen.
    source = "" if named.startswith(_NONE_NAMED) and where else named
    return BrainNotLoaded(f"{source}{where}: {text}", user_traceback(error))


def models_of(brains: Iterable[Brain]) -> list[str | Provider]:
    """Return the models that the brains call, in steps and beside them."""
    return [model for brain in brains for model in (brain.model, brain.auxiliary_model) if model is not None]
