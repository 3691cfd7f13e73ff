"""AsyncHttpSession and AsyncHttpFlag: the turns of one conversation, over HTTP on an event loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, Unpack, cast
from urllib.parse import quote

import brainq
from brainq.client.http.async_handle import DEFAULT_HOLD_S, MAX_PAGE, AsyncHttpTurnHandle, send_input
from brainq.client.http.parsing import parse_all
from brainq.contracts.ids import check_turn_id, new_turn_id
from brainq.errors import NotFound, Unreachable

if TYPE_CHECKING:
    from brainq import File, HistoryTurn, HoldPolicy, Receipt, SubmitOptions, WaitingTurn
    from brainq.client.http.async_client import AsyncHttpClient
    from brainq.client.http.sending import Api

EMPTY: Mapping[str, Any] = {"live": None, "waiting": (), "is_paused": False, "why_paused": None, "flags": ()}
LOOK_AT_FLAGS = "look at session.unread_flags() before you add it again"


class AsyncHttpFlag:
    """A readiness flag, with awaited verbs. As an asynchronous context manager it is released at the end."""

    def __init__(self, api: Api, session_id: str, flag_id: str) -> None:
        self._api = api
        self.session_id = session_id
        self.id = flag_id

    def __repr__(self) -> str:
        return f"{type(self).__name__}(session_id={self.session_id!r}, id={self.id!r})"

    async def release(self) -> bool:
        """Release the flag. See `Flag.release`."""
        path = f"/v1/sessions/{quote(self.session_id, safe='')}/flags/{quote(self.id, safe='')}"
        return bool((await self._api.json(self._api.delete(path)))["released"])

    ready = release

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.release()


class AsyncHttpSession:
    """A Session over HTTP, with awaited verbs. It keeps no state of its own."""

    def __init__(self, client: AsyncHttpClient, api: Api, session_id: str) -> None:
        self._client = client
        self._api = api
        self._path = f"/v1/sessions/{quote(session_id, safe='')}"
        self.session_id = session_id

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.session_id!r})"

    async def submit(self, user_message: str, **options: Unpack[SubmitOptions]) -> AsyncHttpTurnHandle:
        """See `Client.submit`."""
        return await self._client.submit(self.session_id, user_message, **options)

    async def live(self) -> str | None:
        """Return the id of the live turn, parked or not. Returns None if there is none."""
        return cast("str | None", (await self._status())["live"])

    async def history(self, limit: int = 50, after: str | None = None) -> tuple[HistoryTurn, ...]:
        """Return the session's newest turns, the oldest of them first. See `Session.history`."""
        found = list[Any]()
        while True:
            size = min(limit - len(found), MAX_PAGE) if limit > 0 else limit
            call = self._api.get(f"{self._path}/history", {"limit": size, "after": after})
            page = (await self._api.json(call))["turns"]
            found = [*page, *found]
            if len(page) < MAX_PAGE or len(found) >= limit:
                return parse_all(brainq.HistoryTurn, found)
            after = page[0]["turn_id"]

    async def waiting(self) -> tuple[WaitingTurn, ...]:
        """Return the waiting turns, the next one first."""
        return parse_all(brainq.WaitingTurn, (await self._status())["waiting"])

    async def drop(self, turn_id: str) -> bool:
        """Cancel a turn that still waits. Returns False if it does not wait any more; a live turn continues."""
        path = f"{self._path}/waiting/{check_turn_id('turn_id', turn_id)}"
        return bool((await self._api.json(self._api.delete(path)))["changed"])

    async def pause(self, reason: str = "") -> bool:
        """Let no further turn begin; a live turn continues. See `Session.pause`. The reason begins with the token's
        name."""
        return bool((await self._write("/pause", {"reason": reason}))["changed"])

    async def resume(self) -> str | None:
        """Let turns begin again. Returns the id of the turn that became live, or None if there was none."""
        return cast("str | None", (await self._write("/resume"))["turn_id"])

    async def is_paused(self) -> bool:
        """Return whether the session is paused."""
        return bool((await self._status())["is_paused"])

    async def why_paused(self) -> str | None:
        """Return who paused the session, and why. Returns None if it is not paused."""
        return cast("str | None", (await self._status())["why_paused"])

    async def readiness(
        self, reason: str = "", *, expires_in_s: float = DEFAULT_HOLD_S, on_expiry: HoldPolicy = "deny"
    ) -> AsyncHttpFlag:
        """Add a readiness flag: the next chat turn is held until the flag is released. See `Session.readiness`."""
        body = {"reason": reason, "expires_in_s": expires_in_s, "on_expiry": on_expiry}
        answer = await self._api.json(self._api.post(f"{self._path}/flags", body, once=LOOK_AT_FLAGS))
        return AsyncHttpFlag(self._api, self.session_id, answer["id"])

    def flag(self, flag_id: str) -> AsyncHttpFlag:
        """Return a flag that was added elsewhere."""
        return AsyncHttpFlag(self._api, self.session_id, flag_id)

    async def unread_flags(self) -> tuple[str, ...]:
        """Return the ids of flags that no turn has taken yet, oldest first."""
        return tuple((await self._status())["flags"])

    async def steer(
        self,
        text: str,
        *,
        client_message_id: str | None = None,
        readiness: bool | None = None,
        expected_turn_id: str | None = None,
        attachments: Sequence[File | Mapping[str, Any]] = (),
    ) -> Receipt:
        """Send input into the live turn. See `Session.steer`."""
        return await send_input(
            self._api, self._path, text, client_message_id, readiness, expected_turn_id, attachments
        )

    async def interrupt(self, reason: str = "") -> str | None:
        """Cancel the live turn, so that the next one begins. Returns its id, or None if no turn was live.

        A repeated interrupt would cancel the next turn. So if it is not known whether the first one was done, it is
        repeated only if the same turn is still live.
        """
        live = await self.live()
        while live is not None:
            call = self._api.post(f"{self._path}/interrupt", {"reason": reason}, once="look at session.live()")
            try:
                return cast("str | None", (await self._api.json(call))["turn_id"])
            except Unreachable:
                if await self.live() != live:
                    return live
        return None

    async def compact(self, request_key: str | None = None) -> AsyncHttpTurnHandle:
        """Submit a turn that only replaces the session's older messages by a summary. See `Session.compact`."""
        key = request_key or new_turn_id()
        call = self._api.post(f"{self._path}/compact", headers={"Idempotency-Key": key}, request_key=key)
        answer = await self._api.json(call)
        return AsyncHttpTurnHandle(
            self._api, answer["session_id"], answer["turn_id"], created=answer["created"] or request_key is None
        )

    async def _status(self) -> Mapping[str, Any]:
        """Return the state of the session, which the gateway does not know before its first turn."""
        try:
            return cast("Mapping[str, Any]", await self._api.json(self._api.get(self._path)))
        except NotFound:
            return EMPTY

    async def _write(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        return await self._api.json(self._api.post(self._path + path, body))
