"""A client's connection to Redis and SQL: the wiring behind it, and what callers get while one of them is away."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from brainq.errors import BrainqError, Unreachable
from brainq.state.connection import write_refusal
from brainq.wiring import Wiring, services

if TYPE_CHECKING:
    from brainq.client.async_client import AsyncClient
    from brainq.client.client import Client
    from brainq.client.handle import TurnHandle

C = TypeVar("C", bound=type)


def wiring_of(client: Client | AsyncClient | TurnHandle) -> Wiring:
    return client._wiring  # pyright: ignore[reportPrivateUsage]


def raises_unreachable(cls: C) -> C:
    """Make every public verb and property of a class raise Unreachable where Redis or SQL does not answer."""
    for name, verb in list(vars(cls).items()):
        if name.startswith("_"):
            continue
        if isinstance(verb, property) and verb.fget is not None:
            setattr(cls, name, property(_translated(verb.fget), doc=verb.__doc__))
        elif inspect.isfunction(verb) and not inspect.isgeneratorfunction(verb):
            setattr(cls, name, _translated(verb))
    return cls


@contextmanager
def translate_unreachable(*, request_key: str = "", client_message_id: str = "") -> Generator[None]:
    """Raise what is raised in it as `public_error` says."""
    try:
        yield
    except Exception as failure:
        ours = public_error(failure, request_key=request_key, client_message_id=client_message_id)
        if ours is failure:
            raise
        raise ours from failure


def public_error(failure: Exception, *, request_key: str = "", client_message_id: str = "") -> Exception:
    """`failure` as callers get it; the ids say under which a second try is the same submit, or the same input."""
    if isinstance(failure, Unreachable):
        ours = failure
    elif isinstance(failure, BrainqError) or not services.is_unavailable(failure):
        return failure
    else:
        ours = Unreachable(_unreachable_message(failure))
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


def _unreachable_message(failure: Exception) -> str:
    if (refusal := write_refusal(failure)) is not None:
        return f"Redis {refusal.reason}; {refusal.remedy}"
    where, remedy = _service_and_remedy(failure)
    return f"{where} does not answer ({_failure_reason(failure)}); {remedy}"


def _service_and_remedy(failure: Exception) -> tuple[str, str]:
    if services.is_redis_unavailable(failure):
        return "Redis", "start it, or correct BRAINQ_REDIS_URL; the same may be asked again when it is back"
    if services.is_sql_unavailable(failure):
        return "SQL", "start it, or correct BRAINQ_SQL_URL; the same may be asked again when it is back"
    return "Redis, SQL or the disk", "`brainq doctor` says which; the same may be asked again when it is back"


def _failure_reason(failure: Exception) -> str:
    """SQLite says itself what is wrong, such as a full disk, and quotes no content; of others the type."""
    driver = getattr(failure, "orig", None)
    return str(driver) if type(driver).__module__ == "sqlite3" else type(failure).__name__


def _translated(verb: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(verb)
    def reaching(*args: Any, **named: Any) -> Any:
        with translate_unreachable():
            return verb(*args, **named)

    return reaching
