"""Following a turn's events over HTTP. A stream that breaks is opened again after the last event that arrived."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from math import isinf
from time import monotonic
from typing import TYPE_CHECKING

import httpx

from brainq.client.http.refusals import GatewayRefused
from brainq.client.http.sending import FIRST_PAUSE_S, MAX_PAUSE_S, Api, Call
from brainq.client.waiting import WaitLimits
from brainq.contracts.typed_events import make_event

if TYPE_CHECKING:
    from brainq import Event

FIRST_LOOK_S = 0.25  # the least time for what is there already
STALL_S = 60.0
"""How long a stream may be silent. A gateway sends a comment every 15 s by default."""


async def follow(api: Api, call: Call, after: int, limits: WaitLimits) -> AsyncGenerator[Event]:
    """Iterate over the events above `after`, each once and in order, up to the final one or until they have expired.

    Raises ResultTimeout, and Unreachable if no gateway answers for as long as the client repeats requests.
    """
    pause_s = FIRST_PAUSE_S
    while True:
        read_s = min(STALL_S, max(FIRST_LOOK_S, limits.remaining_s(monotonic())))
        begun = replace(call, headers={"Last-Event-ID": str(after)}, read_s=read_s, within_s=_finite(limits))
        try:
            async with api.stream(begun) as chunks:
                if chunks is None:
                    return
                async for event in read_frames(chunks):
                    if event is not None and event.seq > after:
                        after, pause_s = event.seq, FIRST_PAUSE_S
                        limits.event_arrived(monotonic())
                        yield event
                        if event.is_final:
                            return
                    limits.check(monotonic())
                    if limits.remaining_s(monotonic()) < read_s:
                        break  # it is opened again with a shorter limit for silence
        except GatewayRefused as refused:
            if refused.word != "events-gone":
                raise
            return
        except httpx.TransportError:
            pass  # it is opened again
        limits.check(monotonic())
        await api.sleep(min(pause_s, limits.remaining_s(monotonic())))
        pause_s = min(MAX_PAUSE_S, 2 * pause_s)


def _finite(limits: WaitLimits) -> float | None:
    remaining_s = limits.remaining_s(monotonic())
    return None if isinf(remaining_s) else remaining_s


async def read_frames(chunks: AsyncIterator[bytes]) -> AsyncIterator[Event | None]:
    """Iterate over the events of a stream, and a None for each comment. A frame that is cut off is left out.

    Lines end with a line feed alone, because text may hold other characters that Python takes for line ends.
    """
    rest, data = b"", list[bytes]()
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            line = line.removesuffix(b"\r")
            if line.startswith(b":"):
                yield None
            elif line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif not line and data:
                fields = json.loads(b"\n".join(data))
                data.clear()
                yield make_event(fields["seq"], fields["kind"], fields["at_ms"], fields["data"])
