"""The asynchronous twin of a verb: the same arguments and answer, in a thread while it runs."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def awaited(verb: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """`verb`, which changes something, of what the twin has as `_sync`, to be awaited in one of its `_threads`."""

    @wraps(verb)
    async def asked(twin: Any, *args: P.args, **named: P.kwargs) -> R:
        return await twin._threads.act(verb, twin._sync, *args, **named)

    return asked


def looked_up(
    verb: Callable[Concatenate[Any, P], R],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """The same of a verb that only looks."""

    @wraps(verb)
    async def asked(twin: Any, *args: P.args, **named: P.kwargs) -> R:
        return await twin._threads.look(verb, twin._sync, *args, **named)

    return asked
