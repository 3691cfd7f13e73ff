"""Work that was taken without a doorbell is seen as tasks all the same, each with its own end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from brainq.adapters.celery import names
from brainq.adapters.celery.app import make_app
from brainq.workers.tasks.register import call_tasks, coordinator_tasks, finalizer_tasks
from tests.integration.adapters.celery.worker import Events, running, watching
from tests.support.brains.diary import order
from tests.support.brains.obedient import script
from tests.support.pump import Pump
from tests.support.wait import wait_until

CHAIN = ("citations", "usage", "log", "result", "decision", "extra", "end")


def test_each_step_of_a_visit_is_a_task_that_began_and_ended(pumps: Callable[..., Pump]) -> None:
    # No sweeper takes a step for lost that is only slow.
    pump = pumps(task_events=True, lease_s=60.0, rering_s=60.0)
    app = make_app(pump.settings, names.ALL_QUEUES)
    coordinator_tasks(app, lambda: pump.wiring)
    finalizer_tasks(app, lambda: pump.wiring)
    app.finalize()
    order("extra.raise", "1")
    with running(app, concurrency=None), watching(app) as events:
        handle = pump.submit("s1", script())
        assert handle.result(20).text == "done"
        wait_until(lambda: len(ends(events, handle.turn_id)) == len(CHAIN) + 1, "every step has ended")
        wait_until(lambda: _is_over(handle), "all is over")
    seen = ends(events, handle.turn_id)
    assert seen.keys() == {*CHAIN, "extra.job"}
    assert {step for step, kind in seen.items() if kind == "task-failed"} == {"extra"}
    for kind in ("task-received", "task-started"):
        assert {step_of(event) for event in told(events, handle.turn_id, kind)} == seen.keys()
    received = told(events, handle.turn_id, "task-received")
    assert {(event["name"], event["root_id"]) for event in received} == {
        (f"brainq.finalize.step:{step}", handle.turn_id) for step in CHAIN
    }
    assert {event["args"] for event in received} == {f"(s1, {handle.turn_id}, {step})" for step in CHAIN}


def test_a_call_and_a_step_that_a_thread_continues_with_are_tasks(pumps: Callable[..., Pump]) -> None:
    threads = {"coordinator": 4, "parallel": 4, "serial": 1, "finalizer": 4}
    pump = pumps(task_events=True, lease_s=60.0, rering_s=60.0, threads=threads)
    app = make_app(pump.settings, names.ALL_QUEUES)
    for register in (coordinator_tasks, call_tasks, finalizer_tasks):
        register(app, lambda: pump.wiring)
    app.finalize()
    with running(app, concurrency=None), watching(app) as events:
        handle = pump.submit("s1", script([("read", {"name": "a"})], [("read", {"name": "b", "fail": True})]))
        assert handle.result(20).ending == "completed"
        wait_until(lambda: _is_over(handle), "all is over")
        wait_until(lambda: len(ends(events, handle.turn_id)) >= len(CHAIN), "every step has ended")
    turn = handle.turn_id
    assert _is_continued(pump, handle, "c1-0"), "a thread continued with the call"
    for uuid, name, args, end in (
        (f"{turn}.c1-0.1", "brainq.call.run:read", f"(s1, {turn}, c1-0, 1)", "task-succeeded"),
        (f"{turn}.c2-0.1", "brainq.call.run:read", f"(s1, {turn}, c2-0, 1)", "task-failed"),
        (f"{turn}.advance.1", "brainq.turn.advance", f"(s1, {turn}, 1)", "task-succeeded"),
        (f"{turn}.final.citations.0", "brainq.finalize.step:citations", f"(s1, {turn}, citations)", "task-succeeded"),
    ):
        seen = [event for event in list(events.all) if event.get("uuid") == uuid]
        assert [event["type"] for event in seen] == ["task-received", "task-started", end]
        assert (seen[0]["name"], seen[0]["args"], seen[0]["root_id"]) == (name, args, turn)


def _is_continued(pump: Pump, handle: Any, call: str) -> bool:
    state: Any = pump.wiring.state
    owner = state.redis.hget(state.keys.turn(handle.session_id, handle.turn_id) + ":trace", f"{call}:owner")
    return owner.startswith("v")


def told(events: Events, turn_id: str, *kinds: str) -> list[dict[str, Any]]:
    """What was said of the turn's finalizer steps."""
    return [
        event for event in list(events.all) if event["type"] in kinds and event["uuid"].startswith(f"{turn_id}.final.")
    ]


def step_of(event: dict[str, Any]) -> str:
    _, _, step, bell = event["uuid"].split(".")
    return f"{step}.job" if bell == "job" else step


def ends(events: Events, turn_id: str) -> dict[str, str]:
    found = told(events, turn_id, "task-succeeded", "task-failed")
    assert len({event["uuid"] for event in found}) == len(found), "a task ended twice"
    return {step_of(event): event["type"] for event in found}


def _is_over(handle: Any) -> bool:
    snapshot = handle.snapshot()
    return snapshot is not None and snapshot.awaits == "nobody"
