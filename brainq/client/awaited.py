"""The asynchronous twin of a verb: the same arguments and answer, in a thread while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def awaited(verb: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """`verb` of what the twin has as `_sync`, to be awaited."""

    @wraps(verb)
    async def asked(twin: Any, *args: P.args, **named: P.kwargs) -> R:
        return await asyncio.to_thread(verb, twin._sync, *args, **named)

    return asked
