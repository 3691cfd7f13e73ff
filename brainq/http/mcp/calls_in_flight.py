"""Which turn a call began: sent again it is the same turn, and cancelled it ends."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from brainq.access import Caller, Verb, may
from brainq.client.async_client import AsyncClient
from brainq.contracts.ids import new_turn_id
from brainq.errors import BrainqError, InvalidInput, NotFound
from brainq.http.mcp.asked import Asked
from brainq.http.streams import Place
from brainq.observe.logs import logger
from brainq.tools.mcp.function import IDEMPOTENCY_KEY

ON_DISCONNECT = "brainq/on-disconnect"
"""In a call's `_meta`: `continue`, and a connection that ends cancels nothing."""

MAX_KEY_CHARS = 500
MOST_NOTED = 10_000
PATIENCE = 20
APART_S = 0.1
"""A cancel may come before its call's turn is accepted: it is looked for so often, so far apart."""

RequestId = str | int
log = logger("brainq.http")


class CallsInFlight:
    """Finds the turn of a call by the id that its client gave the request.

    The id is unique in its scope, so the turn's request key follows from it, at every gateway. What does not follow is
    noted for the newest calls of this process: those with a key of their own, and those that go on with a turn.
    """

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._noted: OrderedDict[tuple[str, RequestId], str] = OrderedDict()
        self._cancelling: set[asyncio.Task[None]] = set()

    def request_key(self, asked: Asked) -> str:
        """Under which the call submits its turn. Raises InvalidInput for a key of the client's that is none."""
        given = _given_key(asked.meta)
        if given is not None:
            return _key(asked.caller, f"given {given}")
        if asked.scope:
            return _key(asked.caller, f"{asked.scope} {asked.context.request_id!r}")
        return _key(asked.caller, new_turn_id())

    @contextmanager
    def cancelled_with(self, asked: Asked, place: Place, sought: str) -> Generator[None]:
        """While a call waits for the turn with this request key, or id. In the newer age of the protocol a client
        cancels over HTTP by ending the connection; elsewhere it says so, see `cancelled`."""
        request_id = asked.context.request_id
        if asked.scope and request_id is not None:
            self._noted[asked.scope, request_id] = sought
            if len(self._noted) > MOST_NOTED:
                self._noted.popitem(last=False)
        try:
            yield
        except asyncio.CancelledError:
            goes_on = place.stopping.is_set() or asked.meta.get(ON_DISCONNECT) == "continue"
            if asked.is_over_http and asked.is_modern and not goes_on:
                self._cancel_soon(asked.caller, sought)
            raise

    def cancelled(self, asked: Asked, request_id: RequestId) -> None:
        """The client says that it cancels this request. Of one that began no turn nothing comes."""
        if not asked.scope:
            return
        noted = self._noted.pop((asked.scope, request_id), None)
        self._cancel_soon(asked.caller, noted or _key(asked.caller, f"{asked.scope} {request_id!r}"))

    async def close(self) -> None:
        """Let the cancels that are under way be done."""
        if self._cancelling:
            await asyncio.wait(self._cancelling)

    def _cancel_soon(self, caller: Caller, sought: str) -> None:
        task = asyncio.get_running_loop().create_task(self._cancel(caller, sought))
        self._cancelling.add(task)
        task.add_done_callback(self._cancelling.discard)

    async def _cancel(self, caller: Caller, sought: str) -> None:
        for _ in range(PATIENCE):
            try:
                handle = await self._client.find(sought)
                if may(caller, Verb.STEER, handle.session_id):
                    await handle.cancel("by its MCP client")
            except NotFound:
                await asyncio.sleep(APART_S)
            except BrainqError as failure:
                log.warning("a cancel was lost", failure=failure)
                return
            else:
                return


def own_session(caller: Caller, request_key: str) -> str:
    """The session of a call that names none: the caller's own, and the same for the same call."""
    return f"{(caller.prefixes or ('',))[0]}{request_key[:28]}"


def _given_key(meta: Mapping[str, Any]) -> str | None:
    key = meta.get(IDEMPOTENCY_KEY)
    if key is not None and not (isinstance(key, str) and 0 < len(key) <= MAX_KEY_CHARS):
        raise InvalidInput(f"_meta.{IDEMPOTENCY_KEY}", f"send a text of 1 to {MAX_KEY_CHARS} characters")
    return key


def _key(caller: Caller, text: str) -> str:
    """Any text makes a key; the same text of another caller's makes another."""
    said = f"{caller.counted_as} {text}".encode("utf-8", "surrogatepass")
    return f"mcp-{hashlib.sha256(said).hexdigest()[:40]}"
