"""A turn's events as progress: what a client's user is shown while a tool of a brain runs."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, cast

from brainq.contracts.event import EventKind, TurnEvent

EVERY_S = 0.25
"""Texts come together: a model says more words a second than anybody wants notifications."""

Send = Callable[[float, str], Awaitable[None]]
"""Of a progress that only grows, and what is done now."""


def words_of(event: TurnEvent) -> str:
    """In a few words; "": nothing to tell. Texts are told as they are."""
    data = cast("dict[str, Any]", event.data)
    match event.kind:
        case EventKind.TURN_QUEUED:
            return _wait(data["ahead"], data.get("why", ""))
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


def _wait(ahead: int, why: str) -> str:
    match why:
        case "paused":
            return "waits: its session is paused"
        case "room":
            return f"waits for room; {ahead} turns of its tenant are before it"
        case _:
            return f"waits for {ahead} earlier turns of its session"


class Progress:
    """Tells events, in order; a text at least EVERY_S after the last one, or when something else follows."""

    def __init__(self, send: Send, now: Callable[[], float] = time.monotonic) -> None:
        self._send = send
        self._now = now
        self._text = ""
        self._seq = 0
        self._told_at = -EVERY_S

    async def tell(self, event: TurnEvent) -> None:
        words = words_of(event)
        if event.kind is EventKind.TEXT_DELTA:
            self._text += words
            self._seq = event.seq
            if self._now() - self._told_at >= EVERY_S:
                await self._flush()
        elif words:
            await self._flush()
            await self._send(float(event.seq), words)

    async def _flush(self) -> None:
        if self._text:
            text, self._text = self._text, ""
            self._told_at = self._now()
            await self._send(float(self._seq), text)
