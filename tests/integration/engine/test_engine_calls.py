"""Calls: never twice, never late, rescued as the promises say."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from brainq.client.handle import TurnHandle
from brainq.contracts.call import ToolSuccess
from brainq.contracts.claim import CallClaim, CallRef
from brainq.contracts.status import Effect, Ending, TraceStatus
from brainq.engine.calls.report import NEVER_STARTED
from brainq.engine.calls.settle import CallSettler, ClaimedCall
from brainq.engine.tools.deadline import DeadlineToken
from brainq.engine.upkeep.lost_calls import (
    UNKNOWN,
    WORKERS_LOST,
    rescue_verdict,
)
from tests.support.brains.diary import notes, open_gate
from tests.support.brains.obedient import script
from tests.support.pump import Bell, Pump
from tests.support.stand_in import stand_in
from tests.support.wait import wait_until

Pumps = Callable[..., Pump]


START_MS = 1500  # of a turn's time are left to its last call, so that it surely starts


def to_call(pump: Pump, tool: str, **arguments: Any) -> tuple[TurnHandle, Bell]:
    """A turn whose one call has been rung for, and its doorbell."""
    handle = pump.submit("s1", script([(tool, {"name": "x", **arguments})], final="$seen"))
    pump.drain("brainq.turns")
    (bell,) = pump.waiting()
    assert pump.take() == bell
    return handle, bell


def ref(handle: TurnHandle) -> CallRef:
    return CallRef(handle.session_id, handle.turn_id, "c1-0")


def status(pump: Pump, handle: TurnHandle) -> str:
    (entry,) = pump.wiring.state.calls.trace(handle.session_id, handle.turn_id)
    return entry.status


def lapse(pump: Pump, handle: TurnHandle) -> None:
    """Wait for the lease of a dead worker's call to lapse, and for the sweeper to have judged it."""
    assert status(pump, handle) == "running"
    wait_until(lambda: pump.sweep() or status(pump, handle) != "running", "the sweeper judged the call")


def told(pump: Pump, handle: TurnHandle) -> dict[str, Any]:
    """The one tool message the model was shown."""
    (message,) = [m for m in json.loads(pump.finish(handle).text) if m["role"] == "tool"]
    return message


def start_intent(pump: Pump, handle: TurnHandle, owner: str = "dead") -> None:
    assert pump.wiring.store.calls.start(
        turn_id=handle.turn_id,
        call_id="c1-0",
        attempt=1,
        session_id="s1",
        tool="write",
        effect=Effect.LOCAL_WRITE,
        args_hash="",
        args_json=None,
        idempotency_key="",
        owner=owner,
    )


def claim_and_intend(pump: Pump, handle: TurnHandle, *, starts: bool = True) -> CallClaim:
    """A worker's claim, its intent, and where it `starts` its last look at Redis before the function."""
    claimed = pump.wiring.state.calls.claim(ref(handle), 1, "dead")
    assert isinstance(claimed, CallClaim)
    start_intent(pump, handle)
    if starts:
        assert pump.wiring.state.calls.start(claimed) == "OK"
    return claimed


def test_p3_an_intent_that_came_late_of_a_write_that_never_ran_is_void(pump: Pump) -> None:
    """SQL was silent: the worker gave up its intent, which arrived later, and went no further."""
    handle, _ = to_call(pump, "write")
    claimed = claim_and_intend(pump, handle, starts=False)
    lapse(pump, handle)
    assert told(pump, handle)["text"] == "write x ok"
    assert [row["attempt"] for row in notes("start")] == [2]
    states = [(row.attempt, row.state) for row in pump.wiring.store.calls.of_turn(handle.turn_id)]
    assert states == [(1, "void"), (2, "done")]
    assert pump.wiring.state.calls.start(claimed) == "LOST"


def test_p3_of_a_redis_that_is_another_one_since_the_claim_nothing_is_believed(pump: Pump) -> None:
    """It may have lost that the write had started."""
    handle, _ = to_call(pump, "write")
    claim_and_intend(pump, handle, starts=False)
    trace = f"{pump.wiring.state.keys.turn(handle.session_id, handle.turn_id)}:trace"
    pump.wiring.state.redis.hset(trace, "c1-0:run", "1 " + "0" * 40 + " " + "0" * 40)
    lapse(pump, handle)
    assert status(pump, handle) == TraceStatus.UNKNOWN
    assert not notes("start")


def test_p3_a_write_that_runs_though_redis_lost_its_claim_is_unknown(pump: Pump) -> None:
    """The same attempt is claimed once more, from a Redis that knows nothing of the first claim."""
    handle, bell = to_call(pump, "write")
    start_intent(pump, handle, owner="claimed before the loss, and still at work")
    assert pump.answer(bell) == "not started"
    trace = f"{pump.wiring.state.keys.turn(handle.session_id, handle.turn_id)}:trace"
    pump.wiring.state.redis.hset(trace, "c1-0:lease", 0)
    assert pump.wiring.sweeper.checks.rescuer.rescue(ref(handle), 1) == "settled"
    assert status(pump, handle) == TraceStatus.UNKNOWN
    assert not notes("start")


def test_a_claim_of_an_attempt_that_never_starts_is_not_waited_for(pump: Pump) -> None:
    """So is the first write of a turn that Redis lost and that began again."""
    handle, bell = to_call(pump, "write")
    start_intent(pump, handle)
    pump.wiring.store.calls.record_outcome(handle.turn_id, "c1-0", 1, NEVER_STARTED, late=False)
    assert pump.answer(bell) == "not started"
    assert pump.wiring.sweeper.checks.rescuer.rescue(ref(handle), 1) == "again"
    assert told(pump, handle)["text"] == "write x ok"
    assert [row["attempt"] for row in notes("start")] == [2]


def test_p3_a_write_whose_worker_died_after_its_start_is_unknown(pump: Pump) -> None:
    handle, _ = to_call(pump, "write")
    claim_and_intend(pump, handle)
    lapse(pump, handle)
    assert status(pump, handle) == TraceStatus.UNKNOWN
    message = told(pump, handle)
    assert message["error"]
    assert "may or may not have taken effect" in message["text"]
    assert not notes("start")


def test_p3_a_write_that_began_and_whose_intent_sql_has_lost_is_unknown(pump: Pump) -> None:
    """SQL was failed over to a standby that did not have the intent. Redis has seen the start."""
    handle, _ = to_call(pump, "write")
    claim_and_intend(pump, handle)
    with pump.wiring.store.database.transaction() as connection:
        connection.write_text("DELETE FROM calls", [()])
    lapse(pump, handle)
    assert status(pump, handle) == TraceStatus.UNKNOWN
    assert not notes("start")


@pytest.mark.parametrize("tool", ["write", "send", "destroy", "idem", "read"])
def test_p3_a_call_whose_worker_died_before_it_started_runs_once(pump: Pump, tool: str) -> None:
    handle, bell = to_call(pump, tool)
    pump.wiring.state.calls.claim(ref(handle), 1, "dead")
    lapse(pump, handle)
    assert told(pump, handle)["text"] == f"{tool} x ok"
    assert [row["attempt"] for row in notes("start")] == [2]
    assert pump.answer(bell).startswith("dropped")
    assert len(notes("start")) == 1


def test_p3_a_voided_attempt_can_never_start(pumps: Pumps) -> None:
    """The worker froze between its claim and its intent, and thaws after the rescue."""
    pump, frozen = pumps(), pumps(owner="frozen")
    handle, bell = to_call(pump, "write")
    claimed = frozen.wiring.state.calls.claim(ref(handle), 1, "frozen")
    assert isinstance(claimed, CallClaim)
    lapse(pump, handle)
    intents = frozen.wiring.runner._intents  # pyright: ignore[reportPrivateUsage]
    assert intents.start(claimed, redact=False) == "left"
    assert told(pump, handle)["text"] == "write x ok"
    assert len(notes("start")) == 1
    states = [(row.attempt, row.state) for row in pump.wiring.store.calls.of_turn(handle.turn_id)]
    assert states == [(1, "void"), (2, "done")]
    assert bell.args[-1] == 1


def test_p3_an_idempotent_write_runs_again_with_the_same_key(pump: Pump) -> None:
    handle, _ = to_call(pump, "idem")
    pump.wiring.state.calls.claim(ref(handle), 1, "dead")
    start_intent(pump, handle)
    lapse(pump, handle)
    assert told(pump, handle)["text"] == "idem x ok"
    (row,) = notes("start")
    assert (row["attempt"], row["key"]) == (2, f"{handle.turn_id}:c1-0")


def test_p3_an_outcome_recorded_before_the_worker_died_is_the_outcome(pump: Pump) -> None:
    handle, _ = to_call(pump, "write")
    pump.wiring.state.calls.claim(ref(handle), 1, "dead")
    start_intent(pump, handle)
    pump.wiring.store.calls.record_outcome(handle.turn_id, "c1-0", 1, ToolSuccess(value="it was written"), late=False)
    lapse(pump, handle)
    assert status(pump, handle) == TraceStatus.COMPLETED
    assert told(pump, handle)["text"] == "it was written"
    assert not notes("start")


READ, WRITE = Effect.READ_ONLY, Effect.LOCAL_WRITE
JUDGEMENTS = [
    (READ, False, 1, "void", None),
    (READ, False, 3, "void", WORKERS_LOST),
    (WRITE, False, 1, "void", None),
    (WRITE, False, 3, "void", WORKERS_LOST),
    (WRITE, False, 1, "started", UNKNOWN),
    (WRITE, True, 1, "started", None),
    (WRITE, True, 3, "started", UNKNOWN),
    (WRITE, True, 3, "void", UNKNOWN),
    (Effect.DESTRUCTIVE, False, 1, "started", UNKNOWN),
]


@pytest.mark.parametrize(("effect", "idempotent", "attempt", "started", "expected"), JUDGEMENTS)
def test_p3_judgements(effect: Effect, idempotent: bool, attempt: int, started: str, expected: object) -> None:
    assert rescue_verdict(effect, idempotent, attempt, 3, started, None) == expected


def test_p3_a_doorbell_that_comes_twice_starts_a_write_once(pumps: Pumps) -> None:
    pump, second = pumps(), pumps(owner="two")
    handle, bell = to_call(pump, "write")
    barrier, words = threading.Barrier(6), list[str]()

    def answer(worker: Pump) -> None:
        barrier.wait()
        words.append(worker.answer(bell))

    threads = [threading.Thread(target=answer, args=(worker,)) for worker in (pump, second) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert words.count("settled") == 1
    assert len(notes("start")) == 1
    assert told(pump, handle)["text"] == "write x ok"


def test_p4_a_late_write_becomes_a_notice_and_evidence(pump: Pump) -> None:
    handle = pump.submit(
        "s1",
        script([("hasty_write", {"name": "x", "gate": "late"})], [("read", {"name": "r", "gate": "r"})], final="$seen"),
    )
    pump.drain("brainq.turns", "brainq.tools.local_write")
    assert pump.wiring.state.calls.trace("s1", handle.turn_id)[0].status == TraceStatus.TIMED_OUT
    (row,) = pump.wiring.store.calls.of_turn(handle.turn_id)
    assert (row.outcome_kind, row.late) == ("timeout", False)
    open_gate("late")
    wait_until(
        lambda: pump.wiring.state.calls.trace("s1", handle.turn_id)[0].status == TraceStatus.TIMED_OUT_LATE,
        "the late end was traced",
    )
    (row,) = pump.wiring.store.calls.of_turn(handle.turn_id)
    assert (row.outcome_kind, row.late) == ("success", True)
    open_gate("r")
    shown = json.loads(pump.finish(handle).text)
    assert "did not finish" in next(m["text"] for m in shown if m["call"] == "c1-0")
    (notice,) = [m["text"] for m in shown if m["text"].startswith("[Notice")]
    assert "hasty_write" in notice
    assert "succeeded after all" in notice
    assert "hasty_write x ok" in notice


def test_p4_a_late_write_after_the_turn_is_told_to_the_next_one(pump: Pump) -> None:
    handle = pump.submit("s1", script([("hasty_write", {"name": "x", "gate": "late"})]))
    result = pump.finish(handle)
    assert result.ending is Ending.COMPLETED
    open_gate("late")
    wait_until(lambda: notes("stop"), "the late function ended")
    wait_until(lambda: status(pump, handle) == TraceStatus.TIMED_OUT_LATE, "the late end was traced")
    shown = json.loads(pump.finish(pump.submit("s1", script(final="$seen"))).text)
    assert [m["text"] for m in shown if "succeeded after all" in m["text"]]
    again = json.loads(pump.finish(pump.submit("s1", script(final="$seen"))).text)
    assert len([m for m in again if m["text"].startswith("[Notice")]) == 1


def test_p4_a_late_read_changes_nothing(pump: Pump) -> None:
    handle = pump.submit("s1", script([("hasty_read", {"name": "x", "gate": "late"})], [("read", {"name": "r"})]))
    pump.drain("brainq.turns", "brainq.tools.read_only")
    before = pump.wiring.state.redis.lrange(pump.wiring.state.keys.of_session("s1", "history"), 0, -1)
    open_gate("late")
    wait_until(
        lambda: pump.wiring.state.calls.trace("s1", handle.turn_id)[0].status == TraceStatus.TIMED_OUT_LATE,
        "the late end was traced",
    )
    assert pump.wiring.state.redis.lrange(pump.wiring.state.keys.of_session("s1", "history"), 0, -1) == before
    assert not pump.wiring.state.redis.exists(pump.wiring.state.keys.of_session("s1", "notices"))
    result = pump.finish(handle)
    assert [citation.source for citation in result.local_citations] == ["r.txt"]


@pytest.mark.parametrize("how", ["deadline", "cancel"])
def test_p4_what_ends_after_the_turn_is_told_as_it_ended(pump: Pump, how: str) -> None:
    handle, bell = to_call(pump, "write", gate="late")
    if how == "deadline":
        budget = pump.wiring.state.keys.turn("s1", handle.turn_id) + ":budget"
        seconds, micros = pump.wiring.state.redis.time()
        pump.wiring.state.redis.hset(budget, "deadline", seconds * 1000 + micros // 1000 + START_MS)
    running = threading.Thread(target=lambda: pump.answer(bell))
    running.start()
    wait_until(lambda: notes("start"), "the write started")
    if how == "cancel":
        handle.cancel()
    running.join()
    pump.finish(handle)
    kept = status(pump, handle)
    # Of a cancel, worker and coordinator hear at the same time; either may be the first to write it down.
    assert kept == ("timed_out" if how == "deadline" else "unknown")
    assert not pump.wiring.state.redis.exists(pump.wiring.state.keys.of_session("s1", "notices"))
    open_gate("late")
    notices = pump.wiring.state.keys.of_session("s1", "notices")
    wait_until(lambda: pump.wiring.state.redis.exists(notices), "the late write left a notice")
    shown = json.loads(pump.finish(pump.submit("s1", script(final="$seen"))).text)
    assert ["succeeded after all" in m["text"] for m in shown if m["text"].startswith("[Notice")] == [True]
    (row,) = pump.wiring.store.calls.of_turn(handle.turn_id)
    assert (row.outcome_kind, row.late) == ("success", True)


def test_p7_an_abandoned_call_keeps_its_lane_until_it_ends(pumps: Pumps) -> None:
    pump = pumps(lease_s=5.0)
    first = pump.submit("s1", script([("hasty_write", {"name": "x", "gate": "lane"})], [("write", {"name": "y"})]))
    wait_until(lambda: pump.drain() and notes("start"), "the first write started")
    assert pump.wiring.state.calls.trace("s1", first.turn_id)[0].status == TraceStatus.TIMED_OUT
    leases: set[float | None] = set()

    def is_renewed() -> bool:
        pump.sweep()
        pump.drain()
        client: Any = pump.wiring.state.redis
        leases.add(client.zscore(pump.wiring.state.keys.lane_leases, ref(first).holder))
        return len(leases) > 5

    wait_until(is_renewed, "its process beats for the lane")
    assert None not in leases
    assert pump.wiring.state.calls.trace("s1", first.turn_id)[1].status == TraceStatus.WAITING
    assert len(notes("start")) == 1
    open_gate("lane")
    pump.finish(first)
    assert [row["name"] for row in notes("start")] == ["x", "y"]
    assert notes("stop", name="x")[0]["at"] < notes("start", name="y")[0]["at"]


def test_p7_a_thawed_attempt_does_not_free_the_lane_of_the_next_one(pumps: Pumps) -> None:
    pump, frozen = pumps(), pumps(owner="frozen")
    handle, _ = to_call(pump, "idem")
    claimed = frozen.wiring.state.calls.claim(ref(handle), 1, "frozen")
    assert isinstance(claimed, CallClaim)
    start_intent(pump, handle, owner="frozen")
    lapse(pump, handle)
    assert status(pump, handle) == "dispatched"
    other = pump.submit("s2", script([("idem", {"name": "x"})]))
    tool = pump.wiring.brains.default.tools.get("idem")
    assert tool is not None
    runner: Any = frozen.wiring.runner
    context = runner._context(claimed, tool, DeadlineToken(5), "brain", runs_alone=False)
    thawed = ClaimedCall(claimed, tool, frozen.wiring.brains.default, context)
    settler: CallSettler = runner._settler
    ended = runner.executor.run(tool, claimed.arguments, context, on_cut=stand_in(None))
    assert settler.settle(thawed, ended) == "lost"
    (holder,) = pump.wiring.state.calls.lane_queue("session:s1")
    assert holder == ref(handle)
    pump.finish(handle)
    pump.finish(other)


def test_p7_a_dead_workers_lane_is_freed(pump: Pump) -> None:
    handle, _ = to_call(pump, "write")
    pump.wiring.state.calls.claim(ref(handle), 1, "dead")
    start_intent(pump, handle)
    lapse(pump, handle)
    pump.finish(handle)
    assert pump.wiring.state.calls.lane_queue("session:s1") == []
    assert pump.finish(pump.submit("s1", script([("write", {"name": "y"})]))).ending is Ending.COMPLETED
