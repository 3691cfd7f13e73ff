"""A gateway, and a request to it: its caller, the verb that it needs, and what the caller may do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Generic, TypeVar

from fastapi import Request

from brainq.app.access import Caller, Verb, may
from brainq.client.async_client import AsyncClient
from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.ids import DERIVED_PREFIXES, ID_PATTERN, TURN_ID_PATTERN, check_id
from brainq.contracts.turn import CONFIGURE_OPTIONS
from brainq.engine.brain.brains import Brains
from brainq.errors import InvalidInput, NotFound
from brainq.gateway.edge.authentication import Authenticator
from brainq.gateway.edge.caller_rates import CallerRates
from brainq.gateway.edge.limits import StreamLimiter, StreamSlot
from brainq.gateway.edge.problems import RequestRejected, SessionNotAllowed
from brainq.runtime.settings.deployment import Settings

T = TypeVar("T")
CACHED_S = 1.0
TURN_ID, ID = TURN_ID_PATTERN, ID_PATTERN
CALL_ID = "^[A-Za-z0-9][A-Za-z0-9_-]{2,63}[-.]c[0-9]{1,9}-[0-9]{1,9}$"
"""The pattern of a call id that is unique over all turns. An approval has the id of its call."""


class CachedCall(Generic[T]):
    """A function's result, shared by concurrent requests. The function runs again after CACHED_S."""

    def __init__(self, function: Callable[[], Awaitable[T]], now: Callable[[], float] = time.monotonic) -> None:
        self._function = function
        self._now = now
        self._call: asyncio.Future[T] | None = None
        self._at = 0.0

    async def get(self) -> T:
        """Return the function's last result, or raise its last error."""
        call = self._call
        if call is None or (call.done() and self._now() - self._at >= CACHED_S):
            call = self._call = asyncio.ensure_future(self._function())
            call.add_done_callback(self._note_time)
        return await asyncio.shield(call)

    def _note_time(self, call: asyncio.Future[T]) -> None:
        self._at = self._now()


@dataclass(frozen=True, slots=True)
class Gateway:
    """The objects that all requests to one gateway share.

    metrics        the metrics of the fleet as text
    long_work      threads for long work, so that it delays no other request
    """

    settings: Settings
    brains: Brains
    client: AsyncClient
    authenticator: Authenticator
    caller_rates: CallerRates
    streams: StreamLimiter
    readiness: CachedCall[None]
    metrics: CachedCall[str]
    long_work: Executor


def read_idempotency_key(given: str) -> str:
    """Return the request key of an `Idempotency-Key` header.

    In the IETF's draft the header is a quoted string, but clients also send it bare. Both are the same key.
    Raises InvalidInput for a value that is not an id, and for a key that brainq could have made.
    """
    is_quoted = len(given) > 1 and given[0] == given[-1] == '"'
    key = check_id("Idempotency-Key", given[1:-1] if is_quoted else given)
    if key.startswith(DERIVED_PREFIXES):
        raise InvalidInput(
            "Idempotency-Key",
            f"it must not begin like the ids that brainq makes ({', '.join(DERIVED_PREFIXES)}); choose another",
        )
    return key


@dataclass(frozen=True, slots=True)
class GatewayRequest:
    """A request with its caller and the verb that it needs."""

    gateway: Gateway
    caller: Caller
    verb: Verb

    @property
    def client(self) -> AsyncClient:
        return self.gateway.client

    def may_access(self, session_id: str | None) -> bool:
        return may(self.caller, self.verb, session_id)

    def require_session(self, session_id: str | None) -> None:
        """Raise NotFound if the session is not the caller's, just as if it did not exist. None means all sessions."""
        if not self.may_access(session_id):
            raise NotFound("not the caller's")

    def require_own_prefix(self, session_id: str) -> None:
        """Raise SessionNotAllowed if the caller may not begin turns in this session.

        The message depends on the name and the token alone, so it reveals nothing about other tenants.
        """
        if not self.may_access(session_id):
            prefixes = " or ".join(map(repr, self.caller.prefixes or ()))
            raise SessionNotAllowed(
                f"session {session_id!r}: it is not one of this token's sessions, which begin with {prefixes}"
            )

    def require_verb(self, verb: Verb) -> None:
        """Raise RequestRejected if the caller lacks this verb."""
        if verb not in self.caller.verbs:
            raise RequestRejected("forbidden", f"this needs the verb {verb.value!r}, which the caller does not have")

    def require_options(self, names: Iterable[str]) -> None:
        """Raise RequestRejected if the caller may not choose one of these options of a turn."""
        for option in sorted(CONFIGURE_OPTIONS.intersection(names)):
            if Verb.CONFIGURE not in self.caller.verbs:
                raise RequestRejected(
                    "forbidden",
                    f"{option}: this needs the verb 'configure', which the caller does not have; omit it to use the "
                    "brain's setting",
                )

    async def own_turn(self, turn_id: str) -> AsyncTurnHandle:
        """Return one of the caller's own turns. Raises NotFound for any other, whether it exists or not."""
        handle = await self.client.handle(turn_id)
        self.require_session(handle.session_id)
        return handle

    def stream_slot(self) -> StreamSlot:
        """Take a slot for a stream or a wait. Raises RequestRejected if none is free."""
        return self.gateway.streams.enter(self.caller.counted_as)


@dataclass(frozen=True, slots=True)
class HttpRequest(GatewayRequest):
    """A request over HTTP."""

    http: Request

    async def is_authenticated(self) -> bool:
        """Return whether the token is still valid: it may be revoked or expire during a stream."""
        return await self.gateway.authenticator.authenticate(dict(self.http.headers.items())) == self.caller
