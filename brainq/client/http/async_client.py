"""AsyncHttpClient: submits turns and finds them again, over HTTP on an event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, Unpack
from urllib.parse import quote

import brainq
from brainq.client.http.async_handle import AsyncHttpTurnHandle, collect
from brainq.client.http.async_session import AsyncHttpSession
from brainq.client.http.async_verbs import AsyncHttpVerbs
from brainq.client.http.direct_only import refuse_direct_verb
from brainq.client.http.parsing import parse, parse_all, submit_body
from brainq.client.paging import PAGE_SIZE, find_turn, iterate_pages_async
from brainq.contracts.ids import check_id, check_turn_id, new_turn_id
from brainq.errors import InvalidInput, TurnNotFound

if TYPE_CHECKING:
    from datetime import datetime

    from brainq import Approval, ListedSession, ListedTurn, Sort, SubmitOptions, TurnFilters, TurnResult
    from brainq.client.http.sending import Transport

MOST_FOUND = 1_000


class AsyncHttpClient(AsyncHttpVerbs):
    """AsyncClient over the gateway's HTTP API, for programs without Redis, SQL, the brain and its tools.

    async with AsyncHttpClient("https://brainq.example.com", token) as client:
        handle = await client.submit("acme:ann", "What is on my list?")
        async for text in handle.text():
            show(text)

    url: the address of a gateway, or of a proxy before several.
    token: of `brainq token create`. It decides which sessions the client sees, and what it may do.
    retry_s: for how long a request is repeated while no gateway answers. What may not be repeated is not.
    options: arguments of httpx.AsyncClient: timeout, verify, cert, proxy, headers and others.

    It has the verbs of AsyncClient, with the same types and errors, except for `state`, `begin_try` and `end_try`,
    which are about Redis itself. No verb takes `session_prefixes`: the token has them. Raises GatewayRefused for what
    only a gateway refuses, such as a token without a right.
    """

    def __init__(self, url: str, token: str = "", *, retry_s: float = 30.0, **options: Any) -> None:
        from brainq.client.http.sending import open_transport

        self._open(url, open_transport(url, token, options, on_loop=True), retry_s)

    def _open(self, url: str, transport: Transport, retry_s: float) -> None:
        from brainq.client.http.sending import Api

        self._api = Api(url, transport, retry_s)

    @classmethod
    def over(cls, url: str, transport: Transport, retry_s: float) -> Self:
        """Return a client over a transport that is open."""
        made = cls.__new__(cls)
        made._open(url, transport, retry_s)
        return made

    async def brains(self) -> tuple[str, ...]:
        """Return the names of the brains. The first is the default."""
        return tuple(brain["name"] for brain in (await self._api.json(self._api.get("/v1/brains")))["brains"])

    async def submit(self, session_id: str, user_message: str, **options: Unpack[SubmitOptions]) -> AsyncHttpTurnHandle:
        """Accept a turn. Returns once SQL has it. See `Client.submit`.

        It is sent under its `request_key`, or one that is made here, so that a repeated request is the same turn.
        """
        given = options.get("request_key")
        key = check_id("request_key", given) if given else new_turn_id()
        body = submit_body(AsyncHttpClient.submit, options, session_id=session_id, user_message=user_message)
        call = self._api.post("/v1/turns", body, headers={"Idempotency-Key": key}, request_key=key)
        answer = await self._api.json(call)
        receipt = answer.get("receipt")
        return AsyncHttpTurnHandle(
            self._api,
            answer["session_id"],
            answer["turn_id"],
            # A repeated request finds the turn of the first one, which this client made.
            created=answer["created"] or (given is None and receipt is None),
            joined=None if receipt is None else parse(brainq.Receipt, receipt),
        )

    async def run(
        self, session_id: str, user_message: str, *, timeout_s: float | None = None, **options: Unpack[SubmitOptions]
    ) -> TurnResult:
        """Submit a turn and wait for its result. See `Client.run`."""
        from brainq.client.waiting import NEEDS_CALLER, turn_parked_error

        handle = await self.submit(session_id, user_message, **options)
        if await handle.wait(NEEDS_CALLER, timeout_s) == "parked":
            snapshot, approvals = await handle.snapshot(), await handle.approvals()
            raise turn_parked_error(handle.turn_id, handle.session_id, snapshot, approvals)
        return await handle.result()

    async def handle(self, turn_id: str) -> AsyncHttpTurnHandle:
        """Return the handle of a turn that any process submitted earlier. Raises TurnNotFound."""
        try:
            path = f"/v1/turns/{quote(check_turn_id('turn_id', turn_id), safe='')}"
        except InvalidInput as invalid:
            raise TurnNotFound(str(invalid)) from None
        answer = await self._api.json(self._api.get(path, missing=TurnNotFound))
        return AsyncHttpTurnHandle(self._api, answer["session_id"], answer["turn_id"])

    async def find(self, sought: str) -> AsyncHttpTurnHandle:
        """Return the handle of the turn with this id or beginning of an id. See `Client.find`.

        A request key finds its turn only if the token has all sessions, because others' keys are stored as hashes.
        """
        try:
            return await self.handle(sought)
        except TurnNotFound:
            listed = await self.turns(text=sought, limit=MOST_FOUND)
            matches = [turn for turn in listed if turn.turn_id.startswith(sought) or turn.request_key == sought]
            found = find_turn(matches, sought)
            return AsyncHttpTurnHandle(self._api, found.session_id, found.turn_id)

    def session(self, session_id: str) -> AsyncHttpSession:
        """Return a session, to read its queue, pause it, or steer its live turn. Raises InvalidInput."""
        return AsyncHttpSession(self, self._api, check_id("session_id", session_id))

    async def turns(
        self,
        session: str | None = None,
        state: str | None = None,
        limit: int = 50,
        *,
        after: str | None = None,
        brain: str | None = None,
        ending: str | None = None,
        stop_reason: str | None = None,
        failing: bool = False,
        unknown: bool = False,
        min_cost_usd: float | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        text: str = "",
        strategy: str | None = None,
        search: str = "",
        sort: Sort = "newest",
        metadata: Mapping[str, Any] | None = None,
        prompt_tags: Sequence[str] = (),
    ) -> tuple[ListedTurn, ...]:
        """List turns, the newest first. Each filter keeps only the turns that it describes. See `Client.turns`."""
        from brainq.contracts.history import metadata_pairs

        query: dict[str, Any] = {
            "session": session,
            "state": state,
            "brain": brain,
            "ending": ending,
            "stop_reason": stop_reason,
            "failing": failing or None,
            "unknown": unknown or None,
            "min_cost_usd": min_cost_usd,
            "since": None if since is None else since.isoformat(),
            "until": None if until is None else until.isoformat(),
            "text": text or None,
            "strategy": strategy,
            "search": search or None,
            "sort": sort,
            "metadata": list(metadata_pairs(metadata or {})),
            "prompt_tags": list(prompt_tags),
        }
        found, missing_cells = await collect(self._api, "/v1/turns", "turns", limit, after, query)
        return parse_all(brainq.ListedTurn, found, missing_cells)

    def iterate_turns(self, **filters: Unpack[TurnFilters]) -> AsyncIterator[ListedTurn]:
        """Iterate over every turn that `turns` lists. Pages are read as they are needed."""
        given: Any = filters
        return iterate_pages_async(
            lambda after: self.turns(limit=PAGE_SIZE, after=after, **given), lambda turn: turn.turn_id
        )

    async def sessions(
        self, prefix: str = "", limit: int = 50, *, after: str | None = None
    ) -> tuple[ListedSession, ...]:
        """List sessions that have a turn, the one with the newest turn first. See `Client.sessions`."""
        found, missing_cells = await collect(
            self._api, "/v1/sessions", "sessions", limit, after, {"prefix": prefix or None}
        )
        return parse_all(brainq.ListedSession, found, missing_cells)

    def iterate_sessions(self, prefix: str = "") -> AsyncIterator[ListedSession]:
        """Iterate over every session that `sessions` lists. Pages are read as they are needed."""
        return iterate_pages_async(
            lambda after: self.sessions(prefix, PAGE_SIZE, after=after), lambda session: session.last_turn.turn_id
        )

    def iterate_approvals(self, session: str | None = None, state: str | None = "pending") -> AsyncIterator[Approval]:
        """Iterate over every approval that `approvals` lists. Pages are read as they are needed."""
        return iterate_pages_async(
            lambda after: self.approvals(session, state, PAGE_SIZE, after=after), lambda approval: approval.id
        )

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute
        __getattr__ = refuse_direct_verb

    async def ping(self) -> None:
        """Raise Unreachable if the gateway, Redis or SQL does not answer."""
        await self._api.answer(self._api.get("/readyz", within_s=0.0))

    async def close(self) -> None:
        """Close the connections."""
        await self._api.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
