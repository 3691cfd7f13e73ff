"""Crash points made from the code: a process dies after its n-th write to SQL or Redis, and then repeats the act."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

import pytest

from brainq.adapters.redis.connection import Client
from brainq.adapters.sql.database import Database, Transaction

W = TypeVar("W")
READS = frozenset(
    {
        "GET",
        "MGET",
        "HGET",
        "HMGET",
        "HGETALL",
        "HVALS",
        "HKEYS",
        "EXISTS",
        "PTTL",
        "TIME",
        "SMEMBERS",
        "ZRANGE",
        "ZCARD",
    }
)
MOST = 100


class Crash(BaseException):
    """The death of the process. Nothing may catch it."""


@contextmanager
def dying_after(writes: int) -> Generator[None]:
    """End this thread's work after write number `writes`, within the context. A transaction counts as one write."""
    me, left = threading.get_ident(), itertools.count(writes - 1, -1)
    inner = [0]

    def counted(verb: Any, *, is_write: Callable[..., bool] = lambda *_: True) -> Any:
        def act(*args: Any, **given: Any) -> Any:
            if inner[0] or threading.get_ident() != me or not is_write(*args):
                return verb(*args, **given)
            inner[0] += 1
            try:
                result = verb(*args, **given)
            finally:
                inner[0] -= 1
            if next(left) == 0:
                raise Crash
            return result

        return act

    with pytest.MonkeyPatch.context() as patched:
        for owner, name in (
            *((Database, verb) for verb in ("write", "put", "write_returning")),
            (Transaction, "commit"),
        ):
            patched.setattr(owner, name, counted(getattr(owner, name)))
        patched.setattr(Client, "execute_command", counted(Client.execute_command, is_write=_is_write))
        patched.setattr(Client, "replies", counted(Client.replies, is_write=_are_writes))
        yield


def _is_write(_: object, *args: Any, **__: Any) -> bool:
    return args[0] not in READS


def _are_writes(_: object, commands: Sequence[Sequence[Any]]) -> bool:
    return any(command[0] not in READS for command in commands)


def crash_everywhere(
    world: Callable[[], AbstractContextManager[W]],
    act: Callable[[W], object],
    seen: Callable[[W], object],
    between: Callable[[W], None] = lambda _: None,
) -> int:
    """Run `act` undisturbed, and then with a crash after each of its writes, each time in a new world, and repeat it.

    `seen` must be the same every time. `between` asserts what must hold at every moment. Returns the number of writes.
    """
    with world() as fresh:
        act(fresh)
        wanted = seen(fresh)
    for at in range(1, MOST):
        with world() as fresh:
            try:
                with dying_after(at):
                    act(fresh)
            except Crash:
                between(fresh)
                act(fresh)
            else:
                return at - 1
            found = seen(fresh)
            assert found == wanted, f"after it had died behind write {at}: {found}, and undisturbed {wanted}"
    raise AssertionError(f"it has more than {MOST} writes")
