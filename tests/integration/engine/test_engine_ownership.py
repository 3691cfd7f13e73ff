"""P1, P6 and P10: one owner, budgets that hold, events without gaps, under races."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from brainq.contracts.claim import NoClaim, StepAttempt, StepStart, TurnClaim, TurnCleanup, TurnEnd, TurnStart
from brainq.contracts.event import EventKind
from brainq.contracts.message import Message
from brainq.contracts.model import Spend
from brainq.contracts.status import Ending, StopReason, TraceStatus, TurnState
from brainq.contracts.turn import Limits
from brainq.contracts.view import TurnView
from tests.support.brains.diary import notes, open_gate
from tests.support.brains.obedient import script
from tests.support.pump import Pump
from tests.support.wait import wait_until

Pumps = Callable[..., Pump]
STEP = StepStart(estimate=1, most_tokens=0, max_usd=None)


def race(works: list[Callable[[], Any]]) -> list[Any]:
    """Run all at once; their answers, in order."""
    barrier, found = threading.Barrier(len(works)), [None] * len(works)

    def run(index: int) -> None:
        barrier.wait()
        found[index] = works[index]()

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_p1_one_of_twenty_workers_advances_a_turn(pumps: Pumps) -> None:
    workers = [pumps(owner=f"w{n}") for n in range(20)]
    handle = workers[0].submit("s1", script([("write", {"name": "x"})], final="answer"))
    bell = workers[0].take()
    assert bell is not None
    words = race([partial(worker.answer, bell) for worker in workers])
    assert words.count("committed calls") == 1
    assert all(word.startswith("dropped") for word in words if word != "committed calls")
    assert len(notes("thinking")) == 1
    workers[3].finish(handle)
    assert len(notes("start")) == 1


@pytest.mark.full
def test_p1_one_of_twenty_workers_advances_each_of_a_thousand_turns(pumps: Pumps) -> None:
    workers = [pumps(owner=f"w{n}") for n in range(20)]
    for number in range(1000):
        workers[0].submit(f"s{number}", script())
        bell = workers[0].take("brainq.turns")
        assert bell is not None
        words = race([partial(worker.answer, bell) for worker in workers])
        assert Counter(word.split(":")[0] for word in words) == {"ended": 1, "dropped": 19}


def old_and_new_owner(pumps: Pumps) -> tuple[Pump, TurnClaim, TurnClaim]:
    pump = pumps()
    handle = pump.submit("s1", script())
    old = pump.wiring.state.turns.claim("s1", handle.turn_id, 0, "old")
    assert isinstance(old, TurnClaim)

    def rung() -> int:
        pump.sweep()
        bell = pump.take("brainq.turns")
        return 0 if bell is None else bell.args[2]

    fence = wait_until(rung, "the lapsed lease was rung for")
    assert fence == old.fence
    new = pump.wiring.state.turns.claim("s1", handle.turn_id, fence, "new")
    assert isinstance(new, TurnClaim)
    assert new.fence == old.fence + 1
    return pump, old, new


def end(pump: Pump, claim: TurnClaim) -> object:
    return pump.wiring.state.turns.end(
        claim,
        TurnEnd(
            ending=Ending.COMPLETED,
            stop_reason=StopReason.ANSWERED,
            text="x",
            error="",
            answer=Message(role="assistant", content="x"),
            marker=None,
            open_status=TraceStatus.CANCELLED,
            open_text="",
            first_step="citations",
            spend=None,
            tail="",
        ),
    )


def test_p1_every_write_of_an_old_fence_is_lost(pumps: Pumps) -> None:
    pump, old, new = old_and_new_owner(pumps)
    turns = pump.wiring.state.turns
    before = snapshot(pump)
    message = Message(role="assistant", content="from the old owner")
    for fence_of_old in (old, TurnClaim(old.session_id, old.turn_id, "new", old.fence, old.now_ms)):
        assert turns.beat(fence_of_old) == "LOST"
        assert turns.begin(fence_of_old, TurnStart((message,), "")) is False
        assert turns.begin_step(fence_of_old, STEP, "1") == "LOST"
        assert turns.begin_step(fence_of_old, replace(STEP, turn=TurnStart((message,), "")), "2") == "LOST"
        assert turns.publish_delta(fence_of_old, 1, 1, "x") is False
        assert turns.commit_calls(fence_of_old, 1, message, (), Spend(step=1), "") == "LOST"
        assert end(pump, fence_of_old) == "LOST"
    assert snapshot(pump) == before
    assert isinstance(end(pump, new), TurnCleanup)
    after = snapshot(pump)
    assert end(pump, new) == "LOST"
    assert turns.begin_step(new, STEP, "3") == "LOST"
    assert turns.claim("s1", new.turn_id, new.fence, "third") == NoClaim(TurnState.CLOSING)
    assert snapshot(pump) == after


def snapshot(pump: Pump) -> dict[str, Any]:
    """Everything in Redis, by key."""
    client: Any = pump.wiring.state.redis
    kept = sorted(client.keys("*"))
    return {key: dump(client, key) for key in kept}


def dump(client: Any, key: str) -> Any:
    match client.type(key):
        case "hash":
            return client.hgetall(key)
        case "list":
            return client.lrange(key, 0, -1)
        case "zset":
            return client.zrange(key, 0, -1)
        case "set":
            return client.smembers(key)
        case "stream":
            return client.xrange(key)
        case _:
            return client.get(key)


def test_p1_a_second_run_of_a_script_changes_nothing(pumps: Pumps) -> None:
    pump = pumps(lease_s=60.0)
    handle = pump.submit("s1", script([("write", {"name": "x"})]))
    request = pump.wiring.store.turns.request(handle.turn_id)
    assert request is not None
    before = snapshot(pump)
    assert pump.wiring.state.turns.submit(request, Limits())[0] == "EXISTS"
    claim = pump.wiring.state.turns.claim("s1", handle.turn_id, 0, "w")
    assert isinstance(claim, TurnClaim)
    claimed = snapshot(pump)
    again = pump.wiring.state.turns.claim("s1", handle.turn_id, 0, "w")  # its reply may have been lost
    assert isinstance(again, TurnClaim)
    assert again.fence == claim.fence
    assert pump.wiring.state.turns.claim("s1", handle.turn_id, 0, "w2") == NoClaim("stale")
    assert pump.wiring.state.turns.claim("s1", handle.turn_id, 1, "w") == NoClaim("held")
    assert snapshot(pump) == claimed
    assert before.keys() <= claimed.keys()
    hello = TurnStart((Message(role="user", content="hello"),), "h")
    assert pump.wiring.state.turns.begin(claim, hello)
    begun = snapshot(pump)
    assert pump.wiring.state.turns.begin(claim, hello)
    assert snapshot(pump) == begun


@pytest.mark.parametrize("kind", ["steps", "tool_calls", "reflections"])
def test_p6_two_hundred_racing_claims_get_exactly_the_maximum(pumps: Pumps, kind: str) -> None:
    workers = [pumps(owner=f"w{n}") for n in range(8)]
    turns = workers[0].wiring.state.turns
    turns.create_budget("s1", "t-1", Limits(max_steps=37, max_tool_calls=37, max_reflections=37))
    words = race(
        [
            lambda n=n: [  # type: ignore[misc]
                workers[n % 8].wiring.state.turns.claim_budget("s1", "t-1", kind, [f"id-{n}-{i}"])[0] for i in range(10)
            ]
            for n in range(20)
        ]
    )
    assert Counter(word for some in words for word in some) == {"CLAIMED": 37, "SPENT": 163}
    assert turns.claim_budget("s1", "t-1", kind, ["one-more"]) == ["SPENT"]


def test_p6_the_same_claim_pays_once(pump: Pump) -> None:
    turns = pump.wiring.state.turns
    turns.create_budget("s1", "t-1", Limits(max_steps=5, max_tool_calls=3))
    words = race([lambda: turns.claim_budget("s1", "t-1", "tool_calls", ["c1-0", "c1-1"]) for _ in range(16)])
    assert Counter(word for some in words for word in some) == {"CLAIMED": 2, "ALREADY": 30}
    assert turns.budget("s1", "t-1").tool_calls_used == 2


def test_p6_calls_over_the_budget_are_denied_in_the_models_order(pump: Pump) -> None:
    calls = [("read", {"name": str(n)}) for n in range(5)]
    handle = pump.submit("s1", script(calls, [("read", {"name": "more"})]), limits={"max_tool_calls": 3})
    result = pump.finish(handle)
    statuses = [entry.status for entry in pump.wiring.state.calls.trace("s1", handle.turn_id)]
    assert statuses == ["completed"] * 3 + ["denied"] * 3
    assert result.tool_calls == 3
    assert len(notes("start")) == 3


def test_p6_a_step_that_is_run_again_does_not_pay_twice(pumps: Pumps) -> None:
    first, second = pumps(owner="one"), pumps(owner="two")
    handle = first.submit("s1", script([("read", {"name": "a"})], final="end"), limits={"max_steps": 2})
    claim = first.wiring.state.turns.claim("s1", handle.turn_id, 0, "dead")
    assert isinstance(claim, TurnClaim)
    assert first.wiring.state.turns.begin_step(claim, replace(STEP, estimate=1000), "1") == StepAttempt(1, 1)
    result = second.finish(handle)
    assert (result.text, result.steps, result.stop_reason) == ("end", 2, StopReason.ANSWERED)
    assert second.wiring.state.turns.budget("s1", handle.turn_id).steps_used == 2
    assert result.input_tokens > 1000, "the lost attempt was not charged"
    attempts = [(row["step"], row["attempt"]) for row in notes("thinking")]
    assert attempts == [(1, 2), (2, 1)]


def test_p6_a_doorbell_that_comes_twice_does_not_pay_twice(pump: Pump) -> None:
    handle = pump.submit("s1", script([("read", {"name": "a"}), ("write", {"name": "w"})]))
    while bell := pump.take():
        pump.answer(bell)
        assert pump.answer(bell).startswith(("dropped", "gone")), bell
    result = pump.finish(handle)
    assert (result.steps, result.tool_calls) == (2, 2)
    assert pump.wiring.state.turns.budget("s1", handle.turn_id).tool_calls_used == 2
    assert Counter(row["name"] for row in notes("start")) == {"a": 1, "w": 1}


def test_p10_events_have_no_gaps_and_resume_anywhere(pump: Pump) -> None:
    handle = pump.submit("s1", script([("read", {"name": "a"}), ("write", {"name": "w"})], final="some more words"))
    pump.finish(handle)
    events = list(handle.events(timeout_s=60))
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [event.kind for event in events].count(EventKind.RESULT) == 1
    assert events[-1].is_final
    for after in range(len(events)):
        assert list(handle.events(after=after, timeout_s=1)) == events[after:]
    text = "".join(str(e.data["text"]) for e in events if e.kind is EventKind.TEXT_DELTA)
    assert text == "some more words"


def test_p10_a_model_call_that_is_run_again_has_a_higher_attempt(pumps: Pumps) -> None:
    first, second = pumps(owner="one"), pumps(owner="two")
    handle = first.submit("s1", script(final="one two three", gate="g"))
    first.wiring.beats.stop()  # a frozen process: it holds the turn and beats no more
    thinking = threading.Thread(target=first.drain, args=("brainq.turns",))
    thinking.start()
    wait_until(lambda: notes("thinking"), "the first attempt began")
    wait_until(lambda: second.sweep() or second.waiting(), "the lapsed turn was rung for")
    answered = threading.Thread(target=second.drain)
    answered.start()
    wait_until(lambda: len(notes("thinking")) == 2, "the second attempt began")
    open_gate("g")
    thinking.join()
    answered.join()
    second.finish(handle)
    events = list(handle.events(timeout_s=60))
    assert [e.data["attempt"] for e in events if e.kind is EventKind.STEP_STARTED] == [1, 2]
    assert {str(e.data["attempt"]) for e in events if e.kind is EventKind.TEXT_DELTA} == {"2"}
    assert first.bells[0][1] == "lost"


def test_p10_following_while_the_turn_runs_sees_every_event(pump: Pump) -> None:
    handle = pump.submit("s1", script([("read", {"name": "a"})], final=" ".join("word" for _ in range(40))))
    followed: list[Any] = []
    follower = threading.Thread(target=lambda: followed.extend(handle.events(timeout_s=60)))
    follower.start()
    pump.finish(handle)
    follower.join()
    assert followed == list(handle.events(timeout_s=60))


def test_an_advance_that_fails_lets_go_of_its_turn_and_is_no_lost_worker(
    pump: Pump, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = pump.submit("s1", script(final="after all"))
    turns = pump.wiring.state.turns

    def away(claim: TurnClaim) -> TurnView:
        raise ConnectionError("SQL or Redis is away")

    bell = pump.take("brainq.turns")
    assert bell is not None
    with monkeypatch.context() as broken:
        broken.setattr(turns, "look", away)
        with pytest.raises(ConnectionError):
            pump.answer(bell)
    wait_until(lambda: not turns.owner("s1", handle.turn_id), "the turn was let go of")
    assert pump.finish(handle).text == "after all"
    assert pump.wiring.state.runtime.fields("s1", handle.turn_id).get("lost_attempts", "0") == "0"
