"""The options of a submit and the filters of a list of turns, each as one type."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Any, Literal, TypedDict, TypeVar, cast

from brainq.contracts.file import File
from brainq.contracts.history import Sort
from brainq.contracts.message import Message
from brainq.contracts.model_options import ModelOptions, OptionsFields
from brainq.contracts.tool import ClientTool
from brainq.contracts.turn import (
    Limits,
    LimitsFields,
    LimitsOverride,
    OnBusy,
    OutputSchema,
    Priority,
    TurnKind,
    TurnRequest,
)
from brainq.errors import InvalidInput

Cancelled = Literal["cancelled", "requested", "ended"]
"""The outcome of a cancel: the turn had not begun, its cancel was requested, or there was nothing to cancel."""


WaitFor = Literal["ended", "parked", "people", "outside", "client"]
"""The condition of `TurnHandle.wait`: the end; any park; or a park that waits for people, for an outside result, or for
the client's own tools."""
V = TypeVar("V", bound=Callable[..., Any])


class SubmitOptions(TypedDict, total=False):
    """The keyword arguments of `Client.submit`, which documents them."""

    request_key: str | None
    turn_id: str | None
    model: str | None
    provider: str | None
    system_prompt: str | None
    skill_context: str | None
    output_schema: OutputSchema | None
    cwd: str | None
    limits: Limits | LimitsOverride | LimitsFields | None
    options: ModelOptions | OptionsFields | None
    show_citations: bool | None
    prompt_id: str | None
    prompt_version: str | None
    prompt_tags: tuple[str, ...] | list[str]
    metadata: dict[str, Any] | None
    on_busy: OnBusy
    priority: Priority
    kind: TurnKind
    seed: Literal["session", "empty"]
    readiness: bool | None
    attachments: Sequence[File | Mapping[str, Any]]
    greeting: str | None
    history: Sequence[Message | Mapping[str, Any]]
    client_tools: Sequence[ClientTool | Mapping[str, Any]]
    brain: str | None


class BulkOptions(TypedDict, total=False):
    """The keyword arguments of `Client.bulk`, which documents them."""

    dry_run: bool
    rate: float
    most: int | None
    reason: str
    by: str
    session_prefixes: Sequence[str] | None


def takes_submit_options(verb: V) -> V:
    """Replace `**options` in a verb's signature with the fields of SubmitOptions, for `help(verb)` and for shells."""
    signature = inspect.signature(verb)
    named = [of for of in signature.parameters.values() if of.kind is not of.VAR_KEYWORD]
    for name, hint in SubmitOptions.__annotations__.items():
        default = TurnRequest.model_fields[name].default
        default = default if isinstance(default, str | tuple) and default != "" else None
        annotation = getattr(hint, "__forward_arg__", hint)
        named.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation))
    setattr(verb, "__signature__", signature.replace(parameters=named))  # noqa: B010
    return verb


def submit_fields(verb: Callable[..., Any], options: Mapping[str, Any], **fields: str) -> dict[str, Any]:
    """Return the options of a call of `verb`, together with these fields, as fields of a TurnRequest.

    Raises TypeError for a name that is not one of SubmitOptions, InvalidInput for limits of another type.
    """
    for name in options:
        if name not in SubmitOptions.__annotations__:
            near = get_close_matches(name, inspect.signature(verb).parameters, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{verb.__name__}() got an unexpected keyword argument {name!r}{hint}")
    limits = options.get("limits")
    return {**options, **fields, "limits": None if limits is None else _limits_fields(limits)}


def _limits_fields(limits: object) -> Mapping[str, Any]:
    match limits:
        case Limits() | LimitsOverride():
            return limits.model_dump(exclude_unset=True)
        case dict():
            return cast("dict[str, Any]", limits)
        case _:
            raise InvalidInput("limits", f"use Limits, or a dict of its fields, not {type(limits).__name__}")


class ContentFilters(TypedDict, total=False):
    """The filters of `Client.turns` that are keyword arguments. It documents them."""

    brain: str | None
    ending: str | None
    stop_reason: str | None
    failing: bool
    unknown: bool
    min_cost_usd: float | None
    since: datetime | None
    until: datetime | None
    text: str
    strategy: str | None
    search: str
    sort: Sort
    metadata: Mapping[str, Any] | None
    prompt_tags: Sequence[str]


class TurnFilters(ContentFilters, total=False):
    """All filters of `Client.turns`, which documents them."""

    session: str | None
    state: str | None
    session_prefixes: Sequence[str] | None
