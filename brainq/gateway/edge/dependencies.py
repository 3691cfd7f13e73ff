"""Dependencies of routes: the gateway, the principal that sent the request, and a turn of the principal's own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar, cast

from fastapi import Depends, Path, Request

from brainq.access import Caller, Verb, may
from brainq.brain.brains import Brains
from brainq.client.async_client import AsyncClient
from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.ids import ID_PATTERN, TURN_ID_PATTERN
from brainq.errors import NotFound
from brainq.gateway.edge.authentication import Authenticator
from brainq.gateway.edge.limits import RateLimiter, StreamLimiter
from brainq.gateway.edge.problems import RequestRejected
from brainq.gateway.edge.verbs import A2A_VERBS, CONFIGURE_OPTIONS, MCP_VERBS, VERBS
from brainq.settings.deployment import Settings

# An answer that is asked for once for all who ask at the same time, and believed for a moment.

T = TypeVar("T")

CACHED_S = 1.0


class CachedCall(Generic[T]):
    """`ask` is called when its last answer, good or bad, is older than KEPT_S."""

    def __init__(self, ask: Callable[[], Awaitable[T]], now: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._now = now
        self._asked: asyncio.Future[T] | None = None
        self._at = 0.0

    async def get(self) -> T:
        """What `ask` returned. Raises what it raised."""
        asked = self._asked
        if asked is None or (asked.done() and self._now() - self._at >= CACHED_S):
            asked = self._asked = asyncio.ensure_future(self._ask())
            asked.add_done_callback(self._note_time)
        return await asyncio.shield(asked)

    def _note_time(self, asked: asyncio.Future[T]) -> None:
        self._at = self._now()


# Gateway: what the routes share, and how they get at it.

TURN_ID, ID = TURN_ID_PATTERN, ID_PATTERN

CALL_ID = "^[A-Za-z0-9][A-Za-z0-9_-]{2,63}[-.]c[0-9]{1,9}-[0-9]{1,9}$"

"""A call's id over all turns, as an approval's id is, too."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """One gateway.

    callers, strangers   how often each caller may ask, and each address that nobody is known of
    metrics              the fleet's, as text
    long_work            threads for what takes long, which keep nothing else waiting
    """

    settings: Settings
    brains: Brains
    client: AsyncClient
    who: Authenticator
    callers: RateLimiter
    strangers: RateLimiter
    streams: StreamLimiter
    readiness: CachedCall[None]
    metrics: CachedCall[str]
    long_work: Executor


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks, and the verb of the route."""

    caller: Caller
    verb: Verb

    def may(self, session_id: str | None) -> bool:
        return may(self.caller, self.verb, session_id)

    def require(self, session_id: str | None) -> None:
        """Raise NotFound for a session that is not the caller's: it is answered as one that nobody has."""
        if not self.may(session_id):
            raise NotFound("not the caller's")

    def require_verb(self, verb: Verb) -> None:
        """Raise Refused where the caller lacks a verb."""
        if verb not in self.caller.verbs:
            raise RequestRejected("forbidden", f"this needs the verb {verb.value!r}, which the caller does not have")

    def require_options(self, given: Iterable[str]) -> None:
        """Raise Refused where one of these options of a turn is the brain's to say, not this caller's."""
        for option in sorted(CONFIGURE_OPTIONS.intersection(given)):
            if Verb.CONFIGURE not in self.caller.verbs:
                raise RequestRejected(
                    "forbidden",
                    f"{option}: this needs the verb 'configure', which the caller does not have; leave it out, and it "
                    "is as the brain has it",
                )


# What is plain would be run by FastAPI in a thread of its own, each time: that is dearer than all they do.
async def current_gateway(request: Request) -> Gateway:
    return cast("Gateway", request.app.state.gateway)


async def current_principal(request: Request) -> Principal:
    """Who asks. Raises Refused where the caller may not do what the route does."""
    caller = cast("Caller", request.state.caller)
    route = f"{request.method} {request.scope['route'].path_format}"
    found = Principal(caller, VERBS.get(route) or MCP_VERBS.get(route) or A2A_VERBS[route])
    found.require_verb(found.verb)
    return found


GatewayDep = Annotated[Gateway, Depends(current_gateway)]

PrincipalDep = Annotated[Principal, Depends(current_principal)]


async def own_turn(
    turn_id: Annotated[str, Path(pattern=TURN_ID)], here: GatewayDep, by: PrincipalDep
) -> AsyncTurnHandle:
    """A turn of the caller's own."""
    handle = await here.client.handle(turn_id)
    by.require(handle.session_id)
    return handle


TurnDep = Annotated[AsyncTurnHandle, Depends(own_turn)]
