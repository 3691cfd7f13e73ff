"""What a caller is told while Redis or SQL is away: brainq's own error from every verb, and how to ask again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from brainq.adapters.redis.people import MAX_UNREAD
from brainq.client.client import Client
from brainq.client.connection import wiring_of
from brainq.client.handle import TurnHandle
from brainq.contracts.file import File
from brainq.contracts.people import TurnInput
from brainq.engine.models.scripted import calls, says
from brainq.errors import AttachmentNotFound, MailboxFull, Unreachable
from tests.support.people import Pumps, Watched, brain_of, heal_inputs
from tests.support.pump import Pump

HEALED = TurnInput(client_message_id="m3", text="later")

GONE = "redis://127.0.0.1:1/0"  # nobody listens there


VERBS: dict[str, Callable[[Client, TurnHandle], object]] = {
    "submit": lambda client, _: client.submit("s1", "Go."),
    "result": lambda _, handle: handle.result(timeout_s=5),
    "events": lambda _, handle: list(handle.events()),
    "snapshot": lambda _, handle: handle.snapshot(),
    "cancel": lambda _, handle: handle.cancel(),
    "steer": lambda _, handle: handle.steer("more"),
    "hold": lambda _, handle: handle.hold(),
    "holds": lambda _, handle: handle.holds(),
    "release": lambda _, handle: handle.release("hold-1"),
    "live": lambda client, _: client.session("s1").live(),
    "is_paused": lambda client, _: client.session("s1").is_paused(),
    "why_paused": lambda client, _: client.session("s1").why_paused(),
    "readiness": lambda client, _: client.session("s1").readiness(),
    "session.steer": lambda client, _: client.session("s1").steer("more"),
    "interrupt": lambda client, _: client.session("s1").interrupt(),
    "approve": lambda client, handle: client.approve(f"{handle.turn_id}-c1-0"),
    "complete_call": lambda client, handle: client.complete_call(f"{handle.turn_id}.c1-0.x", {}),
}


@pytest.fixture
def away(pumps: Pumps) -> Iterator[tuple[Client, TurnHandle]]:
    """A client whose Redis is away, and a turn that waits for an approval."""
    brain = brain_of(Watched(calls(("write", {"name": "b"})), says("done")), approval=True)
    pump = pumps(brain)
    turn = pump.submit("s1", "Go.")
    pump.drain()
    with Client(pump.settings, brain, redis_url=GONE) as lost:
        yield lost, lost.handle(turn.turn_id)


@pytest.mark.parametrize("verb", VERBS.values(), ids=list(VERBS))
def test_redis_is_away(away: tuple[Client, TurnHandle], verb: Callable[[Client, TurnHandle], object]) -> None:
    with pytest.raises(Unreachable, match="BRAINQ_REDIS_URL"):
        verb(*away)


def test_sql_is_away(pump: Pump, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(*_: object, **__: object) -> Any:
        raise OperationalError("SELECT 1", {}, Exception("database is locked"))

    _ = wiring_of(pump.client).store
    for name in ("write", "first", "all"):
        monkeypatch.setattr(wiring_of(pump.client).store.database, name, locked)
    with pytest.raises(Unreachable, match="BRAINQ_SQL_URL"):
        pump.client.submit("s1", "Go.")
    with pytest.raises(Unreachable, match="BRAINQ_SQL_URL"):
        pump.client.handle("turn-1")


def test_a_submit_whose_answer_was_lost_is_the_same_turn_again(pumps: Pumps, monkeypatch: pytest.MonkeyPatch) -> None:
    pump = pumps(brain_of(Watched(says("done"))))
    queue = wiring_of(pump.client).state.turns.submit

    def answer_lost(*given: Any, **named: Any) -> Any:
        queue(*given, **named)
        raise ConnectionError("reset by peer")

    with monkeypatch.context() as cut:
        cut.setattr(wiring_of(pump.client).state.turns, "submit", answer_lost)
        with pytest.raises(Unreachable) as lost:
            pump.submit("s1", "Go.")
    assert lost.value.request_key in str(lost.value)
    handle = pump.submit("s1", "Go.", request_key=lost.value.request_key)
    assert not handle.created
    assert len(pump.wiring.store.turns.list()) == 1
    assert pump.finish(handle).text == "done"


def test_an_input_whose_answer_was_lost_is_the_same_input_again(pumps: Pumps, monkeypatch: pytest.MonkeyPatch) -> None:
    pump = pumps(brain_of(Watched(says("done"))))
    handle = pump.submit("s1", "Go.")
    put = wiring_of(pump.client).state.sessions.put_input

    def answer_lost(*given: Any, **named: Any) -> Any:
        put(*given, **named)
        raise ConnectionError("reset by peer")

    with monkeypatch.context() as cut:
        cut.setattr(wiring_of(pump.client).state.sessions, "put_input", answer_lost)
        with pytest.raises(Unreachable) as lost:
            handle.steer("more")
    assert handle.steer("more", client_message_id=lost.value.client_message_id).state == "accepted"
    assert len(pump.wiring.store.inputs.of_turn(handle.turn_id)) == 1


def test_a_mailbox_that_is_full_refuses_and_says_what_to_do(pumps: Pumps, monkeypatch: pytest.MonkeyPatch) -> None:
    pump = pumps(brain_of(Watched(calls(("look", {"name": "a"})), says("done"))))
    handle = pump.submit("s1", "Go.")
    for number in range(MAX_UNREAD):
        handle.steer(f"{number}", client_message_id=f"n{number}")
    with pytest.raises(MailboxFull, match=rf"{MAX_UNREAD} inputs .* wait until it has read some") as full:
        handle.steer("too much", client_message_id="m2", attachments=[File(b"refused with it")])
    with pytest.raises(AttachmentNotFound, match="no file"):
        handle.file(File(b"refused with it").attachment.sha256)
    assert full.value.__cause__ is None, "its own cause: who follows causes would not come to an end"
    assert handle.receipt("m2").state == "refused"
    # One whose sender died before it learned that the mailbox was full is put there later.
    pump.wiring.store.inputs.accept("s1", handle.turn_id, HEALED)
    heal_inputs(pump, monkeypatch)
    assert handle.receipt("m3").state == "accepted"
    pump.answer(pump.waiting()[0])
    pump.take()
    heal_inputs(pump, monkeypatch)
    pump.finish(handle)
    assert handle.receipt("m3").state == "consumed"
