"""The client's verbs for sessions, input, holds, approvals and results from outside; and their asynchronous twins."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from brainq import (
    ApprovalDecided,
    Approvals,
    AsyncClient,
    AsyncFlag,
    AsyncHold,
    AsyncSession,
    AsyncTurnHandle,
    Brain,
    Client,
    Effect,
    Flag,
    Hold,
    InputNotFound,
    InvalidInput,
    Pending,
    RunContext,
    ScriptedProvider,
    Session,
    StaleTurn,
    SubmitConflict,
    TokenRefused,
    TurnHandle,
)
from brainq.adapters.redis.people import MAX_FLAGS
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.contracts.people import HoldSpec
from brainq.engine.models.scripted import calls, says
from tests.support.pump import Pump


def obey(request: ModelRequest) -> ModelReply:
    said = request.messages[-1].content
    if request.step == 1 and said in ("save", "order"):
        return calls((said, {}))
    return says(f"Read: {said}")


def make_brain(*, redact_logs: bool = False) -> Brain:
    brain = Brain(
        "verbs",
        ScriptedProvider(rules=obey),
        approvals=Approvals(effects=(Effect.LOCAL_WRITE,)),
        redact_logs=redact_logs,
    )

    @brain.tool(effect=Effect.LOCAL_WRITE)
    def save(name: str = "a") -> str:  # pyright: ignore[reportUnusedFunction]
        "Save."
        return f"saved {name}"

    @brain.tool(effect=Effect.NETWORK)
    def order(context: RunContext) -> Pending:  # pyright: ignore[reportUnusedFunction]
        "Order."
        return Pending(f"job of {context.session_id}", timeout_s=60)

    return brain


@pytest.fixture
def pump(pumps: Callable[..., Pump]) -> Pump:
    return pumps(make_brain())


@pytest.fixture
def client(pump: Pump) -> Client:
    return pump.client


def parked(pump: Pump, message: str = "save") -> TurnHandle:
    handle = pump.submit("s1", message)
    pump.drain()
    snapshot = handle.snapshot()
    assert snapshot is not None
    assert snapshot.state == "parked"
    return handle


def test_waiting_turns_are_listed_in_their_places_and_dropped(pump: Pump, client: Client) -> None:
    session = client.session("s1")
    assert (session.live(), session.waiting()) == (None, ())
    live, second, third = (pump.submit("s1", text) for text in ("one", "two", "three"))
    assert session.live() == live.turn_id
    assert [(turn.turn_id, turn.place) for turn in session.waiting()] == [(second.turn_id, 1), (third.turn_id, 2)]
    assert session.drop(second.turn_id) is True
    assert session.drop(live.turn_id) is False
    assert session.drop("nobody") is False
    assert client.session("s2").drop(third.turn_id) is False
    assert [turn.turn_id for turn in session.waiting()] == [third.turn_id]
    assert pump.finish(second).ending == "cancelled"
    assert session.drop(second.turn_id) is False


def test_a_turn_that_redis_does_not_know_yet_is_dropped_and_held_too(pump: Pump, client: Client) -> None:
    live = pump.submit("s1", "one")
    unknown = pump.submit("s1", "two", turn_id="known-to-sql")
    pump.wiring.state.redis.delete(*pump.wiring.state.redis.keys("bq:{s1}:t:known-to-sql*"))
    pump.wiring.state.redis.delete("bq:{s1}:waiting")
    assert [hold.id for hold in unknown.holds()] == []
    placed = unknown.hold("wait")
    assert [hold.id for hold in unknown.holds()] == [placed.id]
    assert client.session("s1").drop("known-to-sql") is True
    assert pump.finish(live).text == "Read: one"


def test_a_paused_session_begins_no_turn(pump: Pump, client: Client) -> None:
    session = client.session("s1")
    assert session.why_paused() is None
    assert (session.pause("Mia looks"), session.pause("no"), session.is_paused()) == (True, False, True)
    assert session.why_paused() == "Mia looks"
    turn = pump.submit("s1", "hello")
    assert pump.drain() == 0
    assert session.resume() == turn.turn_id
    assert (session.resume(), session.is_paused()) == (None, False)
    assert pump.finish(turn).text == "Read: hello"


def test_the_live_turn_is_interrupted(pump: Pump, client: Client) -> None:
    session = client.session("s1")
    assert session.interrupt() is None
    live, after = pump.submit("s1", "one"), pump.submit("s1", "two")
    assert session.interrupt("never mind") == live.turn_id
    assert pump.finish(live).ending == "cancelled"
    assert pump.finish(after).text == "Read: two"


def test_input_for_a_session_goes_into_whatever_is_live(pump: Pump, client: Client) -> None:
    session, live = client.session("s1"), pump.submit("s1", "hello")
    receipt = session.steer("and this", client_message_id="m1", expected_turn_id=live.turn_id)
    assert (receipt.state, receipt.turn_id) == ("accepted", live.turn_id)
    assert "and this" in pump.finish(live).text
    assert live.receipt("m1").state == "consumed"
    assert session.steer("and this", client_message_id="m1").state == "consumed"
    with pytest.raises(SubmitConflict):
        session.steer("something else", client_message_id="m1")
    with pytest.raises(StaleTurn) as stale:
        session.steer("more", expected_turn_id=live.turn_id)
    assert stale.value.live_turn_id == ""


def test_input_for_an_idle_session_is_a_turn_with_the_settings_of_the_last(pump: Pump, client: Client) -> None:
    session = client.session("s1")
    pump.finish(pump.submit("s1", "hello", limits={"max_steps": 2}))
    receipt = session.steer("go on", client_message_id="m1")
    assert receipt.state == "bounced"
    handle = client.handle(str(receipt.bounced_turn_id))
    assert session.steer("go on", client_message_id="m1") == receipt
    snapshot = handle.snapshot()
    assert snapshot is not None
    assert snapshot.budget.steps_max == 2
    assert pump.finish(handle).text == "Read: go on"
    assert session.steer("go on", client_message_id="m1") == receipt


def test_input_for_a_session_without_turns_is_its_first(pump: Pump, client: Client) -> None:
    session = client.session("s1")
    with pytest.raises(InvalidInput, match="no turn"):
        session.steer("", readiness=True)
    first = session.steer("hello", client_message_id="m1")
    assert first.state == "bounced"
    assert session.steer("hello", client_message_id="m1") == first  # while that turn is live
    with pytest.raises(SubmitConflict):
        session.steer("other", client_message_id="m1")
    assert pump.finish(client.handle(str(first.bounced_turn_id))).text == "Read: hello"
    assert session.steer("hello", client_message_id="m1") == first
    assert len(pump.wiring.store.turns.list("s1")) == 1


def test_input_of_a_paused_session_waits_behind_the_others(pump: Pump, client: Client) -> None:
    session = client.session("s1")
    pump.finish(pump.submit("s1", "one"))
    session.pause()
    waiting = session.submit("two")
    receipt = session.steer("three")
    assert receipt.state == "bounced"
    assert [turn.turn_id for turn in session.waiting()] == [waiting.turn_id, receipt.bounced_turn_id]


def test_a_receipt_nobody_sent_is_not_found(pump: Pump) -> None:
    with pytest.raises(InputNotFound, match="m9"):
        pump.submit("s1", "hello").receipt("m9")


def test_a_hold_is_let_go_by_whoever_has_its_id(pump: Pump, client: Client) -> None:
    handle = pump.submit("s1", "order")
    with handle.hold("looking") as first:
        second = handle.hold(on_expiry="release", expires_in_s=5)
        pump.drain()
        assert {hold.id for hold in handle.holds()} == {first.id, second.id}
        assert client.handle(handle.turn_id).release(second.id) is True
    assert handle.holds() == ()
    assert (first.release(), second.release()) == (False, False)
    pump.drain()
    assert client.complete_call("job of s1", {"at": "noon"}) == "settled"
    assert pump.finish(handle).text == 'Read: {"at":"noon"}'
    with pytest.raises(InvalidInput, match="has ended"):
        handle.hold()


def test_a_readiness_flag_holds_the_turn_that_takes_it(pump: Pump, client: Client) -> None:
    session = client.session("s1")
    taken, ready, unread = (session.readiness("not yet") for _ in range(3))
    assert session.unread_flags() == (taken.id, ready.id, unread.id)
    held = pump.submit("s1", "order")
    pump.drain()
    assert [(hold.id, hold.kind) for hold in held.holds()] == [(taken.id, "readiness")]
    assert session.flag(taken.id).release() is True
    assert taken.release() is False
    pump.drain()
    client.complete_call("job of s1", "here")
    assert pump.finish(held).text == "Read: here"
    assert ready.ready() is True
    assert pump.submit("s1", "hello").holds() == ()
    assert session.unread_flags() == (unread.id,)


def test_a_session_keeps_a_bounded_number_of_flags(pump: Pump, client: Client) -> None:
    for number in range(MAX_FLAGS):
        pump.wiring.state.holds.add_flag("s1", HoldSpec(id=f"flag-{number}"))
    with pytest.raises(InvalidInput, match="release some"):
        client.session("s1").readiness()


def test_a_turns_approvals_are_decided_from_anywhere(pump: Pump, client: Client) -> None:
    handle = parked(pump)
    (asked,) = handle.approvals()
    assert client.approvals("s1") == (asked,)
    assert client.approval(asked.id) == asked
    found = client.edit(asked.id, {"name": "b"}, by="ada")
    assert (found.state, found.edited, found.arguments) == ("approved", True, {"name": "b"})
    text = pump.finish(handle).text
    assert "saved b" in text
    assert "A person changed the arguments" in text
    assert [approval.state for approval in client.approvals(state="all")] == ["approved"]


def test_redacted_arguments_are_shown_while_redis_has_them(pumps: Callable[..., Pump]) -> None:
    pump = pumps(make_brain(redact_logs=True))
    handle = parked(pump)
    (asked,) = handle.approvals()
    assert asked.arguments == {}
    pump.client.edit(asked.id, {"name": "b"})
    kept = pump.wiring.store.approvals.get(asked.turn_id, asked.call_id)
    assert kept is not None
    assert (kept.state, kept.edited, kept.arguments) == ("approved", True, None)
    assert "saved b" in pump.finish(handle).text
    assert handle.approvals()[0].arguments is None


def test_of_two_decisions_at_once_one_stands(pump: Pump, client: Client) -> None:
    handle = parked(pump)
    (asked,) = handle.approvals()
    barrier, found = threading.Barrier(8), list[str]()

    def decide(number: int) -> None:
        barrier.wait()
        try:
            state = (client.approve if number % 2 else client.deny)(asked.id).state
        except ApprovalDecided as refused:
            state = f"refused: {refused.state}"
        found.append(state)

    threads = [threading.Thread(target=decide, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    state = client.approval(asked.id).state
    assert sorted(found) == sorted([state] * 4 + [f"refused: {state}"] * 4)
    pump.finish(handle)
    assert client.approval(asked.id).state == state
    (entry,) = pump.wiring.store.traces.of_turn(handle.turn_id)
    assert entry.status == ("completed" if state == "approved" else "denied")


def test_a_token_is_used_once(pump: Pump, client: Client) -> None:
    handle = parked(pump, "order")
    with pytest.raises(TokenRefused):
        client.complete_call("job of nobody", 1)
    with pytest.raises(InvalidInput):
        client.complete_call("job of s1", {1})
    assert client.fail_call("job of s1", "sold out") == "settled"
    with pytest.raises(TokenRefused, match="before") as refused:
        client.complete_call("job of s1", 1)
    assert "job of" not in str(refused.value)
    assert pump.finish(handle).text == "Read: The tool failed: sold out."
    (intent,) = pump.wiring.store.calls.of_turn(handle.turn_id)
    assert (intent.state, intent.outcome_kind, intent.late) == ("done", "failure", False)


def test_a_late_result_is_kept_as_evidence(pump: Pump, client: Client) -> None:
    handle = parked(pump, "order")
    handle.cancel()
    pump.finish(handle)
    assert client.complete_call("job of s1", "sent") == "late"
    (intent,) = pump.wiring.store.calls.of_turn(handle.turn_id)
    assert (intent.outcome_kind, intent.late) == ("success", True)
    notices: Any = pump.wiring.state.redis.lrange(pump.wiring.state.keys.of_session("s1", "notices"), 0, -1)
    assert "sent" in json.loads(notices[0])["content"]


@pytest.mark.parametrize("on_busy", ["steer", "merge"])
def test_a_submit_that_joins_another_turn_has_its_receipt(pump: Pump, client: Client, on_busy: Any) -> None:
    live = pump.submit("s1", "one")
    waiting = pump.submit("s1", "two")
    joined = client.submit("s1", "more", on_busy=on_busy)
    target = live if on_busy == "steer" else waiting
    assert (joined.turn_id, joined.created) == (target.turn_id, False)
    assert joined.joined is not None
    assert joined.joined.state == "accepted"
    assert waiting.joined is None


def test_a_compaction_is_a_turn(pump: Pump, client: Client) -> None:
    pump.finish(pump.submit("s1", "one"))
    assert "compact" in pump.finish(client.session("s1").compact()).text


@pytest.mark.parametrize(
    ("sync", "twin"),
    [
        (Client, AsyncClient),
        (TurnHandle, AsyncTurnHandle),
        (Session, AsyncSession),
        (Hold, AsyncHold),
        (Flag, AsyncFlag),
    ],
)
def test_the_asynchronous_twins_take_and_are_called_the_same(sync: type, twin: type) -> None:
    for name in _public(sync) - {"state", "stop", "queue_again", "release_hold", "next_events", "submit"}:
        given = getattr(sync, name)
        other = getattr(twin, name)
        if not isinstance(given, property):
            taken = list(inspect.signature(other).parameters)
            assert list(inspect.signature(given).parameters) == taken, name
        assert getattr(twin, name).__doc__, name


def test_an_event_loop_does_it_all(pump: Pump) -> None:
    async def all_of_it() -> None:
        async with AsyncClient(pump.settings, make_brain()) as client:
            session = client.session("s1")
            flag = await session.readiness("not yet")
            handle = await client.submit("s1", "save")
            assert await session.live() == handle.turn_id
            assert [event.seq for event in await handle.events_so_far()] == [1, 2]  # active, and held
            async with await handle.hold("looking"):
                assert len(await handle.holds()) == 2
            assert await flag.release()
            await asyncio.to_thread(pump.drain)
            (asked,) = await client.approvals(session="s1")
            receipt = await handle.steer("and this", client_message_id="m1")
            assert await handle.receipt("m1") == receipt
            assert (await client.approve(asked.id)).state == "approved"
            await asyncio.to_thread(pump.drain)
            assert "and this" in (await handle.result(timeout_s=60)).text
            assert await handle.events_so_far() == tuple([event async for event in handle.events()])
            assert await session.pause()
            assert await session.is_paused()
            waits = await session.submit("And then?", request_key="k-2")
            assert [turn.turn_id for turn in await session.waiting()] == [waits.turn_id]
            assert (await session.submit("And then?", request_key="k-2")).turn_id == waits.turn_id
            assert await session.drop(waits.turn_id)
            assert await session.why_paused() == ""
            assert await session.resume() is None
            with pytest.raises(TokenRefused):
                await client.complete_call("nobody's", 1)

    asyncio.run(all_of_it())


def _public(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")}
