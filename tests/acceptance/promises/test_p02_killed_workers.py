"""P2 and P3: workers are killed in the middle of their work; the turn ends right, and no write runs twice."""

from __future__ import annotations

import json
import sqlite3
import time
from typing import Any

from brainq.contracts.event import EventKind
from brainq.contracts.status import Ending, TraceStatus
from brainq.contracts.turn import LimitsOverride
from tests.support.brains.diary import notes, open_gate, order
from tests.support.brains.obedient import script
from tests.support.wait import wait_until
from tests.support.world import World


def started(turn_id: str, **facts: Any) -> dict[str, Any]:
    """The diary's line of a tool that began."""
    return wait_until(lambda: notes("start", turn=turn_id, **facts), "the tool started")[-1]


def test_a_coordinator_dies_during_a_model_call(stormy: World, sid: str) -> None:
    handle = stormy.client.submit(sid, script([("write", {"name": "w"})], final="in spite of it", gate=f"m-{sid}"))
    first = wait_until(lambda: notes("thinking", turn=handle.turn_id), "the model was asked")[0]
    stormy.kill_the("coordinator", first["pid"])
    open_gate(f"m-{sid}")
    result = handle.result(timeout_s=60)
    assert (result.text, result.steps) == ("in spite of it", 2)
    assert [(row["step"], row["attempt"]) for row in notes("thinking", turn=handle.turn_id)] == [(1, 1), (1, 2), (2, 1)]
    events = stormy.all_events(handle)
    assert [e.data["attempt"] for e in events if e.kind is EventKind.STEP_STARTED] == [1, 2, 1]
    assert len(notes("start", turn=handle.turn_id)) == 1


def test_a_parallel_worker_dies_during_a_read(stormy: World, sid: str) -> None:
    calls = [("read", {"name": "a", "gate": f"r-{sid}"}), ("read", {"name": "b"})]
    handle = stormy.client.submit(sid, script(calls, final="$seen"))
    begun = started(handle.turn_id, name="a")
    wait_until(lambda: notes("stop", turn=handle.turn_id, name="b"), "the other read ended")
    stormy.kill_the("parallel", begun["pid"])
    open_gate(f"r-{sid}")
    shown = json.loads(handle.result(timeout_s=60).text)
    assert [m["text"] for m in shown if m["role"] == "tool"] == ["read a ok", "read b ok"]
    assert [row["attempt"] for row in notes("start", turn=handle.turn_id, name="a")] == [1, 2]
    stormy.all_events(handle)


def test_p3_a_write_whose_worker_dies_is_unknown_and_never_runs_again(stormy: World, sid: str) -> None:
    handle = stormy.client.submit(sid, script([("write", {"name": "w", "gate": f"w-{sid}"})], final="$seen"))
    behind = stormy.client.submit(f"{sid}-other", script([("write", {"name": "v"})], final="other"))
    begun = started(handle.turn_id)
    stormy.kill_the("serial", begun["pid"])
    open_gate(f"w-{sid}")
    result = handle.result(timeout_s=60)
    assert stormy.status(handle) == TraceStatus.UNKNOWN
    (told,) = [m for m in json.loads(result.text) if m["role"] == "tool"]
    assert "may or may not have taken effect" in told["text"]
    assert behind.result(timeout_s=60).text == "other"
    assert len(notes("start", turn=handle.turn_id)) == 1
    assert not notes("stop", turn=handle.turn_id)
    # The lane is free again: the session's next write runs.
    assert (
        stormy.client.submit(sid, script([("write", {"name": "x"})], final="next")).result(timeout_s=60).text == "next"
    )


def test_p3_a_worker_that_dies_before_its_intent_leaves_a_call_that_runs_once(stormy: World, sid: str) -> None:
    handle = stormy.client.submit(sid, script([("write", {"name": "w"})], gate=f"m-{sid}"))
    wait_until(lambda: notes("thinking", turn=handle.turn_id), "the model was asked")
    lock = sqlite3.connect(stormy.sql_url.removeprefix("sqlite:///"), timeout=30, isolation_level=None)
    try:
        lock.execute("BEGIN IMMEDIATE")  # the worker claims the call, and then waits for SQL to take its intent
        open_gate(f"m-{sid}")
        wait_until(lambda: stormy.status(handle) == "running", "the call was claimed")
        stormy.kill_the("serial", stormy.owner_pid(handle))
    finally:
        lock.execute("ROLLBACK")
        lock.close()
    assert handle.result(timeout_s=60).text == "done"
    assert [row["attempt"] for row in notes("start", turn=handle.turn_id)] == [2]
    assert [(r.attempt, r.state) for r in stormy.wiring.store.calls.of_turn(handle.turn_id)] == [
        (1, "void"),
        (2, "done"),
    ]


def test_p3_an_idempotent_write_runs_again_with_its_key(stormy: World, sid: str) -> None:
    handle = stormy.client.submit(sid, script([("idem", {"name": "w", "gate": f"i-{sid}"})]))
    begun = started(handle.turn_id)
    stormy.kill_the("serial", begun["pid"])
    open_gate(f"i-{sid}")
    assert handle.result(timeout_s=60).ending is Ending.COMPLETED
    rows = notes("start", turn=handle.turn_id)
    assert [row["attempt"] for row in rows] == [1, 2]
    assert {row["key"] for row in rows} == {f"{handle.turn_id}:c1-0"}
    assert stormy.status(handle) == TraceStatus.COMPLETED


def test_p3_an_outcome_that_sql_has_survives_its_worker(stormy: World, sid: str) -> None:
    handle = stormy.client.submit(sid, script([("write", {"name": "w"})], final="$seen", gate=f"m-{sid}"))
    order(f"post.gate.{handle.turn_id}", f"p-{sid}")  # held between its record in SQL and its end in Redis
    open_gate(f"m-{sid}")
    begun = wait_until(lambda: notes("post", turn=handle.turn_id), "the call was recorded")[0]
    stormy.kill_the("serial", begun["pid"])
    open_gate(f"p-{sid}")  # the next worker of the turn calls the hook again
    (told,) = [m for m in json.loads(handle.result(timeout_s=60).text) if m["role"] == "tool"]
    assert told["text"] == "write w ok"
    assert stormy.status(handle) == TraceStatus.COMPLETED
    assert len(notes("start", turn=handle.turn_id)) == 1


def test_the_deadline_passes_while_the_tool_pools_are_dead(stormy: World, sid: str) -> None:
    limits = LimitsOverride(timeout_s=5)
    handle = stormy.client.submit(sid, script([("write", {"name": "w", "gate": f"never-{sid}"})]))
    begun = started(handle.turn_id)
    assert begun["tool"] == "write"
    stormy.kill_all("serial", "parallel")
    queued = stormy.client.submit(f"{sid}-b", script([("read", {"name": "r"})]), limits=limits)
    before = time.monotonic()
    for turn in (handle, queued):
        result = turn.result(timeout_s=60)
        assert turn is handle or result.ending is Ending.TIMED_OUT
        stormy.all_events(turn)
    assert time.monotonic() - before < 5 + 30
    assert not notes("start", turn=queued.turn_id)


def test_all_pools_die_and_come_back(stormy: World, sid: str) -> None:
    busy = stormy.client.submit(sid, script([("read", {"name": "r", "gate": f"g-{sid}"})], [("write", {"name": "w"})]))
    assert started(busy.turn_id)["name"] == "r"
    stormy.kill_all("parallel", "coordinator", "serial", "finalizer")
    fresh = stormy.client.submit(f"{sid}-b", script([("write", {"name": "v"})], final="fresh"))
    open_gate(f"g-{sid}")
    stormy.launch_dead()
    assert busy.result(timeout_s=60).text == "done"
    assert fresh.result(timeout_s=60).text == "fresh"
    for turn in (busy, fresh):
        stormy.all_events(turn)
        stormy.done(turn)
    assert len(notes("start", turn=busy.turn_id, name="w")) == 1
    assert len(notes("start", turn=fresh.turn_id)) == 1
