"""AsyncHttpTurnHandle and AsyncHttpHold: one turn, followed and steered over HTTP on an event loop."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from contextlib import aclosing, suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, Self, cast
from urllib.parse import quote, unquote

import brainq
from brainq.client.http.direct_only import refuse_direct_verb
from brainq.client.http.parsing import error_body, files_body, parse, parse_all, result_body
from brainq.errors import AttachmentNotFound, CallNotFound, InputNotFound, NotFound, ResultTimeout, TurnNotFound

if TYPE_CHECKING:
    from brainq import (
        Approval,
        Cancelled,
        Event,
        File,
        HoldPolicy,
        Message,
        Receipt,
        RuntimeDecisionRecord,
        StandingHold,
        StartedTurn,
        Taken,
        TurnCall,
        TurnResult,
        TurnSnapshot,
        TurnTimeline,
        WaitFor,
    )
    from brainq.client.http.sending import Api

DEFAULT_HOLD_S = 3600.0
ALL = 10_000
MAX_PAGE = 1_000
MAX_WAIT_S = 30.0
QUICK_S = 0.25
LOOK_AT_HOLDS = "look at handle.holds() before you place it again"


async def collect(
    api: Api, path: str, key: str, limit: int, after: Any = None, query: Mapping[str, Any] | None = None
) -> tuple[list[Any], list[str]]:
    """Read the first `limit` items of a list after a cursor, page by page, and the names of the cells that it lacks.

    A page without `next` is numbered by its items if they have no id.
    """
    found, missing_cells = list[Any](), list[str]()
    while True:
        size = min(limit - len(found), MAX_PAGE) if limit > 0 else limit
        page = await api.json(api.get(path, {**(query or {}), "limit": size, "after": after}))
        found += page[key]
        missing_cells += page.get("cells_away", ())
        if len(page[key]) < MAX_PAGE or len(found) >= limit:
            return found, missing_cells
        last = page[key][-1]
        after = page["next"] if "next" in page else last.get("id", (after or 0) + len(page[key]))


class AsyncHttpHold:
    """A hold on a turn, with awaited verbs. As an asynchronous context manager it is released at the end."""

    def __init__(self, handle: AsyncHttpTurnHandle, hold_id: str) -> None:
        self._handle = handle
        self.session_id = handle.session_id
        self.turn_id = handle.turn_id
        self.id = hold_id

    async def release(self) -> bool:
        """Release the hold. See `Hold.release`."""
        return await self._handle.release(self.id)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.release()


class AsyncHttpTurnHandle:
    """A TurnHandle over HTTP, with awaited verbs. `await client.submit(...)` and `client.handle(turn_id)` return one.

    Its verbs are those of TurnHandle, without `request`, `delete_response` and `is_response_deleted`, which need a
    direct Client: the gateway does not show a turn's whole request, and the other two are about OpenAI's wire.
    """

    def __init__(
        self, api: Api, session_id: str, turn_id: str, *, created: bool = False, joined: Receipt | None = None
    ) -> None:
        self._api = api
        self._path = f"/v1/turns/{quote(turn_id, safe='')}"
        self.session_id = session_id
        self.turn_id = turn_id
        self.created = created
        self.joined = joined

    def __repr__(self) -> str:
        return f"{type(self).__name__}(session_id={self.session_id!r}, turn_id={self.turn_id!r})"

    async def result(self, timeout_s: float | None = None) -> TurnResult:
        """Wait for the turn's result, whatever its ending is. See `TurnHandle.result`."""
        from brainq.client.waiting import WaitLimits

        limits = WaitLimits(self.turn_id, timeout_s, None, monotonic())
        while True:
            began = monotonic()
            remaining_s = limits.remaining_s(began)
            wait_s = int(min(MAX_WAIT_S, remaining_s))
            call = self._api.get(
                f"{self._path}/result",
                headers={"Prefer": f"wait={wait_s}"} if wait_s else {},
                missing=TurnNotFound,
                wait_s=wait_s,
                within_s=None if timeout_s is None else remaining_s,
            )
            answer = await self._api.answer(call)
            if answer.status_code == 200:
                return parse(brainq.TurnResult, answer.json())
            now = monotonic()
            limits.check(now)
            if now - began < QUICK_S:  # the gateway does not wait: it stops, or its longest wait is 0
                await self._api.sleep(min(QUICK_S, limits.remaining_s(now)))

    async def wait(
        self, until: WaitFor | Collection[WaitFor] = frozenset(("ended", "parked")), timeout_s: float | None = None
    ) -> Literal["ended", "parked"]:
        """Wait until the turn has ended, or is parked. See `TurnHandle.wait`."""
        from brainq.client.waiting import check_until, is_parked

        waits = check_until(until)
        with suppress(ResultTimeout):
            await self.result(0)
            return "ended"
        if waits and is_parked(await self.snapshot(), waits):
            return "parked"
        async with aclosing(self._follow(0, timeout_s, None)) as events:
            async for event in events:
                if event.is_final:
                    return "ended"
                is_park = event.kind.value == "turn.parked" and event.data.get("awaits") in waits
                if is_park and is_parked(await self.snapshot(), waits):
                    return "parked"
        return "ended"

    def events(
        self, after: int = 0, timeout_s: float | None = None, *, idle_s: float | None = None
    ) -> AsyncIterator[Event]:
        """Iterate over the events numbered above `after`, up to the final one. See `TurnHandle.events`.

        If the connection breaks, the stream is opened again at any gateway of this address: no event is lost or
        repeated. Raises Unreachable if no gateway answers for the client's `retry_s`.
        """
        return self._follow(after, timeout_s, idle_s)

    async def _follow(self, after: int, timeout_s: float | None, idle_s: float | None) -> AsyncGenerator[Event]:
        from brainq.client.http.streams import follow
        from brainq.client.waiting import WaitLimits

        limits = WaitLimits(self.turn_id, timeout_s, idle_s, monotonic())
        call = self._api.get(f"{self._path}/events", missing=TurnNotFound)
        async with aclosing(follow(self._api, call, after, limits)) as events:
            async for event in events:
                yield event

    def text(self, timeout_s: float | None = None, *, idle_s: float | None = None) -> AsyncIterator[str]:
        """Iterate over the text of the turn's newest step as it grows. See `TurnHandle.text`."""
        from brainq.client.following import iterate_text_async

        return iterate_text_async(self.events(0, timeout_s, idle_s=idle_s), self.result)

    async def events_so_far(self) -> tuple[Event, ...]:
        """Return the events so far, without waiting for more. See `TurnHandle.events_so_far`."""
        timeline = await self.timeline()
        if timeline.source == "sql" or not timeline.seq:
            return ()
        found = list[Any]()
        async with aclosing(self._follow(0, None, None)) as events:
            async for event in events:
                found.append(event)
                if event.seq >= timeline.seq:
                    break
        return tuple(found)

    async def snapshot(self) -> TurnSnapshot | None:
        """Return the turn as Redis knows it now. Returns None once it has expired there."""
        found = (await self._read(""))["snapshot"]
        return None if found is None else parse(brainq.TurnSnapshot, found)

    async def explain(self) -> str:
        """Return one sentence that explains what happens next and why. See `TurnHandle.explain`."""
        return cast("str", (await self._read("/explain"))["next"])

    async def timeline(self) -> TurnTimeline:
        """Return the turn as bars over time. See `TurnHandle.timeline`."""
        return parse(brainq.TurnTimeline, await self._read("/timeline"))

    async def children(self) -> tuple[StartedTurn, ...]:
        """Return the turns that calls of this turn started, in the order of the calls."""
        return parse_all(brainq.StartedTurn, (await self._read("/children"))["children"])

    async def transcript(self, limit: int = ALL, after: int = 0) -> tuple[Message, ...]:
        """Return the turn's messages in order. See `TurnHandle.transcript`."""
        found, _ = await collect(self._api, f"{self._path}/transcript", "messages", limit, after)
        return parse_all(brainq.Message, found)

    async def file(self, sha256: str) -> File:
        """Return an attachment of one of the turn's messages. See `TurnHandle.file`."""
        path = f"{self._path}/files/{quote(sha256, safe='')}"
        answer = await self._api.answer(self._api.get(path, missing=AttachmentNotFound))
        name = unquote(answer.headers.get("Content-Disposition", "").partition("filename*=UTF-8''")[2])
        media_type = answer.headers.get("Content-Type", "")
        return brainq.File(answer.content, media_type, "" if name == sha256[:12] else name)

    async def decision(self) -> RuntimeDecisionRecord | None:
        """Return how the turn reached its answer. See `TurnHandle.decision`."""
        found = (await self._read("/decision"))["decision"]
        return None if found is None else parse(brainq.RuntimeDecisionRecord, found)

    async def calls(self, limit: int = ALL, after: str | None = None) -> tuple[TurnCall, ...]:
        """Return every call of the turn in the model's order. See `TurnHandle.calls`."""
        found, _ = await collect(self._api, f"{self._path}/calls", "calls", limit, after)
        return parse_all(brainq.TurnCall, found)

    async def give_result(self, call_id: str, result: object, *, partial: bool = False) -> Taken:
        """Give the result of a call of one of your `client_tools`, once. See `TurnHandle.give_result`."""
        return await self._give(call_id, result_body(result, partial=partial))

    async def give_error(self, call_id: str, error: str) -> Taken:
        """Give an error in place of a result: one line for the model. See `TurnHandle.give_error`."""
        return await self._give(call_id, error_body(error))

    async def _give(self, call_id: str, body: Mapping[str, Any]) -> Taken:
        path = f"{self._path}/calls/{quote(call_id, safe='')}/result"
        return cast("Taken", (await self._api.json(self._api.post(path, body, missing=CallNotFound)))["taken"])

    async def cancel(self, reason: str = "") -> Cancelled:
        """Request that the turn be cancelled. See `TurnHandle.cancel`."""
        return cast("Cancelled", (await self._write("/cancel", {"reason": reason}))["cancelled"])

    async def steer(
        self,
        text: str,
        *,
        client_message_id: str | None = None,
        readiness: bool | None = None,
        expected_turn_id: str | None = None,
        attachments: Sequence[File | Mapping[str, Any]] = (),
    ) -> Receipt:
        """Send follow-up input into the turn. See `TurnHandle.steer`."""
        return await send_input(
            self._api, self._path, text, client_message_id, readiness, expected_turn_id, attachments
        )

    async def receipt(self, client_message_id: str) -> Receipt:
        """Return what became of an input of this session. Raises InputNotFound if it was never sent."""
        from brainq.contracts.ids import check_id

        path = f"/input/{quote(check_id('client_message_id', client_message_id), safe='')}"
        return parse(brainq.Receipt, await self._read(path, InputNotFound))

    async def hold(
        self, reason: str = "", *, expires_in_s: float = DEFAULT_HOLD_S, on_expiry: HoldPolicy = "deny"
    ) -> AsyncHttpHold:
        """Keep calls with effects from starting until the hold is released. See `TurnHandle.hold`."""
        body = {"reason": reason, "expires_in_s": expires_in_s, "on_expiry": on_expiry}
        call = self._api.post(f"{self._path}/holds", body, missing=TurnNotFound, once=LOOK_AT_HOLDS)
        return AsyncHttpHold(self, (await self._api.json(call))["id"])

    async def holds(self) -> tuple[StandingHold, ...]:
        """Return the open holds of the turn, including its readiness flag."""
        return parse_all(brainq.StandingHold, (await self._read("/holds"))["holds"])

    async def release(self, hold_id: str) -> bool:
        """Release a hold that was placed elsewhere. Returns False if it was not open."""
        path = f"{self._path}/holds/{quote(hold_id, safe='')}"
        return bool((await self._api.json(self._api.delete(path, missing=TurnNotFound)))["released"])

    async def approvals(self) -> tuple[Approval, ...]:
        """Return the turn's approval requests, in the order in which they were made."""
        return parse_all(brainq.Approval, (await self._read("/approvals"))["approvals"])

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute
        __getattr__ = refuse_direct_verb

    async def _read(self, path: str, missing: type[NotFound] = TurnNotFound) -> Any:
        return await self._api.json(self._api.get(self._path + path, missing=missing))

    async def _write(self, path: str, body: Mapping[str, Any]) -> Any:
        return await self._api.json(self._api.post(self._path + path, body, missing=TurnNotFound))


async def send_input(
    api: Api,
    path: str,
    text: str,
    client_message_id: str | None,
    readiness: bool | None,
    expected_turn_id: str | None,
    attachments: Sequence[File | Mapping[str, Any]],
) -> Receipt:
    """Send input to a turn or to a session's live turn. It has an id, under which repeating it is the same input."""
    from brainq.client.checks import expected_turn, turn_input
    from brainq.contracts.file import read_files

    files = read_files("attachments", attachments)
    item = turn_input(text, client_message_id, readiness, files)
    body = {
        "text": item.text,
        "client_message_id": item.client_message_id,
        "readiness": readiness,
        "expected_turn_id": expected_turn(expected_turn_id),
        "attachments": files_body("attachments", files),
    }
    call = api.post(f"{path}/input", body, missing=TurnNotFound, client_message_id=item.client_message_id)
    return parse(brainq.Receipt, await api.json(call))
