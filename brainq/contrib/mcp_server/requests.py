"""Requests of MCP clients, and the turns that their calls begin. A repeated call is the same turn."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

from mcp.server import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

from brainq.app.access import Caller, Verb, may
from brainq.client.async_client import AsyncClient
from brainq.contracts.base import first_problem
from brainq.contracts.ids import new_turn_id
from brainq.engine.tools.mcp.calls import IDEMPOTENCY_KEY
from brainq.errors import BrainqError, InvalidInput, NotFound
from brainq.gateway.edge.limits import StreamSlot
from brainq.gateway.edge.problems import RequestRejected
from brainq.gateway.edge.request import GatewayRequest
from brainq.runtime.observe.logs import logger
from brainq.runtime.observe.tasks import start_task

McpContext: TypeAlias = ServerRequestContext[Any, Any]
B = TypeVar("B", bound=BaseModel)
log = logger("brainq.gateway")
RequestId = str | int
ON_DISCONNECT = "brainq/on-disconnect"
"""A key in a call's `_meta`. With the value `continue`, a disconnect does not cancel the turn."""
MAX_KEY_CHARS = 500
MAX_NOTED_CALLS = 10_000
CANCEL_TRIES = 20
CANCEL_RETRY_S = 0.1
"""The interval at which the turn of a cancelled call is looked up, because the cancel may arrive before the turn is
accepted.
"""


@dataclass(frozen=True, slots=True)
class McpRequest(GatewayRequest):
    """A request of an MCP client. It has the verb that all requests need; see `needing` for others.

    context   the SDK's context: the session with the client, the request's id and its `_meta`
    scope     the scope within which the client's request ids are unique, or "" if it is unknown
    """

    context: McpContext
    scope: str

    @property
    def is_over_http(self) -> bool:
        return self.context.request is not None

    @property
    def is_modern(self) -> bool:
        """Return whether the client's version of the protocol, of 2026 or later, has no sessions."""
        return self.context.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def meta(self) -> Mapping[str, Any]:
        return dict(self.context.meta or {})

    def needing(self, verb: Verb) -> McpRequest:
        """Return the request with this verb. Raises RequestRejected if the caller lacks it."""
        self.require_verb(verb)
        return replace(self, verb=verb)

    async def require_valid_token(self) -> None:
        """Raise RequestRejected if the token was revoked or expired while the request waited."""
        request = self.context.request
        if request is not None and await self.gateway.authenticator.authenticate(dict(request.headers)) != self.caller:
            raise RequestRejected("unauthorized", "the token is no longer valid")


def read_input(model: type[B], field: str, given: object) -> B:
    """Read a client's input. Raises InvalidInput that names the first invalid field, without its value."""
    try:
        return model.model_validate(given)
    except ValidationError as wrong:
        raise first_problem(wrong.errors(include_url=False), given, whole=field) from None


class CallsInFlight:
    """The calls that may be cancelled, by the request id from their client.

    A request id is unique in its scope, so every gateway can derive the turn's request key from it. For recent calls
    of this process that have their own key or continue a turn, the key or turn id is stored.
    """

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._noted: OrderedDict[tuple[str, RequestId], str] = OrderedDict()
        self._cancelling: set[asyncio.Task[None]] = set()

    def request_key(self, request: McpRequest) -> str:
        """Return the key under which the call submits its turn. Raises InvalidInput for an invalid client key."""
        client_key = _client_key(request.meta)
        if client_key is not None:
            return _hashed_key(request.caller, f"given {client_key}")
        if request.scope:
            return _hashed_key(request.caller, f"{request.scope} {request.context.request_id!r}")
        return _hashed_key(request.caller, new_turn_id())

    @contextmanager
    def cancelled_with(self, request: McpRequest, slot: StreamSlot, sought: str) -> Generator[None]:
        """Cancel the turn with this request key or id if the client disconnects within the context.

        That is how clients with modern versions of the protocol cancel over HTTP. Other clients send a notification;
        see `cancelled`.
        """
        request_id = request.context.request_id
        if request.scope and request_id is not None:
            self._noted[request.scope, request_id] = sought
            if len(self._noted) > MAX_NOTED_CALLS:
                self._noted.popitem(last=False)
        try:
            yield
        except asyncio.CancelledError:
            goes_on = slot.stopping.is_set() or request.meta.get(ON_DISCONNECT) == "continue"
            if request.is_over_http and request.is_modern and not goes_on:
                self._cancel_soon(request.caller, sought)
            raise

    def cancelled(self, request: McpRequest, request_id: RequestId) -> None:
        """Cancel the turn of this request, if it has begun one, because the client sent a notification."""
        if not request.scope:
            return
        noted = self._noted.pop((request.scope, request_id), None)
        self._cancel_soon(request.caller, noted or _hashed_key(request.caller, f"{request.scope} {request_id!r}"))

    async def close(self) -> None:
        """Wait for the cancels that have begun."""
        if self._cancelling:
            await asyncio.wait(self._cancelling)

    def _cancel_soon(self, caller: Caller, sought: str) -> None:
        task = start_task("brainq-mcp-cancel", self._cancel(caller, sought))
        self._cancelling.add(task)
        task.add_done_callback(self._cancelling.discard)

    async def _cancel(self, caller: Caller, sought: str) -> None:
        for _ in range(CANCEL_TRIES):
            try:
                handle = await self._client.find(sought)
                if may(caller, Verb.STEER, handle.session_id):
                    await handle.cancel("by its MCP client")
            except NotFound:
                await asyncio.sleep(CANCEL_RETRY_S)
            except BrainqError as failure:
                log.warning("a cancel could not be carried out", failure=failure)
                return
            else:
                return


def default_session(caller: Caller, request_key: str) -> str:
    """Return the session of a call that names none. It has the caller's prefix, and is the same for a repeated call."""
    return f"{(caller.prefixes or ('',))[0]}{request_key[:28]}"


def _client_key(meta: Mapping[str, Any]) -> str | None:
    key = meta.get(IDEMPOTENCY_KEY)
    if key is not None and not (isinstance(key, str) and 0 < len(key) <= MAX_KEY_CHARS):
        raise InvalidInput(f"_meta.{IDEMPOTENCY_KEY}", f"send a text of 1 to {MAX_KEY_CHARS} characters")
    return key


def _hashed_key(caller: Caller, text: str) -> str:
    """Return a key made from any text, distinct for each caller."""
    scoped = f"{caller.counted_as} {text}".encode("utf-8", "surrogatepass")
    return f"mcp-{hashlib.sha256(scoped).hexdigest()[:40]}"
