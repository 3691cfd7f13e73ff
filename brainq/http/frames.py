"""From events of a turn to frames of a stream of server-sent events: pure, so that any gateway continues any stream."""

from __future__ import annotations

from fastapi.sse import format_sse_event

from brainq.contracts.event import TurnEvent

HEARTBEAT = b": alive\n\n"
"""A comment, which readers ignore: it keeps proxies from taking a quiet stream for a dead one."""

COME_AGAIN_MS = 1_000
FAREWELL = format_sse_event(comment="come again with Last-Event-ID", retry=COME_AGAIN_MS)
"""Before a stream is closed that is not over. An EventSource comes again by itself, with what it saw last."""


def frame(event: TurnEvent) -> bytes:
    """The frame of an event: its number is the frame's id, its JSON the data. All are of the type `message`."""
    return format_sse_event(data_str=event.model_dump_json(), id=str(event.seq))
