"""What a caller is told when Redis or SQL is away: brainq's own error, and how to ask again."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

from brainq.errors import BrainqError, Unreachable
from brainq.state.away import DISK_REMEDY, disk_is_full
from brainq.wiring import away

C = TypeVar("C", bound=type)


def says_what_is_away(cls: C) -> C:
    """Make every public verb and property of a class raise Unreachable where Redis or SQL does not answer."""
    for name, verb in list(vars(cls).items()):
        if name.startswith("_"):
            continue
        if isinstance(verb, property) and verb.fget is not None:
            setattr(cls, name, property(_reaching(verb.fget), doc=verb.__doc__))
        elif inspect.isfunction(verb) and not inspect.isgeneratorfunction(verb):
            setattr(cls, name, _reaching(verb))
    return cls


@contextmanager
def told_as_ours(*, request_key: str = "", client_message_id: str = "") -> Generator[None]:
    """Raise what is raised in it as `as_ours` says."""
    try:
        yield
    except Exception as failure:
        ours = as_ours(failure, request_key=request_key, client_message_id=client_message_id)
        if ours is failure:
            raise
        raise ours from failure


def as_ours(failure: Exception, *, request_key: str = "", client_message_id: str = "") -> Exception:
    """`failure` as callers are told it; the ids say under which it is the same submit, or the same input, again."""
    if isinstance(failure, Unreachable):
        ours = failure
    elif isinstance(failure, BrainqError) or not away.is_away(failure):
        return failure
    else:
        ours = Unreachable(_sentence(failure))
    if request_key and not ours.request_key:
        return Unreachable(
            f"{ours}. Whether the turn was accepted is not known: submit it again with "
            f"request_key={request_key!r}, and it is the same turn",
            request_key=request_key,
        )
    if client_message_id and not ours.client_message_id:
        return Unreachable(
            f"{ours}. Whether the input was accepted is not known: send it again with "
            f"client_message_id={client_message_id!r}, and it is the same input",
            client_message_id=client_message_id,
        )
    return ours


def _sentence(failure: Exception) -> str:
    if disk_is_full(failure):
        return f"Redis cannot write to its disk, so it takes no writes; {DISK_REMEDY}"
    where, remedy = _where(failure)
    return f"{where} does not answer ({_why(failure)}); {remedy}"


def _where(failure: Exception) -> tuple[str, str]:
    if away.is_redis_away(failure):
        return "Redis", "start it, or correct BRAINQ_REDIS_URL; the same may be asked again when it is back"
    if away.is_sql_away(failure):
        return "SQL", "start it, or correct BRAINQ_SQL_URL; the same may be asked again when it is back"
    return "Redis, SQL or the disk", "`brainq doctor` says which; the same may be asked again when it is back"


def _why(failure: Exception) -> str:
    """SQLite says itself what is wrong, such as a full disk, and quotes nobody; of others the type."""
    driver = getattr(failure, "orig", None)
    return str(driver) if type(driver).__module__ == "sqlite3" else type(failure).__name__


def _reaching(verb: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(verb)
    def reaching(*args: Any, **named: Any) -> Any:
        with told_as_ours():
            return verb(*args, **named)

    return reaching
