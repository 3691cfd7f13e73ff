"""Gateway: what the routes share, and how they get at it."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Path, Request

from brainq.access import Caller, Verb, may
from brainq.brains import Brains
from brainq.client.async_client import AsyncClient
from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.ids import ID_PATTERN, TURN_ID_PATTERN
from brainq.errors import NotFound
from brainq.http.kept import Kept
from brainq.http.problems import Refused
from brainq.http.rate import Rate
from brainq.http.streams import Streams
from brainq.http.verbs import A2A_VERBS, CONFIGURES, MCP_VERBS, VERBS
from brainq.http.who import Who
from brainq.settings import Settings

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
    who: Who
    callers: Rate
    strangers: Rate
    streams: Streams
    readiness: Kept[None]
    metrics: Kept[str]
    long_work: Executor


@dataclass(frozen=True, slots=True)
class Asker:
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
            raise Refused("forbidden", f"this needs the verb {verb.value!r}, which the caller does not have")

    def require_options(self, given: Iterable[str]) -> None:
        """Raise Refused where one of these options of a turn is the brain's to say, not this caller's."""
        for option in sorted(CONFIGURES.intersection(given)):
            if Verb.CONFIGURE not in self.caller.verbs:
                raise Refused(
                    "forbidden",
                    f"{option}: this needs the verb 'configure', which the caller does not have; leave it out, and it "
                    "is as the brain has it",
                )


# What is plain would be run by FastAPI in a thread of its own, each time: that is dearer than all they do.
async def gateway(request: Request) -> Gateway:
    return cast("Gateway", request.app.state.gateway)


async def asker(request: Request) -> Asker:
    """Who asks. Raises Refused where the caller may not do what the route does."""
    caller = cast("Caller", request.state.caller)
    route = f"{request.method} {request.scope['route'].path_format}"
    found = Asker(caller, VERBS.get(route) or MCP_VERBS.get(route) or A2A_VERBS[route])
    found.require_verb(found.verb)
    return found


Here = Annotated[Gateway, Depends(gateway)]
By = Annotated[Asker, Depends(asker)]


async def turn(turn_id: Annotated[str, Path(pattern=TURN_ID)], here: Here, by: By) -> AsyncTurnHandle:
    """A turn of the caller's own."""
    handle = await here.client.handle(turn_id)
    by.require(handle.session_id)
    return handle


Turn = Annotated[AsyncTurnHandle, Depends(turn)]
