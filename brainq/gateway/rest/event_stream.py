"""Following a turn: wait for its result, or stream its events from any number on, in the encoding of any wire."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, cast
from urllib.request import parse_http_list

from fastapi import APIRouter, Header, Query, Response
from fastapi.sse import format_sse_event
from starlette.types import Receive, Scope, Send

from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.event import TurnEvent
from brainq.contracts.turn import TurnResult
from brainq.errors import BrainqError, ResultTimeout
from brainq.gateway.edge.access import RequestDep, TurnDep
from brainq.gateway.edge.limits import StreamSlot
from brainq.gateway.edge.problems import RequestRejected, problem_responses
from brainq.gateway.edge.request import HttpRequest
from brainq.gateway.rest.bodies import MAX_NUMBER
from brainq.runtime.observe.logs import logger

_WAIT = re.compile(r'wait\s*=\s*"?(\d{1,9})"?\s*(?:[;,]|$)', re.IGNORECASE)
router = APIRouter(tags=["turns"])
T = TypeVar("T")
HEARTBEAT = b": alive\n\n"
"""A comment, which readers ignore. It keeps proxies from cutting a quiet stream."""
RECONNECT_MS = 1_000
RECONNECT_FRAME = format_sse_event(comment="reconnect with Last-Event-ID", retry=RECONNECT_MS)
"""The frame that precedes the end of an unfinished stream. An EventSource reconnects with its last event id."""
log = logger("brainq.gateway")
GATHER_S = 0.25
"""The seconds for which a stream that could pause waits for another event, so that simultaneous events are sent
together.
"""
FIRST_EVENT_S = 1.0
"""The seconds for which the response waits for the first event. That event is late only if the turn
was just accepted.
"""
NextEvent = asyncio.Task[TurnEvent | None]


def requested_wait_s(prefer: str, max_s: float) -> float:
    """Return the seconds that a `Prefer` header requests, at most `max_s`, or 0 if it requests none."""
    for preference in parse_http_list(prefer):
        found = _WAIT.match(preference)
        if found:
            return min(max_s, float(found[1]))
    return 0.0


async def unless_over(work: Awaitable[T], request: HttpRequest, slot: StreamSlot) -> T | None:
    """Return the result of `work`, or None if the gateway stops or the client disconnects first."""
    task = asyncio.ensure_future(work)
    over = [
        asyncio.ensure_future(slot.stopping.wait()),
        asyncio.ensure_future(wait_for_disconnect(request.http.receive)),
    ]
    try:
        await asyncio.wait({task, *over}, return_when=asyncio.FIRST_COMPLETED)
        return await task if task.done() else None
    finally:
        for each in (task, *over):
            each.cancel()


async def wait_for_result(request: HttpRequest, handle: AsyncTurnHandle, wait_s: float) -> TurnResult | None:
    """Return the result if it is ready within `wait_s`, or None if not, or if the gateway stops or the client leaves.

    Raises RequestRejected if no slot is free.
    """
    with request.stream_slot() as slot:
        return await unless_over(result_if_ready(handle, wait_s), request, slot)


async def wait_for_disconnect(receive: Receive) -> None:
    """Return when the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def result_if_ready(handle: AsyncTurnHandle, wait_s: float = 0) -> TurnResult | None:
    try:
        return await handle.result(timeout_s=wait_s)
    except ResultTimeout:
        return None


def event_frame(event: TurnEvent) -> bytes:
    """Return the frame of an event: its id is the event's number, and its data the event's JSON."""
    return format_sse_event(data_str=event.model_dump_json(), id=str(event.seq))


class EventReader:
    """A reader of a turn's events. `next` is a task for the next event; its result is None after the last one."""

    def __init__(self, events: AsyncIterator[TurnEvent]) -> None:
        self._events = events
        self.advance()

    def advance(self) -> None:
        self.next: NextEvent = asyncio.ensure_future(anext(self._events, None))

    def skip(self, last_seen: int) -> None:
        """Skip the next event if its number is `last_seen` or lower. The event may arrive later."""
        self.next = asyncio.ensure_future(self._after(last_seen, self.next))

    async def wait(self, timeout_s: float, *over: asyncio.Future[Any]) -> bool:
        """Return whether the next event arrived within `timeout_s` and before one of `over` was done."""
        if not self.next.done():
            await asyncio.wait({self.next, *over}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        return self.next.done()

    async def _after(self, last_seen: int, awaited: NextEvent) -> TurnEvent | None:
        event = await awaited
        is_seen = event is not None and event.seq <= last_seen
        return await anext(self._events, None) if is_seen else event

    async def close(self) -> None:
        self.next.cancel()
        await asyncio.wait({self.next})
        await cast("AsyncGenerator[TurnEvent]", self._events).aclose()


async def open_events(handle: AsyncTurnHandle, last_seen: int) -> EventReader | None:
    """Begin reading after event `last_seen`. Returns None if that was the final event.

    Raises RequestRejected if the events are gone.
    """
    # Read the last seen event again, because it may be the final one.
    reading = EventReader(handle.events(max(0, last_seen - 1)))
    try:
        await asyncio.wait({reading.next}, timeout=FIRST_EVENT_S)
        event = reading.next.result() if reading.next.done() else None
        is_over = await _is_over(handle) if event is None else event.is_final and event.seq <= last_seen
    except BaseException:
        await reading.close()
        raise
    if is_over:
        await reading.close()
        return None
    reading.skip(last_seen)
    return reading


async def _is_over(handle: AsyncTurnHandle) -> bool:
    """Return whether the final event was published. Raises RequestRejected if the events are gone."""
    try:
        await handle.result(timeout_s=0)
    except ResultTimeout:
        return False
    if await handle.snapshot() is None:
        raise RequestRejected(
            "events-gone", "the turn ended some time ago, and its events are gone; read /result or /transcript"
        )
    return True


@dataclass(frozen=True, slots=True)
class EncodedEvent:
    """An event in the encoding of a wire, which may be empty. `is_last` ends the stream."""

    body: bytes
    is_last: bool


class StreamEncoding:
    """A wire's encoding of a stream. This class is the native encoding: an event's JSON under its number.

    opening   the bytes before the first event
    headers   headers in addition to those of every stream
    """

    opening: bytes = b""
    headers: Mapping[str, str] = {}

    async def write(self, event: TurnEvent) -> EncodedEvent:
        """Encode an event. This is called once for each event, in order."""
        return EncodedEvent(event_frame(event), event.is_final)

    def rest(self) -> bytes:
        """Return the last bytes of a stream whose turn waits for its reader to act, or b"" if the stream continues."""
        return b""

    def farewell(self) -> bytes:
        """Return the last bytes of a stream that is closed before its turn has ended."""
        return RECONNECT_FRAME


class EventStream(Response):
    """A `text/event-stream` response with the events of `reading`. It releases its slot when it ends, for any reason.

    may_still_read   returns whether the caller is still authenticated; called every `heartbeat_s`
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        reading: EventReader,
        slot: StreamSlot,
        heartbeat_s: float,
        may_still_read: Callable[[], Awaitable[bool]],
        encoding: StreamEncoding,
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no", **encoding.headers})
        del self.headers["content-length"]
        self._reading = reading
        self._slot = slot
        self._heartbeat_s = heartbeat_s
        self._may_still_read = may_still_read
        self._encoding = encoding

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(wait_for_disconnect(receive))
        stopping = asyncio.ensure_future(self._slot.stopping.wait())
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await _send_body(send, self._encoding.opening)
            await self._send_all(send, gone, stopping)
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._slot.release()
            gone.cancel()
            stopping.cancel()
            await self._reading.close()

    async def _send_all(self, send: Send, gone: asyncio.Task[None], stopping: asyncio.Task[bool]) -> None:
        clock = asyncio.get_running_loop().time
        checked_at = clock()
        while True:
            if clock() - checked_at >= self._heartbeat_s:
                checked_at = clock()
                if not await self._may_go_on():
                    await _send_body(send, self._encoding.farewell())
                    return
            quiet_s = GATHER_S if self._encoding.rest() else self._heartbeat_s
            has_next = await self._reading.wait(quiet_s, gone, stopping)
            if gone.done():
                return
            if stopping.done():
                await _send_body(send, self._encoding.farewell())
                return
            rest = b"" if has_next else self._encoding.rest()
            written = await self._next_frames() if has_next else EncodedEvent(rest or HEARTBEAT, bool(rest))
            await _send_body(send, written.body)
            if written.is_last:
                return
            if has_next:
                self._reading.advance()

    async def _next_frames(self) -> EncodedEvent:
        try:
            event = self._reading.next.result()
            return EncodedEvent(b"", is_last=True) if event is None else await self._encoding.write(event)
        except BrainqError as failure:
            log.warning("a stream is cut off", failure=failure)
            return EncodedEvent(self._encoding.farewell(), is_last=True)

    async def _may_go_on(self) -> bool:
        try:
            return await self._may_still_read()
        except Exception as failure:  # the stream ends; the client receives the reason when it reconnects
            log.warning("a stream is cut off", failure=failure)
            return False


async def stream_events(
    request: HttpRequest, begin_reading: Callable[[], Awaitable[EventReader | None]], encoding: StreamEncoding
) -> EventStream | None:
    """Stream the events of `begin_reading`, using one of the caller's slots. Returns None if there are no events.

    Raises RequestRejected if no slot is free, and any error of `begin_reading`.
    """
    slot = request.stream_slot()
    try:
        reading = await begin_reading()
        if reading is not None:
            return EventStream(
                reading, slot, request.gateway.settings.http_heartbeat_s, request.is_authenticated, encoding
            )
    except BaseException:
        slot.release()
        raise
    slot.release()
    return None


async def _send_body(send: Send, body: bytes) -> None:
    if not body:
        return
    await send({"type": "http.response.body", "body": body, "more_body": True})


STREAM_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events. Each has an `id`, the event's number, and `data`, a TurnEvent as JSON. "
        "Comments are heartbeats. The stream ends after the event of kind `result`.",
        "content": {
            "text/event-stream": {
                "schema": {
                    "type": "object",
                    "required": ["data"],
                    "properties": {
                        "id": {"type": "string", "pattern": "^[0-9]+$"},
                        "data": {
                            "type": "string",
                            "contentMediaType": "application/json",
                            "contentSchema": {"$ref": "#/components/schemas/TurnEvent"},
                        },
                    },
                }
            }
        },
    },
    204: {"description": "The final event was already sent, so there is no need to reconnect."},
}


@router.get("/v1/turns/{turn_id}/events", response_model=None, responses={**STREAM_RESPONSES, **problem_responses(410)})
async def events(
    handle: TurnDep,
    request: RequestDep,
    after: Annotated[int, Query(ge=0, le=MAX_NUMBER, description="Begin after this event.")] = 0,
    last_event_id: Annotated[int | None, Header(ge=0, le=MAX_NUMBER, description="Overrides `after`.")] = None,
) -> Response:
    """Stream a turn's events from any number up to the final one."""
    behind = after if last_event_id is None else last_event_id
    found = await stream_events(request, lambda: open_events(handle, behind), StreamEncoding())
    return Response(status_code=204) if found is None else found
