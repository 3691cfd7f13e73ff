"""Middleware: your own objects that are called around turns, steps, calls and finalizer steps."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Self

from pydantic import JsonValue

from brainq.contracts.callbacks import (
    Callbacks,
    Deny,
    PostToolUse,
    PreToolAnswer,
    PreToolUse,
    StreamChunk,
    TurnEnd,
    TurnInfo,
)
from brainq.contracts.message import ToolCall
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.contracts.tool import ToolSpec
from brainq.errors import InvalidInput, ProviderError
from brainq.runtime.observe.logs import logger
from brainq.runtime.observe.tracebacks import where_raised
from brainq.runtime.processes.threads import as_sync, call_within
from brainq.runtime.text.failures import failure_name

log = logger("brainq.middleware")
_CALLBACK_OF = {
    "before_turn": "on_turn_start",
    "after_turn": "on_turn_end",
    "on_chunk": "on_stream_chunk",
    "check_call": "on_pre_tool_use",
    "after_call": "on_post_tool_use",
}
# How long a finalizer step waits for all methods before or after it, in seconds; results wait for three steps.
OBSERVERS_S = 0.2


@dataclass(frozen=True, slots=True)
class CallStart:
    """A call that a worker is about to start. `attempt` counts from 1; a higher number follows a lost worker."""

    turn_id: str
    session_id: str
    call: ToolCall
    spec: ToolSpec
    attempt: int = 1
    metadata: dict[str, JsonValue] | None = None


@dataclass(frozen=True, slots=True)
class FinalStepInfo:
    """One try of a finalizer step. `step_key` is the same at every try, and different in every turn."""

    turn_id: str
    session_id: str
    name: str
    tries: int
    step_key: str


class Middleware:
    """The base class of objects that are called around the work on a brain's turns.

    Subclass it, and override methods with `def` or `async def`.

    Methods run in brainq's workers. The `before_*` methods run in the order of `Brain(middleware=[...])`, the `after_*`
    methods in the reverse order. An error in a `before_*` of a turn, step or call stops the work with an error that
    names the method. An error in an `after_*` is logged, because the work has been done.
    """

    def before_turn(self, turn: TurnInfo) -> None:
        """Handle the beginning of a turn. Raising fails the turn."""

    def after_turn(self, end: TurnEnd) -> None:
        """Handle the end of a turn, once its result is published. If it raises, it is called again later with the same
        `step_key`."""

    def before_step(self, request: ModelRequest) -> None:
        """Handle one attempt at a step, before the model is called.

        Raising fails the turn, and the model is not called.
        """

    def on_chunk(self, chunk: StreamChunk) -> None:
        """Handle a piece of the reply's text."""

    def after_step(self, request: ModelRequest, reply: ModelReply | None, failure: ProviderError | None) -> None:
        """Handle the model's reply, or its failure. Both are None for an attempt that nobody waits for any longer."""

    def check_call(self, call: PreToolUse) -> PreToolAnswer:
        """Check a call that the model requests. None allows it, `Deny` refuses it, and a dict replaces its arguments.
        Raising denies the call."""

    def before_call(self, call: CallStart) -> None:
        """Handle a call that a worker is about to start. Raising fails the call, and its function is not called."""

    def after_call(self, call: PostToolUse) -> None:
        """Handle the outcome of a call that had started. It may be called again with the same `call_key`."""

    def before_final_step(self, step: FinalStepInfo) -> None:
        """Handle a finalizer step that is about to run. The step cannot be stopped, and waits 0.2 s at most."""

    def after_final_step(self, step: FinalStepInfo, failure: Exception | None) -> None:
        """Handle the end of a try of a finalizer step. The chain waits 0.2 s at most."""


METHODS = tuple(name for name in vars(Middleware) if not name.startswith("_"))


class MiddlewareFailed(Exception):
    """The error of a middleware that stops the work. It names the middleware and the method, but not the message of the
    exception."""


@dataclass(frozen=True, slots=True)
class Hook:
    """One method of one middleware, or one callback.

    label      such as `Audit.before_call`, for errors
    may_stop   whether an error stops the work; otherwise it is logged
    """

    label: str
    function: Callable[..., Any]
    may_stop: bool = True

    def log_failure(self, failure: Exception, turn_id: str) -> None:
        log.error(f"{self.label} raised", failure=failure, turn_id=turn_id)


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks of a brain, by method. A brain without middleware and callbacks has empty tuples."""

    before_turn: tuple[Hook, ...] = ()
    after_turn: tuple[Hook, ...] = ()
    before_step: tuple[Hook, ...] = ()
    on_chunk: tuple[Hook, ...] = ()
    after_step: tuple[Hook, ...] = ()
    check_call: tuple[Hook, ...] = ()
    before_call: tuple[Hook, ...] = ()
    after_call: tuple[Hook, ...] = ()
    before_final_step: tuple[Hook, ...] = ()
    after_final_step: tuple[Hook, ...] = ()

    @classmethod
    def of(cls, middlewares: Iterable[Middleware], callbacks: Callbacks) -> Self:
        """Return the hooks. Callbacks come last, nearest to the work."""
        middlewares = tuple(middlewares)
        found = {name: _hooks_of(name, middlewares, callbacks) for name in METHODS}
        return cls(**{name: hooks[::-1] if name.startswith("after_") else hooks for name, hooks in found.items()})


def _hooks_of(name: str, middlewares: Iterable[Middleware], callbacks: Callbacks) -> tuple[Hook, ...]:
    hooks = [
        Hook(f"{type(middleware).__name__}.{name}", as_sync(getattr(middleware, name)))
        for middleware in middlewares
        if getattr(type(middleware), name) is not getattr(Middleware, name)
    ]
    callback = getattr(callbacks, _CALLBACK_OF.get(name, ""), None)
    if callback is not None:
        hooks.append(Hook(_CALLBACK_OF[name], callback, may_stop=False))
    return tuple(hooks)


def checked_middleware(given: Iterable[Middleware]) -> tuple[Middleware, ...]:
    """Return the middlewares. Raises InvalidInput for an object that is not a Middleware, and for a method that does
    not exist."""
    found = tuple(given)
    for middleware in found:
        if not isinstance(middleware, Middleware):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput("middleware", f"{middleware!r} is not a Middleware; give an object of a subclass of it")
        unknown = [
            name
            for name in dir(middleware)
            if name.startswith(("before_", "after_", "on_", "check_")) and name not in METHODS
        ]
        if unknown:
            known = ", ".join(METHODS)
            raise InvalidInput("middleware", f"{type(middleware).__name__} has {unknown[0]}; the methods are {known}")
        for name in METHODS:
            if inspect.isasyncgenfunction(getattr(middleware, name)):
                label = f"{type(middleware).__name__}.{name}"
                raise InvalidInput("middleware", f"{label} is an async generator; use def or async def")
    return found


def run_hooks(hooks: tuple[Hook, ...], turn_id: str, *given: Any) -> None:
    """Call the hooks. Raises MiddlewareFailed for the first that raises; later ones are not called."""
    for hook in hooks:
        try:
            hook.function(*given)
        except Exception as failure:
            hook.log_failure(failure, turn_id)
            if hook.may_stop:
                raise MiddlewareFailed(_failure_text(hook, failure)) from failure


def notify_hooks(hooks: tuple[Hook, ...], turn_id: str, *given: Any) -> None:
    """Call the hooks. Errors are logged, and all hooks are called."""
    for hook in hooks:
        try:
            hook.function(*given)
        except Exception as failure:
            hook.log_failure(failure, turn_id)


def notify_hooks_in_time(hooks: tuple[Hook, ...], turn_id: str, *given: Any) -> None:
    """Call the hooks as `notify_hooks` does, in a thread of their own. Waits OBSERVERS_S at most for all of them."""
    if not hooks:
        return
    try:
        call_within(OBSERVERS_S, hooks[0].label, lambda: notify_hooks(hooks, turn_id, *given))
    except TimeoutError as failure:
        hooks[0].log_failure(failure, turn_id)


def run_every_hook(hooks: tuple[Hook, ...], *given: Any) -> None:
    """Call all hooks, and then raise the first error."""
    failures: list[Exception] = []
    for hook in hooks:
        try:
            hook.function(*given)
        except Exception as failure:
            failures.append(failure)
    if failures:
        raise failures[0]


def check_call(hooks: tuple[Hook, ...], use: PreToolUse) -> Any:
    """Return the answer to a call that a model requests: the first `Deny`, or else the arguments that the last hook
    returned, or None. Each hook gets the arguments that those before it returned. Raises the error of a hook."""
    answer: Any = None
    for hook in hooks:
        try:
            found: Any = hook.function(use)
        except Exception as failure:
            hook.log_failure(failure, use.turn_id)
            raise
        if isinstance(found, Deny):
            return found
        if found is None:
            continue
        if not isinstance(found, dict):
            return found  # the gate denies the call, because this is no valid answer
        answer = found
        use = PreToolUse(use.turn_id, use.session_id, use.call.model_copy(update={"arguments": found}), use.spec)
    return answer


def _failure_text(hook: Hook, failure: Exception) -> str:
    place = where_raised(failure)
    return f"the middleware {hook.label} raised {failure_name(failure)}" + (f" at {place}" if place else "")
