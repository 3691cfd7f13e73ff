"""A client's connection to Redis and SQL: the cells behind it, and what callers get while one of them is away, or a
tenant has moved to another.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from brainq.cells.cells import Cells
from brainq.errors import BrainqError, CellUnreachable, NotFound, TenantMoved, Unreachable
from brainq.state.connection import redis_refusal
from brainq.store.audit import records_acts
from brainq.store.refusals import sql_refusal
from brainq.wiring import Wiring, services

if TYPE_CHECKING:
    from brainq.client.async_client import AsyncClient
    from brainq.client.client import Client

C = TypeVar("C", bound=type)
T = TypeVar("T")
MOST_MOVES = 3
"""How often in a row a verb follows a tenant that has moved, before its caller gets the error."""


class InSession:
    """What belongs to one session, whose cell is looked up at each use: its tenant may move."""

    _cells: Cells
    session_id: str

    @property
    def _wiring(self) -> Wiring:
        return self._cells.of_session(self.session_id)


def wiring_of(client: Client | AsyncClient | InSession) -> Wiring:
    """The cell of a handle's session; of a client that of home, where a deployment has several."""
    if isinstance(client, InSession):
        return client._wiring  # pyright: ignore[reportPrivateUsage]
    return cells_of(client).home


def cells_of(client: Client | AsyncClient | InSession) -> Cells:
    return client._cells  # pyright: ignore[reportPrivateUsage]


def raises_unreachable(cls: C) -> C:
    """Make every public verb and property of a class raise Unreachable where Redis or SQL does not answer.

    Those that are acts leave a row in the audit log.

    Where there are several cells, one whose tenant has moved is asked again in the tenant's new one. The class has
    its `_cells`, and if it is about one session, its `session_id`.
    """
    for name, verb in list(vars(cls).items()):
        if name.startswith("_"):
            continue
        if isinstance(verb, property) and verb.fget is not None:
            setattr(cls, name, property(_translated(verb.fget), doc=verb.__doc__))
        elif inspect.isfunction(verb) and not inspect.isgeneratorfunction(verb):
            setattr(cls, name, _translated(verb))
    return records_acts(cls)


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
        return _with_remedy(
            ours,
            f"Whether the turn was accepted is not known: submit it again with request_key={request_key!r}, and it is "
            "the same turn",
            request_key=request_key,
        )
    if client_message_id and not ours.client_message_id:
        return _with_remedy(
            ours,
            "Whether the input was accepted is not known: send it again with "
            f"client_message_id={client_message_id!r}, and it is the same input",
            client_message_id=client_message_id,
        )
    return ours


def _with_remedy(away: Unreachable, remedy: str, **ids: str) -> Unreachable:
    if isinstance(away, CellUnreachable):
        return CellUnreachable(away.cell, f"{away.why}. {remedy}", **ids)
    return Unreachable(f"{away}. {remedy}", **ids)


def _unreachable_message(failure: Exception) -> str:
    if services.is_redis_unavailable(failure) and (refusal := redis_refusal(failure)) is not None:
        return f"Redis {refusal.reason}; {refusal.remedy}"
    if services.is_sql_unavailable(failure) and (refusal := sql_refusal(failure)) is not None:
        return f"SQL {refusal.reason}; {refusal.remedy}"
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
            if args[0]._cells.is_routed:
                return _following(args[0], verb, args, named)
            return verb(*args, **named)

    return reaching


def _following(owner: Any, verb: Callable[..., Any], args: Any, named: Any) -> Any:
    return follow_moves(owner._cells, getattr(owner, "session_id", ""), functools.partial(verb, *args, **named))


def follow_moves(cells: Cells, session_id: str, attempt: Callable[[], T]) -> T:
    """What `attempt` gives in the cell that has the session now: again where a cell says that its tenant has left, and
    where it does not know what it should and the tenant is elsewhere. `session_id`: "" for what is about no single one.
    Raises TenantMoving in place of NotFound while the tenant moves.

    Whatever has to be the same at each attempt, such as an id that was drawn, `attempt` has already.
    """
    if not cells.is_routed:
        return attempt()
    for number in range(MOST_MOVES + 1):
        try:
            return attempt()
        except TenantMoved as moved:
            if number == MOST_MOVES:
                raise
            cells.learn(moved)
        except NotFound:
            if number == MOST_MOVES or not session_id or not cells.look_again(session_id):
                raise
        except Exception as failure:
            shown = cells.failed(session_id, failure)
            if shown is failure:
                raise
            raise shown from failure
    raise AssertionError("unreachable: the last attempt returns or raises")
