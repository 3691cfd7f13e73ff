"""What a chat page reads: a session's turns, and what each did, live and afterwards."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from brainq import AsyncClient, Brain, ContentNotKept, Effect, InvalidInput, Limits, StopReason, TurnCall, TurnNotFound
from brainq.client.connection import wiring_of
from brainq.testing import ScriptedProvider, calls, says
from tests.support.pump import Pump


def shop(*, redact_logs: bool = False, model: ScriptedProvider | None = None, limits: Limits | None = None) -> Brain:
    counts = ScriptedProvider([calls(("count", {"item": "apples"}), text="Let me look."), says("Three.")])
    brain = Brain("shop", model or counts, redact_logs=redact_logs, limits=limits or Limits())

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
    middle = session.history(limit=2, after=newest[0].turn_id)
    oldest = session.history(limit=2, after=middle[0].turn_id)
    pages = [[turn.user_message for turn in page] for page in (oldest, middle, newest)]
    assert pages == [["Question 0"], ["Question 1", "Question 2"], ["Question 3", "Question 4"]]
    assert session.history(after=oldest[0].turn_id) == ()


@pytest.mark.parametrize("given", [{"limit": 0}, {"limit": 10_001}, {"after": "no id"}])
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
    (call,) = handle.calls()
    assert (call.arguments, call.is_kept) == ({"item": "apples"}, True)
    pump.finish(handle)
    for after in (0, 2, 100):
        with pytest.raises(ContentNotKept, match="redact_logs"):
            handle.transcript(after=after)
    (turn,) = pump.client.session("s1").history()
    assert (turn.user_message, turn.text, turn.is_kept, turn.state) == ("", "", False, "completed")
    (call,) = handle.calls()
    assert (call.arguments, call.result, call.is_kept, call.detail) == (None, None, False, "")
    assert (call.tool, call.status, call.step) == ("count", "completed", 1)
    assert call.ended_at_ms >= call.started_at_ms > 0


def test_a_transcript_of_nobodys_turn(pump: Pump) -> None:
    handle = pump.submit("s1", "Hello")
    handle.turn_id = "t-unknown"
    for read in (handle.transcript, handle.calls):
        with pytest.raises(TurnNotFound, match="t-unknown"):
            read()


def test_a_call_is_known_by_one_id_on_every_page(pumps: Callable[..., Pump]) -> None:
    pump = pumps(shop())
    handles = [pump.submit("s1", "How many apples?") for _ in range(2)]
    for handle in handles:
        pump.finish(handle)
    rows = [row for handle in handles for row in handle.calls()]
    assert [row.call_id for row in rows] == ["c1-0", "c1-0"]
    assert [row.id for row in rows] == [f"{handle.turn_id}-c1-0" for handle in handles]
    assert TurnCall.model_validate_json(rows[0].model_dump_json()) == rows[0]
    with pytest.raises(InvalidInput, match="is not a call of turn"):
        handles[0].calls(after=rows[1].id)


def test_calls_that_are_read_alone_are_as_they_stand_among_all(pumps: Callable[..., Pump]) -> None:
    """At each doorbell of a turn of several steps, whose results are in three places by then."""
    asked = [("count", {"item": item}) for item in "abc"]
    model = ScriptedProvider([calls(*asked), calls(*asked[:2]), calls(asked[2]), says("So many.")])
    pump = pumps(shop(model=model))
    handle = pump.submit("s1", "Count")
    met = 0
    while True:
        whole = handle.calls()
        alone = [handle.calls(1, None if not at else whole[at - 1].id) for at in range(len(whole))]
        assert [call for page in alone for call in page] == list(whole)
        assert handle.calls(2) == whole[:2]
        if whole:
            step = whole[-1].step
            before = f"{handle.turn_id}-c{step - 1}-999999999"
            assert handle.calls(32, before) == tuple(call for call in whole if call.step == step)
            assert handle.calls(1, whole[-1].id) == ()
        met += len(whole) > 1
        bell = pump.take()
        if bell is None:
            break
        pump.answer(bell)
    assert met > 2


def test_a_call_shows_its_result_while_others_of_its_step_run(pumps: Callable[..., Pump]) -> None:
    model = ScriptedProvider([calls(("count", {"item": "a"}), ("count", {"item": "b"})), says("Two.")])
    brain = shop(model=model)
    pump = pumps(brain)
    handle = pump.submit("s1", "Count")
    pump.drain("brainq.turns")
    bell = pump.take("brainq.tools.read_only")
    assert bell is not None
    pump.answer(bell)
    first, second = handle.calls()
    assert (first.status, first.result) == ("completed", '{"a":3}')
    assert (second.status, second.result, second.arguments) == ("dispatched", None, {"item": "b"})
    assert second.is_kept
    assert [message.role for message in handle.transcript()] == ["user", "assistant"]
    assert pump.client.state("s1", handle.turn_id).tool_results == {"c1-0": '{"a":3}'}


def test_a_turn_cancelled_before_it_began_has_a_line_and_no_messages(pumps: Callable[..., Pump]) -> None:
    pump = pumps(shop())
    pump.submit("s1", "First")
    second = pump.submit("s1", "Second")
    assert (second.transcript(), second.calls()) == ((), ())
    assert second.cancel() == "cancelled"
    pump.settle(second)
    assert (second.transcript(), second.calls()) == ((), ())
    turn = pump.client.session("s1").history()[-1]
    assert (turn.user_message, turn.state) == ("Second", "cancelled")


def test_what_the_runtime_asked_for_is_a_call_without_content(pumps: Callable[..., Pump]) -> None:
    brain = shop()

    @brain.tool(effect=Effect.READ_ONLY)
    def get_context_pack(topic: str) -> dict[str, str]:
        """What is known."""
        return {"topic": topic}

    pump = pumps(brain)
    handle = pump.submit("s1", "How many apples?")
    pump.drain("brainq.turns")
    pump.drain("brainq.tools.read_only")
    live = handle.calls()
    pump.finish(handle)
    for opening in (live[0], handle.calls()[0]):
        assert (opening.tool, opening.step, opening.is_kept) == ("get_context_pack", 0, False)
        assert (opening.status, opening.result) == ("completed", None)


def test_a_page_of_a_compacted_brain_that_keeps_nothing_is_refused_while_the_turn_lives(
    pumps: Callable[..., Pump],
) -> None:
    model = ScriptedProvider(
        rules=lambda request: calls(("count", {"item": f"{request.step} " + "x" * 900})),
        auxiliary=lambda _: says("so far"),
    )
    limits = Limits(max_steps=30, max_tool_calls=30, max_context_tokens=2_000)
    pump = pumps(shop(redact_logs=True, model=model, limits=limits))
    handle = pump.submit("s1", "How many?")
    state = pump.client.state("s1", handle.turn_id)
    while not state.context_was_compacted:
        bell = pump.take()
        assert bell is not None
        pump.answer(bell)
    for after in (0, 2, 100):
        with pytest.raises(ContentNotKept, match="a compaction removed messages from Redis"):
            handle.transcript(after=after)
    kept = [call.is_kept for call in handle.calls()]
    assert kept == sorted(kept)  # the older ones are gone
    assert {True, False} == set(kept)


def test_a_greeting_stands_with_a_sessions_first_turn_alone(pumps: Callable[..., Pump]) -> None:
    pump = pumps(shop())
    for _ in range(3):
        pump.finish(pump.submit("s1", "Hello", greeting="Welcome!"))
    session = pump.client.session("s1")
    whole = session.history()
    assert [turn.greeting for turn in whole] == ["Welcome!", "", ""]
    assert [turn.greeting for turn in session.history(limit=2)] == ["", ""]


def test_a_page_before_a_turn_of_another_session_tells_nothing(pumps: Callable[..., Pump]) -> None:
    pump = pumps(shop())
    pump.submit("s1", "Mine")
    theirs = pump.submit("s2", "Theirs")
    assert pump.client.session("s1").history(after=theirs.turn_id) == ()


def test_pages_stand_while_turns_are_added(pumps: Callable[..., Pump]) -> None:
    pump = pumps(shop())
    ids = [pump.submit("s1", f"Question {number}").turn_id for number in range(4)]
    session = pump.client.session("s1")
    newest = session.history(limit=2)
    pump.submit("s1", "One more")
    older = session.history(limit=2, after=newest[0].turn_id)
    assert [turn.turn_id for turn in (*older, *newest)] == ids


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
            assert await there.calls(limit=1) == handle.calls()

    asyncio.run(read())


def test_a_page_of_turns_that_go_on_is_read_at_once(
    pumps: Callable[..., Pump], monkeypatch: pytest.MonkeyPatch
) -> None:
    pump = pumps(shop())
    session, asked = pump.client.session("s1"), Counter[str]()
    pool: Any = wiring_of(pump.client).state.redis.connection_pool
    get = pool.get_connection

    def counted(*args: Any, **named: Any) -> Any:
        asked["all"] += 1
        return get(*args, **named)

    monkeypatch.setattr(pool, "get_connection", counted)
    counts: list[int] = []
    for number in range(6):
        pump.submit("s1", f"message {number}")
        before = asked["all"]
        states = [turn.state for turn in session.history()]
        counts.append(asked["all"] - before)
        assert states == ["active"] + ["queued"] * number
    assert counts == [1] * 6
