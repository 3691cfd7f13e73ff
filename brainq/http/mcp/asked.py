"""Asked: one request of an MCP client, and what it may reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from mcp.server import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

from brainq.access import Caller, Verb
from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.first_wrong import first_wrong
from brainq.http.gateway import Asker, Gateway
from brainq.http.problems import Refused

Context: TypeAlias = ServerRequestContext[Any, Any]
B = TypeVar("B", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Asked:
    """Who asks what.

    context   the SDK's: the session with the client, the request's id and its `_meta`
    scope     within which the client's request ids are unique; "": nobody can tell, each request stands alone
    """

    here: Gateway
    caller: Caller
    context: Context
    scope: str

    @property
    def is_over_http(self) -> bool:
        return self.context.request is not None

    @property
    def is_modern(self) -> bool:
        """Whether the client speaks a version without sessions, of 2026 or later."""
        return self.context.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def meta(self) -> Mapping[str, Any]:
        return dict(self.context.meta or {})

    def by(self, verb: Verb) -> Asker:
        """Who asks, for what needs this verb. Raises Refused where the caller lacks it."""
        asker = Asker(self.caller, verb)
        asker.require_verb(verb)
        return asker

    async def turn(self, turn_id: str, verb: Verb = Verb.READ) -> AsyncTurnHandle:
        """A turn of the caller's own. Raises NotFound, for another's too."""
        by = self.by(verb)
        handle = await self.here.client.handle(turn_id)
        by.require(handle.session_id)
        return handle

    async def require_welcome(self) -> None:
        """Raise Refused once the token was revoked, or has expired, while its request waits."""
        request = self.context.request
        if request is not None and await self.here.who.authenticate(dict(request.headers)) != self.caller:
            raise Refused("unauthorized", "the token is no longer good")


def read(model: type[B], field: str, given: object) -> B:
    """What a client sent, as `model`. Raises InvalidInput naming the first field that is wrong; never its value."""
    try:
        return model.model_validate(given)
    except ValidationError as wrong:
        raise first_wrong(wrong.errors(include_url=False), given, whole=field) from None
