"""Calls in flight and progress of the MCP server, without a client."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from brainq.app.access import Caller, Verb
from brainq.contracts.event import EventKind, TurnEvent
from brainq.contracts.typed_events import FIELDS
from brainq.contrib.mcp_server.following import EVERY_S, ProgressReporter, progress_text, read_round
from brainq.contrib.mcp_server.requests import CallsInFlight
from brainq.contrib.mcp_server.turn_report import report_schema
from brainq.engine.tools.mcp.calls import IDEMPOTENCY_KEY
from brainq.errors import InvalidInput


def asked(name: str, sessions: str, *verbs: Verb, scope: str = "", **meta: str) -> Any:
    caller = Caller(name, (sessions,), frozenset(verbs) or frozenset(Verb))
    return SimpleNamespace(
        caller=caller, scope=scope, meta=meta, context=SimpleNamespace(request_id=1), is_over_http=True
    )


class FakeClient:
    """Has one turn, whatever it is asked for."""

    def __init__(self) -> None:
        self.sought: list[str] = []
        self.cancelled: list[str] = []
        self.session_id = "acme:1"

    async def find(self, key: str) -> FakeClient:
        self.sought.append(key)
        return self

    async def cancel(self, reason: str) -> None:
        self.cancelled.append(reason)


def test_the_keys_of_two_callers_never_meet() -> None:
    calls = CallsInFlight(FakeClient())  # pyright: ignore[reportArgumentType]
    for more in ({IDEMPOTENCY_KEY: "order 17"}, {"scope": "the same"}):
        keys = {
            calls.request_key(asked(name, sessions, **more))
            for name in ("web", "app")
            for sessions in ("acme:", "evil:")
        }
        assert len(keys) == 4, more
        assert calls.request_key(asked("web", "acme:", **more)) in keys, "and it is the same when it is sent again"


@pytest.mark.parametrize(
    ("caller", "cancels"),
    [
        (asked("web", "acme:", Verb.READ, Verb.SUBMIT, Verb.DECIDE, scope="s"), False),
        (asked("web", "evil:", scope="s"), False),
        (asked("web", "acme:", Verb.STEER, scope="s"), True),
    ],
)
def test_a_call_is_cancelled_by_who_may(caller: Any, cancels: bool) -> None:
    client = FakeClient()

    async def cancel() -> None:
        calls = CallsInFlight(client)  # pyright: ignore[reportArgumentType]
        calls.cancelled(caller, 1)
        await calls.close()

    asyncio.run(cancel())
    assert (len(client.sought), bool(client.cancelled)) == (1, cancels)


def test_what_is_brought_back_is_about_one_turn() -> None:
    def state(turn_id: str) -> str:
        return f'{{"turn_id": "{turn_id}", "seq": 0, "asks": {{"{"a" * 26}-c1-0": "x"}}}}'

    assert read_round(state("a" * 26)).turn_id == "a" * 26
    with pytest.raises(InvalidInput, match="another turn"):
        read_round(state("b" * 26))


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
