"""SQL knows first, lost doorbells are rung again, and nothing is left behind (P2, P12)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from brainq.client.handle import TurnHandle
from brainq.contracts.ids import new_turn_id
from brainq.contracts.status import Ending, StopReason
from brainq.engine.calls.report import NEVER_STARTED
from brainq.engine.people.admission import read_request
from brainq.engine.people.lost_turns import LostTurns
from tests.integration.adapters.sql.examples import start
from tests.support.brains.diary import notes, open_gate
from tests.support.brains.obedient import script
from tests.support.pump import Pump
from tests.support.wait import wait_until

Pumps = Callable[..., Pump]


def accept_only(pump: Pump, session_id: str, message: str) -> TurnHandle:
    """A submit whose producer died between SQL and Redis."""
    request = read_request({"turn_id": new_turn_id(), "session_id": session_id, "user_message": message})
    pump.wiring.store.turns.accept(request)
    return pump.client.handle(request.turn_id)


def compare(pump: Pump) -> int:
    return pump.wiring.sweeper.checks.lost_turns.compare(0).healed


def test_a_row_that_redis_does_not_know_is_queued_in_row_order(pump: Pump) -> None:
    handles = [accept_only(pump, "s1", script([("write", {"name": f"w{n}"})], final=str(n))) for n in range(3)]
    assert compare(pump) == 3
    assert compare(pump) == 0
    assert [pump.finish(handle).text for handle in handles] == ["0", "1", "2"]
    assert [row["name"] for row in notes("start")] == ["w0", "w1", "w2"]


def test_a_cancel_of_a_turn_that_redis_does_not_know_is_not_lost(pump: Pump) -> None:
    handle = accept_only(pump, "s1", script())
    assert handle.cancel("no longer needed") in ("cancelled", "requested")
    compare(pump)
    assert pump.finish(handle).ending is Ending.CANCELLED
    assert not notes("thinking")


def test_a_turn_that_redis_lost_begins_again_when_it_wrote_nothing(pump: Pump) -> None:
    handle = pump.submit("s1", script([("read", {"name": "a"})], [("write", {"name": "w"})], final="whole"))
    behind = pump.submit("s1", script(final="behind"))
    pump.drain("brainq.turns", "brainq.tools.read_only")
    assert notes("start", name="a")
    pump.wiring.state.redis.flushall()
    assert compare(pump) == 2
    assert (pump.finish(handle).text, pump.finish(behind).text) == ("whole", "behind")
    assert len(notes("start", name="w")) == 1


def test_a_turn_that_redis_lost_begins_again_when_its_write_never_started(pump: Pump) -> None:
    """So does a failover that comes between an intent and its start."""
    handle = pump.submit("s1", script(final="whole"))
    calls = pump.wiring.store.calls
    start(pump.wiring.store, turn_id=handle.turn_id)
    calls.record_outcome(handle.turn_id, "c1-0", 1, NEVER_STARTED, late=False)
    pump.wiring.state.redis.flushall()
    assert compare(pump) == 1
    assert pump.finish(handle).text == "whole"


def test_stops_are_restored_before_a_lost_turn_begins_again(pump: Pump) -> None:
    order = [part.name for part in pump.wiring.sweeper.comparisons]
    assert order.index("restore operators' stops") < order.index("compare SQL with Redis")


def test_the_end_that_sql_lost_in_a_failover_is_written_again_and_the_turn_does_not_run_again(pump: Pump) -> None:
    """Redis would expire the turn an hour later, and the sweeper would queue it from its row."""
    handle = pump.submit("s1", script([("write", {"name": "w"})], final="once"))
    assert pump.finish(handle).text == "once"
    pump.drain()
    with pump.wiring.store.database.transaction() as connection:
        connection.write_text("UPDATE turns SET state='accepted', ending=NULL, ended_at=NULL, result_json=NULL", [()])
        connection.write_text("DELETE FROM calls", [()])

    assert compare(pump) == 0

    pump.wiring.state.redis.flushall()
    assert compare(pump) == 0
    found = pump.wiring.store.turns.result(handle.turn_id)
    assert (found.text if found else None, len(notes("start"))) == ("once", 1)


def patient(pump: Pump, patience_s: float) -> LostTurns:
    wiring = pump.wiring
    return LostTurns(
        state=wiring.state.sweeper,
        accepted=wiring.store.turns,
        turn_queue=wiring.people.turn_queue,
        calls=wiring.store.calls,
        patience_s=patience_s,
    )


def test_a_turn_that_redis_lost_waits_for_the_worker_that_asks_whether_its_write_may_start(pump: Pump) -> None:
    handle, calls = pump.submit("s1", script(final="whole")), pump.wiring.store.calls
    behind = pump.submit("s1", script(final="behind"))
    start(pump.wiring.store, turn_id=handle.turn_id)
    pump.wiring.state.redis.flushall()
    lost_turns = patient(pump, patience_s=600.0)
    assert [lost_turns.compare(0).healed, lost_turns.readmit(handle.turn_id)] == [0, False]
    calls.record_outcome(handle.turn_id, "c1-0", 1, NEVER_STARTED, late=False)
    assert [lost_turns.compare(0).healed, lost_turns.compare(0).healed] == [2, 0]
    assert (pump.finish(handle).text, pump.finish(behind).text) == ("whole", "behind")


def test_a_worker_that_does_not_say_whether_its_write_started_is_not_waited_for_longer(pump: Pump) -> None:
    handle = pump.submit("s1", script(final="whole"))
    start(pump.wiring.store, turn_id=handle.turn_id)
    pump.wiring.state.redis.flushall()
    lost_turns = patient(pump, patience_s=0.001)
    wait_until(lambda: lost_turns.compare(0).healed == 1, "its patience is over")
    assert pump.finish(handle).stop_reason is StopReason.LOST


def test_a_turn_that_redis_lost_after_a_write_began_ends_as_lost(pump: Pump) -> None:
    handle = pump.submit("s1", script([("write", {"name": "w"})], [("write", {"name": "w2"})]))
    while not notes("stop"):
        assert pump.drain("brainq.turns", "brainq.tools.local_write")
    pump.wiring.state.redis.flushall()
    compare(pump)
    result = pump.finish(handle)
    assert (result.ending, result.stop_reason) == (Ending.FAILED, StopReason.LOST)
    assert "begun to write" in (result.error or "")
    assert len(notes("start", name="w")) == 1


def test_a_session_that_redis_lost_goes_on_from_sql(pump: Pump) -> None:
    first = pump.finish(pump.submit("s1", script(final="remember the milk")))
    pump.wiring.state.redis.flushall()
    shown = json.loads(pump.finish(pump.submit("s1", script(final="$seen"))).text)
    assert first.text in [message["text"] for message in shown if message["role"] == "assistant"]


@pytest.mark.parametrize(
    "queue", ["brainq.turns", "brainq.tools.read_only", "brainq.tools.local_write", "brainq.finalize"]
)
def test_p2_a_lost_doorbell_is_rung_again(pump: Pump, queue: str) -> None:
    handle = pump.submit("s1", script([("read", {"name": "a"}), ("write", {"name": "w"})], final="end"))
    while (lost := pump.take(queue)) is None:
        bell = pump.take()
        assert bell is not None, f"{queue} was never rung"
        pump.answer(bell)
    result = pump.finish(handle)
    assert result.text == "end"
    assert len(notes("start", name="w")) == 1
    assert lost.args[1] == handle.turn_id


def test_p2_every_doorbell_of_a_turn_may_be_lost_once(pump: Pump) -> None:
    pump.ring_each_step()
    handle = pump.submit("s1", script([("read", {"name": "a"}), ("write", {"name": "w"})], final="end"))
    lost: set[tuple[Any, ...]] = set()
    rung: list[str] = []

    def step() -> bool:
        bell = pump.take()
        if bell is None:
            pump.sweep()
        elif (key := (bell.task, bell.args[2:])) in lost:
            rung.append(pump.answer(bell))
        else:
            lost.add(key)
        snapshot = handle.snapshot()
        return snapshot is not None and snapshot.awaits == "nobody"

    wait_until(step, "the turn ended though every bell was lost once", timeout_s=60)
    assert handle.result(timeout_s=0).text == "end"
    assert len(lost) == 11, "two advances, two calls, seven steps"
    assert len(notes("start")) == 2


def test_p2_bells_of_a_long_queue_are_not_copied(pumps: Pumps) -> None:
    pump = pumps(rering_s=60.0)
    handles = [pump.submit(f"s{n}", script()) for n in range(5)]
    waiting = pump.waiting()
    client: Any = pump.wiring.state.redis
    for handle in handles:
        turn = pump.wiring.state.keys.turn(handle.session_id, handle.turn_id)
        client.hincrby(turn, "rung_at", -600_000)  # so long ago
    pump.sweep()
    assert pump.waiting() == waiting
    while pump.take():
        pass
    pump.sweep()
    assert pump.waiting(), "they were old enough to be rung again"
    for handle in handles:
        pump.finish(handle)


def test_p12_nothing_is_left_when_all_has_ended_and_expired(pump: Pump) -> None:
    handles = [
        pump.submit("s1", script([("read", {"name": "a"}), ("write", {"name": "w"})], final="a b c")),
        pump.submit("s1", script([("keyed", {"name": "k"}), ("keyed", {"name": "l"})])),
        pump.submit("s2", script(fail="refused")),
        pump.submit("s3", script()),
        pump.submit("s4", script([("hasty_write", {"name": "late", "gate": "late"})])),
        pump.submit("s5", script([("forbidden", {"name": "x"})]), limits={"max_steps": 1}),
        pump.submit("s6", script(), limits={"timeout_s": 0.01}),
    ]
    waiting = pump.submit("s3", script())
    waiting.cancel()
    for handle in [*handles, waiting]:
        pump.settle(handle)
    open_gate("late")
    wait_until(lambda: notes("stop", name="late"), "the late write ended")
    client: Any = pump.wiring.state.redis
    of_all = {"bq:bells", "bq:swept"}
    wait_until(lambda: client.exists("bq:{s4}:notices") or client.exists("bq:{s4}:history") == 0, "the notice was left")

    def left() -> list[str]:
        for key in client.keys("*"):
            if key not in of_all and client.pttl(key) > 0:
                client.pexpire(key, 1)  # its lifetime is over
        pump.sweep()
        return sorted(client.keys("*"))

    wait_until(lambda: set(left()) <= of_all, "all keys but those of no turn are gone", timeout_s=60)
    assert all(0 < client.pttl(key) <= 86_400_000 for key in of_all), "they live for a day"
    for handle in handles:
        assert handle.result(timeout_s=0).turn_id == handle.turn_id, "SQL answers when Redis has forgotten"


def test_p12_keys_of_a_live_turn_never_expire(pumps: Pumps) -> None:
    pump = pumps(keep_turn_s=1, keep_session_s=1)
    pump.finish(pump.submit("s1", script()))
    handle = pump.submit("s1", script([("read", {"name": "a"})], [("write", {"name": "w"})], final="x"))
    client: Any = pump.wiring.state.redis
    checked = 0
    while (bell := pump.take()) and bell.queue != "brainq.finalize":
        pump.answer(bell)
        snapshot = handle.snapshot()
        assert snapshot is not None
        if snapshot.state != "active":
            continue
        checked += 1
        own = [key for key in client.keys("bq:{s1}*") if handle.turn_id in key or ":t:" not in key]
        assert {key: client.pttl(key) for key in own} == dict.fromkeys(own, -1)
    assert bell is not None
    assert checked == 4
    pump.answer(bell)
    pump.finish(handle)
