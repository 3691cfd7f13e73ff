"""Finalizer steps that were taken without a doorbell are seen as tasks all the same, each with its own end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from brainq.adapters.celery import names
from brainq.adapters.celery.app import make_app
from brainq.workers.tasks.register import coordinator_tasks, finalizer_tasks
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
