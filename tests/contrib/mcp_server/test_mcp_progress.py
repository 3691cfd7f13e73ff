"""Progress of a turn: in order, further each time, and not a notification for each word."""

from __future__ import annotations

import asyncio
from typing import Any

from brainq.contracts.event import FIELDS, EventKind, TurnEvent
from brainq.contrib.mcp_server.following import EVERY_S, ProgressReporter, progress_text
from brainq.contrib.mcp_server.turn_report import report_schema


def event(seq: int, kind: EventKind, **data: Any) -> TurnEvent:
    return TurnEvent(seq=seq, kind=kind, at_ms=0, data=data)


def text(seq: int, said: str) -> TurnEvent:
    return event(seq, EventKind.TEXT_DELTA, step=1, attempt=1, text=said)


def test_texts_come_together_and_nothing_is_lost_or_overtaken() -> None:
    heard: list[tuple[float, str]] = []
    clock = [0.0]

    async def send(done: float, words: str) -> None:
        heard.append((done, words))

    async def tell() -> None:
        progress = ProgressReporter(send, lambda: clock[0])
        for number, said in enumerate("abcdefgh", 1):
            await progress.report(text(number, said))
            clock[0] += EVERY_S / 4
        await progress.report(event(9, EventKind.BUDGET, spent="time"))
        await progress.report(event(10, EventKind.CALL_RUNNING, call="c1-0", tool="look", attempt=1))

    asyncio.run(tell())
    assert heard == [(1.0, "a"), (5.0, "bcde"), (8.0, "fgh"), (10.0, "look runs")]


def test_every_kind_is_told_or_left_out() -> None:
    for kind, fields in FIELDS.items():
        data: dict[str, Any] = {**dict.fromkeys(fields, 1), "text": "t"}
        assert isinstance(progress_text(TurnEvent(seq=1, kind=kind, at_ms=0, data=data)), str)
    assert progress_text(event(1, EventKind.CALL_PROGRESS, call="c1-0", done=3)) == ""
    assert progress_text(event(1, EventKind.TURN_QUEUED, ahead=0, why="paused")) == "waits: its session is paused"
    assert "3 turns of its tenant" in progress_text(event(1, EventKind.TURN_QUEUED, ahead=3, why="room"))
    assert "3 earlier turns of its session" in progress_text(event(1, EventKind.TURN_QUEUED, ahead=3, why="session"))
    assert progress_text(event(1, EventKind.CALL_PROGRESS, call="c1-0", done=3, message="half")) == "half"


def test_a_schema_with_references_of_its_own_keeps_them() -> None:
    tree = {"type": "object", "properties": {"left": {"$ref": "#"}, "name": {"$ref": "#/$defs/Name"}}}
    moved = report_schema({**tree, "$defs": {"Name": {"type": "string"}}})["$defs"]["answer"]
    assert moved["properties"] == {"left": {"$ref": "#/$defs/answer"}, "name": {"$ref": "#/$defs/answer/$defs/Name"}}
