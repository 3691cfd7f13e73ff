"""Follows a turn for a client that waits, and reports its events as progress."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast

import anyio

from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.event import EventKind, TurnEvent
from brainq.contracts.people import Approval
from brainq.contracts.status import Awaits
from brainq.gateway.edge.limits import StreamSlot
from brainq.gateway.rest.event_stream import EventReader
from brainq.gateway.wires.mcp.requests import McpRequest

EVERY_S = 0.25
"""Deltas of text are gathered, for a model sends too many for a notification each."""
SendProgress = Callable[[float, str], Awaitable[None]]
"""Sends a progress value, which only grows, and a message."""


def progress_text(event: TurnEvent) -> str:
    """A short message; "" for events that are not reported. Text is passed through."""
    data = cast("dict[str, Any]", event.data)
    match event.kind:
        case EventKind.TURN_QUEUED:
            return _queue_text(data["ahead"], data.get("why", ""))
        case EventKind.TURN_ACTIVE:
            return "begins"
        case EventKind.STEP_STARTED:
            again = f", attempt {data['attempt']}" if data["attempt"] > 1 else ""
            return f"step {data['step']}{again}: the model is asked"
        case EventKind.STEP_RETRIED:
            return f"step {data['step']}: the model failed, and is asked again"
        case EventKind.TEXT_DELTA:
            return data["text"]
        case EventKind.CALL_RUNNING:
            return f"{data['tool']} runs"
        case EventKind.CALL_PROGRESS:
            return str(data.get("message") or "")
        case EventKind.CALL_ENDED:
            return f"{data['tool']}: {data['status']}"
        case EventKind.APPROVAL_REQUESTED:
            return f"{data['tool']} needs an approval"
        case EventKind.APPROVAL_DECIDED:
            return f"an approval is decided: {data['decision']}"
        case EventKind.TURN_PARKED:
            return f"waits for: {data['awaits']}"
        case EventKind.TURN_RESUMED:
            return "goes on"
        case EventKind.INPUT_CONSUMED:
            return "has read your input"
        case EventKind.TURN_CANCELLING:
            return "is cancelled"
        case EventKind.TURN_CLOSING:
            return f"ends: {data['ending']}"
        case _:
            return ""


def _queue_text(ahead: int, why: str) -> str:
    match why:
        case "paused":
            return "waits: its session is paused"
        case "room":
            return f"waits for capacity; {ahead} turns of its tenant are before it"
        case _:
            return f"waits for {ahead} earlier turns of its session"


class ProgressReporter:
    """Reports events in order; text at least EVERY_S seconds after the last one, or when another event follows."""

    def __init__(self, send: SendProgress, now: Callable[[], float] = time.monotonic) -> None:
        self._send = send
        self._now = now
        self._text = ""
        self._seq = 0
        self._sent_at = -EVERY_S

    async def report(self, event: TurnEvent) -> None:
        words = progress_text(event)
        if event.kind is EventKind.TEXT_DELTA:
            self._text += words
            self._seq = event.seq
            if self._now() - self._sent_at >= EVERY_S:
                await self._flush()
        elif words:
            await self._flush()
            await self._send(float(event.seq), words)

    async def _flush(self) -> None:
        if self._text:
            text, self._text = self._text, ""
            self._sent_at = self._now()
            await self._send(float(self._seq), text)


@dataclass(frozen=True, slots=True)
class FollowOutcome:
    """The last event that was read; and the approvals that the turn waits for, where that stopped it."""

    last_event: int
    approvals: tuple[Approval, ...] = ()


async def follow_turn(
    request: McpRequest,
    handle: AsyncTurnHandle,
    slot: StreamSlot,
    after: int,
    wait_s: float,
    progress: ProgressReporter,
) -> FollowOutcome:
    """Report the events after `after` as progress, until the turn ends or waits for people, or `wait_s` have passed.

    Raises RequestRejected once the caller's token is no longer valid.
    """
    clock = asyncio.get_running_loop().time
    until, checked_at, seq = clock() + wait_s, clock(), after
    heartbeat_s = request.gateway.settings.http_heartbeat_s
    reading = EventReader(handle.events(after))
    stopping = asyncio.ensure_future(slot.stopping.wait())
    try:
        while (remaining_s := until - clock()) > 0 and not stopping.done():
            if clock() - checked_at >= heartbeat_s:
                checked_at = clock()
                await request.require_valid_token()
            await asyncio.wait(
                {reading.next, stopping}, timeout=min(remaining_s, heartbeat_s), return_when=asyncio.FIRST_COMPLETED
            )
            if not reading.next.done():
                continue
            event = reading.next.result()
            if event is None:
                break
            seq = event.seq
            await progress.report(event)
            if event.is_final:
                break
            if _waits_for_people(event) and (pending := await pending_approvals(handle)):
                return FollowOutcome(seq, pending)
            reading.advance()
    finally:
        stopping.cancel()
        with anyio.CancelScope(shield=True):  # the SDK cancels a handler again at each of its waits
            await reading.close()
    return FollowOutcome(seq)


def _waits_for_people(event: TurnEvent) -> bool:
    return event.kind is EventKind.TURN_PARKED and event.data["awaits"] == Awaits.PEOPLE


async def pending_approvals(handle: AsyncTurnHandle) -> tuple[Approval, ...]:
    """The approvals that the turn waits for now."""
    return tuple(found for found in await handle.approvals() if found.state == "pending")
