"""Checks of a Brain's arguments. Each raises InvalidInput that names the field."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar, cast, get_args

from pydantic import ValidationError

from brainq.contracts.base import first_problem
from brainq.contracts.brain import AfterUntrusted, ThinkLevel
from brainq.contracts.build import Pin
from brainq.contracts.callbacks import CALLBACK_NAMES, Callbacks, TurnInfo
from brainq.contracts.evaluation import DecisionStore
from brainq.contracts.model_options import NO_OPTIONS, ModelOptions
from brainq.engine.models.providers import Provider, missing_of_provider, split_model
from brainq.errors import InvalidInput
from brainq.runtime.processes.threads import as_sync

F = TypeVar("F", bound=Callable[..., Any])
V = TypeVar("V")
MAX_LIVE_TURNS = 1_000_000
SystemPrompt = str | Callable[[TurnInfo], str] | Callable[[TurnInfo], Awaitable[str]]


def checked_part(field: str, given: object, kind: type[V]) -> V:
    if not isinstance(given, kind):
        raise InvalidInput(field, f"must be {kind.__name__}(...), got {type(given).__name__}")
    return given


def checked_store(given: DecisionStore) -> DecisionStore:
    if not all(callable(getattr(given, name, None)) for name in ("write", "get")):
        raise InvalidInput("decisions", f"a {type(given).__name__} is not a store: it needs `write` and `get`")
    return given


def checked_after_untrusted(given: object) -> AfterUntrusted:
    if given not in get_args(get_args(AfterUntrusted)[0]) and given is not None:
        raise InvalidInput("after_untrusted", f"{given!r} is not one of None, 'ask' and 'ask_in_session'")
    return cast("AfterUntrusted", given)


def checked_pin(given: object) -> Pin | None:
    if given is not None and given not in get_args(Pin):
        raise InvalidInput("pin", f"{given!r} is unknown; use None, 'turn' or 'session'")
    return cast("Pin | None", given)


def checked_prompt_id(prompt_id: object, prompts: Mapping[str, object]) -> str | None:
    if prompt_id is None:
        return None
    if not isinstance(prompt_id, str) or prompt_id not in prompts:
        known = f"they are {', '.join(sorted(prompts))}" if prompts else "there are none"
        raise InvalidInput("prompt_id", f"{prompt_id!r} is not one of the brain's prompts; {known}")
    return prompt_id


def checked_cap(field: str, given: object) -> int | None:
    """Return a limit, or None for no limit."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= MAX_LIVE_TURNS:
        raise InvalidInput(
            field, f"must be a whole number from 1 to {MAX_LIVE_TURNS:,}, or None for no cap, got {given!r}"
        )
    return given


def checked_model(model: object) -> str | Provider:
    if isinstance(model, str):
        if not model.strip():
            raise InvalidInput(
                "model", "must be provider:model, such as 'openai:gpt-5', or a Provider, got an empty text"
            )
        split_model(model)
        return model
    if missing := missing_of_provider(model):
        raise InvalidInput(
            "model",
            f"must be provider:model, such as 'openai:gpt-5', or a Provider, got {type(model).__name__}, which has no "
            f"{' and no '.join(missing)}",
        )
    return cast("Provider", model)


def checked_options(given: object) -> ModelOptions:
    if given is None:
        return NO_OPTIONS
    if isinstance(given, ModelOptions):
        return given
    if not isinstance(given, Mapping):
        raise InvalidInput(
            "options", f"must be ModelOptions(...) or a mapping of its fields, got {type(given).__name__}"
        )
    try:
        return ModelOptions.model_validate(given)
    except ValidationError as failure:
        raise first_problem(failure.errors(include_url=False), given, under="options") from None


def index_by_name(field: str, given: Iterable[V], name_of: Callable[[V], str]) -> dict[str, V]:
    """Return the items by their names, which must differ."""
    found: dict[str, V] = {}
    for item in given:
        if name_of(item) in found:
            raise InvalidInput(field, f"{name_of(item)!r} is there twice; give each a name of its own")
        found[name_of(item)] = item
    return found


def checked_level(level: ThinkLevel | str) -> ThinkLevel:
    try:
        return ThinkLevel(level)
    except ValueError:
        levels = ", ".join(ThinkLevel)
        raise InvalidInput("thinking", f"{level!r} is not a level; use one of {levels}") from None


def checked_prompt(prompt: object) -> SystemPrompt:
    if not isinstance(prompt, str) and not callable(prompt):
        raise InvalidInput("system_prompt", f"a {type(prompt).__name__}; use a text or a function of TurnInfo")
    return cast("SystemPrompt", prompt if isinstance(prompt, str) else as_sync(prompt))


def read_callbacks(given: object) -> Callbacks:
    """Read callbacks from a Callbacks, a mapping, or an object with some of the `on_...` functions."""
    if given is None:
        return Callbacks()
    if isinstance(given, Mapping):
        found = dict(cast("Mapping[str, object]", given))
    else:
        named = set(CALLBACK_NAMES) | {name for name in dir(given) if name.startswith("on_")}
        found = {name: getattr(given, name, None) for name in sorted(named)}
    unknown = sorted(set(found) - set(CALLBACK_NAMES))
    if unknown:
        raise InvalidInput(
            "callbacks", f"{', '.join(unknown)} is unknown; the callbacks are {', '.join(CALLBACK_NAMES)}"
        )
    checked = {name: checked_callback(name, value) for name, value in found.items() if value is not None}
    return Callbacks(**checked)


def checked_callback(name: str, callback: F | object) -> F:
    if not callable(callback):
        raise InvalidInput(name, f"a {type(callback).__name__} cannot be called; use a function")
    if inspect.isasyncgenfunction(callback):
        raise InvalidInput(name, "it is an async generator; use def or async def")
    return cast("F", as_sync(callback))
