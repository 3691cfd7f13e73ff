"""What is looked up beside a turn's events: no call twice, and none that an event does not name."""

from __future__ import annotations

import asyncio
from typing import Any

from brainq.contracts.event import EventKind, TurnEvent
from brainq.contracts.history import TurnCall
from brainq.contracts.ids import parse_call_id, split_call_id
from brainq.contracts.status import Effect, TraceStatus
from brainq.gateway.wires.chat.fold import EventDetails
from brainq.gateway.wires.chat.stream import DetailsLookup

TURN = "t01"


class FakeHandle:
    """A turn with 100 calls in its first step and one in the second, which counts what is read of them."""

    turn_id = TURN

    def __init__(self) -> None:
        self.ended: set[str] = set()
        self.read: list[str] = []
        self.calls_there = [*(f"c1-{at}" for at in range(100)), "c2-0"]

    async def calls(self, limit: int = 10_000, after: str | None = None) -> tuple[TurnCall, ...]:
        behind = (-1, -1) if after is None else parse_call_id(split_call_id(after)[1])
        page = [call for call in self.calls_there if parse_call_id(call) > behind][:limit]
        self.read += page
        return tuple(self._call(call) for call in page)

    def _call(self, call: str) -> TurnCall:
        return TurnCall(
            id=f"{TURN}-{call}",
            call_id=call,
            session_id="s1",
            turn_id=TURN,
            tool="look",
            effect=Effect.READ_ONLY,
            status=TraceStatus.COMPLETED if call in self.ended else TraceStatus.RUNNING,
            step=parse_call_id(call)[0],
            wave=1,
            attempt=1,
        )


def event(kind: EventKind, **data: Any) -> TurnEvent:
    return TurnEvent(seq=1, kind=kind, at_ms=1, data=data)


def asked(*calls: str) -> TurnEvent:
    return event(EventKind.STEP_ENDED, step=1, calls=len(calls), plan=[{"call": call} for call in calls])


def shown(more: EventDetails) -> list[str]:
    return [call.id.removeprefix(f"{TURN}-") for call in more.calls]


def test_of_each_call_that_ends_that_one_is_read() -> None:
    handle = FakeHandle()
    first = handle.calls_there[:100]

    async def live() -> None:
        details = DetailsLookup(handle)  # pyright: ignore[reportArgumentType]
        assert shown(await details.look_up(asked(*reversed(first)))) == list(reversed(first)), "as the plan has them"
        for call in [*first, "c2-0"]:
            handle.ended.add(call)
            (found,) = (await details.look_up(event(EventKind.CALL_ENDED, call=call))).calls
            assert (found.id, found.status) == (f"{TURN}-{call}", TraceStatus.COMPLETED)

    asyncio.run(live())
    assert len(handle.read) == 100 + 100 + 1


def test_what_had_ended_before_is_read_once() -> None:
    handle = FakeHandle()
    handle.ended |= set(handle.calls_there)

    async def later() -> None:
        details = DetailsLookup(handle)  # pyright: ignore[reportArgumentType]
        await details.look_up(asked("c1-3", "c1-7"))
        for call in ("c1-3", "c1-5", "c1-7"):
            assert shown(await details.look_up(event(EventKind.CALL_ENDED, call=call))) == [call]

    asyncio.run(later())
    assert handle.read == ["c1-3", "c1-4", "c1-5", "c1-6", "c1-7"]
