"""Tools: the spec and the function of each, all tools of a brain by name, and the server's task behind a call."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypedDict, cast, get_args

from pydantic import BaseModel, ValidationError

from brainq.contracts.base import first_problem
from brainq.contracts.status import Effect
from brainq.contracts.tool import Isolation, ToolSpec
from brainq.engine.tools.context import RunContext
from brainq.engine.tools.lanes import LaneScope, check_template
from brainq.engine.tools.results import RefusedArguments
from brainq.engine.tools.schema import ArgumentBinder, check_function_takes, check_tool_schema, read_signature
from brainq.errors import InvalidInput, ToolSchemaError
from brainq.runtime.processes.threads import as_sync

if TYPE_CHECKING:
    from brainq.engine.tools.mcp.calls import ServerTool

DEFAULT_TIMEOUT_S = 45.0
MAX_REASON_CHARS = 500
MAX_PROBLEMS = 5
"""The most problems of one call's arguments that the model reads."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", re.ASCII)
Function = Callable[..., Any]
ApprovalAnswer = bool | str | None
ApprovalRule = (
    bool
    | str
    | Callable[[dict[str, Any]], ApprovalAnswer]
    | Callable[[dict[str, Any]], Awaitable[ApprovalAnswer]]
    | None
)
"""When a call needs an approval: always (True, or the reason), never (False), by a function of its arguments, or by the
brain's rule (None)."""


@dataclass(frozen=True, slots=True)
class TaskWorking:
    """The state of a task on which the server is still working.

    `message` has the server's words, and `poll_ms` is as in ServerTask.
    """

    message: str = ""
    poll_ms: int = 0


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """The end of a server's task.

    result: the result of the tool's function, or its ToolError or OutcomeUnknown.
    goes_on: whether the server may still be working. The task is then cancelled there.
    """

    result: Any
    goes_on: bool = False


class ServerUnavailable(Exception):
    """The error of a server that cannot be reached just now. It may still know the task."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool in the process that runs it.

    context_param: the parameter that gets the RunContext, or None.
    binder: converts JSON arguments into the function's annotated types. None passes them on unchanged (tools with a
        schema from elsewhere).
    approval: when a call needs a person's approval by the tool's own rule.
    tasks: polls the tasks that a server may make of calls. None for a tool that makes no tasks.
    untrusted: whether its results may hold text of third parties; see `Brain(after_untrusted=...)`.
    lane_scope: `cell` if its lanes need to hold only among the sessions of one cell.
    """

    spec: ToolSpec
    function: Function
    is_async: bool
    context_param: str | None = None
    binder: ArgumentBinder | None = None
    approval: ApprovalRule = None
    tasks: ServerTool | None = None
    untrusted: bool = False
    lane_scope: LaneScope = "tenant"

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def origin(self) -> str:
        """The place of its function, such as `app.tools.read_note`."""
        return f"{self.function.__module__}.{self.function.__qualname__}"

    def keywords(self, arguments: Mapping[str, Any], context: RunContext) -> dict[str, Any]:
        """Return the keywords to call the function with.

        Raises RefusedArguments if a value does not fit its annotation, or has the name of the context's parameter,
        because a given schema may allow any name.
        """
        keywords = dict(arguments)
        if self.binder is not None:
            values, names = self._bound(self.binder, keywords), self.binder.names
            # Omitted arguments stay omitted: the function has its own defaults.
            keywords = {names[field]: getattr(values, field) for field in values.model_fields_set}
        if self.context_param is None:
            return keywords
        if self.context_param in keywords:
            raise RefusedArguments(self.name, f"it takes no argument {self.context_param!r}; leave it out")
        return {**keywords, self.context_param: context}

    def _bound(self, binder: ArgumentBinder, arguments: Mapping[str, Any]) -> BaseModel:
        try:
            return binder.model.model_validate(arguments)
        except ValidationError as misfit:
            problems = misfit.errors(include_url=False)
            shown = [str(first_problem([one], arguments)) for one in problems[:MAX_PROBLEMS]]
            more = len(problems) - MAX_PROBLEMS
            raise RefusedArguments(self.name, "; ".join(shown) + (f"; and {more} more" if more > 0 else "")) from misfit


class ToolRegistry(dict[str, Tool]):
    """The tools of a brain by name, in the order of adding. `add` fills it while a brain's module is imported; later it
    is only read.

    specs: maps names to ToolSpecs, read-only, for gates, scheduler and model.
    """

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        super().__init__()
        self._specs: dict[str, ToolSpec] = {}
        self.specs: Mapping[str, ToolSpec] = MappingProxyType(self._specs)
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool) -> None:
        """Add a tool. Raises InvalidInput if the name is taken, and ToolSchemaError for an unusable schema."""
        if tool.binder is None:  # its schema came from elsewhere, and `make_tool` may not have checked it
            check_tool_schema(tool.name, tool.spec.parameters)
            check_function_takes(tool.name, tool.function, tool.spec.parameters, tool.context_param)
        if tool.name in self:
            raise InvalidInput(
                "tools",
                f"there are two tools named {tool.name!r} "
                f"({self[tool.name].origin} and {tool.origin}); give one of them another name=",
            )
        self[tool.name] = tool
        self._specs[tool.name] = tool.spec


class ToolOptions(TypedDict, total=False):
    """The keyword arguments of `@brain.tool`, which explains them, and of `make_tool`."""

    effect: Effect
    timeout_s: float
    resources: tuple[str, ...]
    idempotent: bool
    lane: str | None
    isolation: Isolation
    deny_repeats: bool
    name: str | None
    description: str | None
    parameters: Mapping[str, Any] | None
    approval: ApprovalRule
    untrusted: bool | None
    lane_scope: LaneScope


def check_options(tool: str, options: Mapping[str, object]) -> None:
    """Raise ToolSchemaError for an unknown option."""
    known = ToolOptions.__annotations__
    for name in options:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            meant = f"; did you mean {close[0]}=?" if close else f"; the options are {', '.join(known)}"
            raise ToolSchemaError(f"tool {tool!r}: it takes no option {name}={meant}")


def make_tool(
    function: Function,
    *,
    effect: Effect = Effect.DESTRUCTIVE,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    resources: tuple[str, ...] = (),
    idempotent: bool = False,
    lane: str | None = None,
    isolation: Isolation = "thread",
    deny_repeats: bool = False,
    name: str | None = None,
    description: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    approval: ApprovalRule = None,
    untrusted: bool | None = None,
    lane_scope: LaneScope = "tenant",
) -> Tool:
    """Return a Tool for a plain or async function, whose signature becomes the JSON schema. The options are those of
    `@brain.tool`.

    Raises ToolSchemaError, naming the tool and what to change.
    """
    tool_name = name if name is not None else getattr(function, "__name__", "")
    _check_name(tool_name, function)
    _check_kind(tool_name, function)
    signature = read_signature(tool_name, function, with_schema=parameters is None)
    schema = signature.schema
    if parameters is not None:
        schema = check_tool_schema(tool_name, parameters)
        check_function_takes(tool_name, function, schema, signature.context_param)
    spec = ToolSpec(
        name=tool_name,
        description=signature.description if description is None else description,
        parameters=schema,
        effect=_checked_effect(tool_name, effect),
        timeout_s=_checked_timeout(tool_name, timeout_s),
        idempotent=idempotent,
        resources=_checked_resources(tool_name, resources, lane, schema),
        isolation=_checked_isolation(tool_name, isolation),
        deny_repeats=deny_repeats,
    )
    return Tool(
        spec,
        function,
        inspect.iscoroutinefunction(function),
        signature.context_param,
        signature.binder,
        _checked_approval(tool_name, approval),
        untrusted=effect is Effect.NETWORK if untrusted is None else untrusted,
        lane_scope=_checked_lane_scope(tool_name, lane_scope),
    )


def _check_name(name: str, function: Function) -> None:
    if not _NAME.fullmatch(name):
        raise ToolSchemaError(
            f"tool {name or function!r}: a model cannot call this name; pass name= with 1 to 64 of "
            "A-Z a-z 0-9 _ -, starting with a letter or _"
        )


def _check_kind(name: str, function: Function) -> None:
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        raise ToolSchemaError(
            f"tool {name!r}: {type(function).__name__} is not a function; wrap the call in a def of its own"
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ToolSchemaError(f"tool {name!r}: it yields; return a list in place of yielding its items")


def _checked_effect(name: str, effect: object) -> Effect:
    if not isinstance(effect, Effect):
        raise ToolSchemaError(
            f"tool {name!r}: effect={effect!r} is not an Effect; use one of "
            + ", ".join(f"Effect.{member.name}" for member in Effect)
        )
    return effect


def _checked_timeout(name: str, timeout_s: object) -> float:
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float):
        raise ToolSchemaError(f"tool {name!r}: timeout_s={timeout_s!r} is not a number of seconds")
    if not (math.isfinite(timeout_s) and timeout_s > 0):
        raise ToolSchemaError(f"tool {name!r}: timeout_s={timeout_s!r} must be finite and above 0 seconds")
    return float(timeout_s)


def _checked_isolation(name: str, isolation: object) -> Isolation:
    if isolation not in get_args(Isolation):
        known = ", ".join(get_args(Isolation))
        raise ToolSchemaError(f"tool {name!r}: isolation={isolation!r} is unknown; use one of {known}")
    return cast("Isolation", isolation)


def _checked_lane_scope(name: str, scope: object) -> LaneScope:
    if scope not in get_args(LaneScope):
        raise ToolSchemaError(
            f"tool {name!r}: lane_scope={scope!r} is unknown; use 'cell' if it is enough that its lanes hold within "
            "one cell, or leave it out"
        )
    return cast("LaneScope", scope)


def _checked_approval(name: str, approval: object) -> ApprovalRule:
    if approval is None or isinstance(approval, bool):
        return approval
    if isinstance(approval, str):
        if not 0 < len(approval.strip()) <= MAX_REASON_CHARS:
            raise ToolSchemaError(
                f"tool {name!r}: approval={approval[:50]!r} must be a reason of 1 to {MAX_REASON_CHARS} "
                "characters, or True"
            )
        return approval
    if not callable(approval) or inspect.isclass(approval):
        raise ToolSchemaError(
            f"tool {name!r}: approval={approval!r} is not True, False, a reason or a function of the "
            "arguments that returns True or a reason"
        )
    if any(map(inspect.isasyncgenfunction, (approval, getattr(approval, "__call__", None)))):  # noqa: B004
        raise ToolSchemaError(
            f"tool {name!r}: approval= is an async generator; use def or async def, and return True or a reason"
        )
    if not _accepts_arguments(approval):
        raise ToolSchemaError(
            f"tool {name!r}: approval= cannot be called with one dict; use def needs(arguments: dict)"
        )
    return cast("ApprovalRule", as_sync(approval))


def _accepts_arguments(rule: Callable[..., object]) -> bool:
    try:
        inspect.signature(rule).bind({})
    except TypeError:
        return False
    except ValueError:  # some built-in functions have no signature
        return True
    return True


def _checked_resources(name: str, resources: object, lane: str | None, schema: Mapping[str, Any]) -> tuple[str, ...]:
    if isinstance(resources, str) or not isinstance(resources, tuple | list):
        raise ToolSchemaError(
            f"tool {name!r}: resources={resources!r} must be a tuple of templates such as ('note:{{path}}',)"
        )
    templates: list[object] = [*resources, *([] if lane is None else [lane])]
    checked = [check_template(name, template, schema) for template in templates]
    return tuple(dict.fromkeys(checked))
