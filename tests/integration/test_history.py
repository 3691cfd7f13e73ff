"""What a chat page reads: a session's turns, and what each did, live and afterwards."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest

from brainq import AsyncClient, Brain, ContentNotKept, Effect, InvalidInput, StopReason, TurnNotFound
from brainq.testing import ScriptedProvider, calls, says
from tests.support.pump import Pump


def shop(*, redact_logs: bool = False) -> Brain:
    model = ScriptedProvider([calls(("count", {"item": "apples"}), text="Let me look."), says("Three.")])
    brain = Brain("shop", model, redact_logs=redact_logs)

    @brain.tool(effect=Effect.READ_ONLY)
    def count(item: str) -> dict[str, int]:
        """How many."""
        return {item: 3}

    return brain


def test_a_session_is_read_turn_by_turn(pumps: Callable[..., Pump]) -> None:
    pump = pumps(shop())
    first = pump.submit("s1", "How many apples?")
    pump.finish(first)
    second, third = pump.submit("s1", "And now?"), pump.submit("s1", "And then?")
    pump.submit("s2", "Somebody else's")
    session = pump.client.session("s1")

    told = [(turn.turn_id, turn.state, turn.user_message, turn.text) for turn in session.history()]
    assert told == [
        (first.turn_id, "completed", "How many apples?", "Three."),
        (second.turn_id, "active", "And now?", ""),
        (third.turn_id, "queued", "And then?", ""),
    ]
    ended, *_ = session.history()
    assert ended.stop_reason is StopReason.ANSWERED
    assert ended.ended_at is not None
    assert ended.ended_at >= ended.accepted_at


def test_pages_follow_each_other_without_a_gap(pumps: Callable[..., Pump]) -> None:
    pump = pumps(shop())
    for number in range(5):
        pump.finish(pump.submit("s1", f"Question {number}"))
    session = pump.client.session("s1")
    newest = session.history(limit=2)
    middle = session.history(limit=2, before=newest[0].turn_id)
    oldest = session.history(limit=2, before=middle[0].turn_id)
    pages = [[turn.user_message for turn in page] for page in (oldest, middle, newest)]
    assert pages == [["Question 0"], ["Question 1", "Question 2"], ["Question 3", "Question 4"]]
    assert session.history(before=oldest[0].turn_id) == ()


@pytest.mark.parametrize("given", [{"limit": 0}, {"before": "no id"}])
def test_a_page_that_cannot_be_is_refused(pumps: Callable[..., Pump], given: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(given))):
        pumps(shop()).client.session("s1").history(**given)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_a_transcript_has_arguments_and_results_live_and_afterwards(pumps: Callable[..., Pump]) -> None:
    pump = pumps(shop())
    handle = pump.submit("s1", "How many apples?")
    assert handle.transcript() == ()
    pump.drain("brainq.turns")  # the first step has asked for the call
    pump.drain("brainq.tools.read_only")
    live = handle.transcript()
    assert [message.role for message in live] == ["user", "assistant", "tool"]
    (asked,) = live[1].calls
    assert (asked.name, asked.arguments, live[1].content) == ("count", {"item": "apples"}, "Let me look.")
    assert (live[2].call_id, json.loads(live[2].content)) == (asked.id, {"apples": 3})

    pump.finish(handle)
    ended = handle.transcript()
    assert ended[:3] == live
    assert (ended[3].role, ended[3].content) == ("assistant", "Three.")
    pump.wiring.state.redis.flushall()
    assert pump.client.handle(handle.turn_id).transcript() == ended


def test_a_redacted_brain_shows_a_live_turn_and_refuses_an_ended_one(pumps: Callable[..., Pump]) -> None:
    pump = pumps(shop(redact_logs=True))
    handle = pump.submit("s1", "How many apples?")
    pump.drain("brainq.turns")
    assert handle.transcript()[0].content == "How many apples?"
    pump.finish(handle)
    with pytest.raises(ContentNotKept, match="redact_logs"):
        handle.transcript()
    (turn,) = pump.client.session("s1").history()
    assert (turn.user_message, turn.text, turn.is_kept, turn.state) == ("", "", False, "completed")


def test_a_transcript_of_nobodys_turn(pump: Pump) -> None:
    handle = pump.submit("s1", "Hello")
    handle.turn_id = "t-unknown"
    with pytest.raises(TurnNotFound, match="t-unknown"):
        handle.transcript()


def test_an_event_loop_reads_the_same(pumps: Callable[..., Pump]) -> None:
    pump = pumps(shop())
    handle = pump.submit("s1", "How many apples?")
    pump.finish(handle)

    async def read() -> None:
        async with AsyncClient(pump.settings, shop()) as client:
            (turn,) = await client.session("s1").history()
            assert turn.text == "Three."
            there = await client.handle(turn.turn_id)
            assert await there.transcript() == handle.transcript()

    asyncio.run(read())
