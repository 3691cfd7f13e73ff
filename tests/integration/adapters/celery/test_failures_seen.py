"""What failed is seen as failed by whoever watches Celery's tasks, without a word of content."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from brainq.adapters.celery import names
from brainq.adapters.celery.app import make_app
from brainq.client.handle import TurnHandle
from brainq.contracts.claim import CallRef
from brainq.workers.tasks.register import call_tasks, coordinator_tasks, finalizer_tasks
from tests.integration.adapters.celery.worker import Events, running, watching
from tests.support.brains.diary import notes, open_gate, order
from tests.support.brains.obedient import script
from tests.support.pump import Bell, Pump
from tests.support.wait import wait_until

CANARY = "canary9Lm1"


def test_failed_calls_turns_and_steps_are_failed_tasks_named_by_their_tools(
    pumps: Callable[..., Pump], caplog: pytest.LogCaptureFixture
) -> None:
    pump = pumps(cancel_grace_s=0.4, lease_s=60.0, task_events=True)
    app = make_app(pump.settings, names.ALL_QUEUES)
    for tasks in (coordinator_tasks, call_tasks, finalizer_tasks):
        tasks(app, lambda: pump.wiring)
    app.finalize()
    order("usage.raise", "1")
    order("secret", CANARY)
    # A call whose worker is lost: its bell was lost, the next one was taken, and nobody beats.
    lost = pump.submit("lost", script([("read", {"name": CANARY})], final=CANARY))
    pump.drain(names.TURNS_QUEUE)
    pump.take(names.READ_ONLY_QUEUE)

    def rung_again() -> Bell | None:
        pump.sweep()
        return pump.take(names.READ_ONLY_QUEUE)

    again = wait_until(rung_again, "it is rung for again")
    assert again is not None
    pump.wiring.state.calls.claim(CallRef("lost", lost.turn_id, "c1-0"), 1, "nobody")
    with running(app, concurrency=None, loglevel="INFO"), watching(app) as events:
        trace = pump.wiring.state.keys.turn("lost", lost.turn_id) + ":trace"
        pump.wiring.state.redis.hset(trace, "c1-0:lease", 0)
        calls = pump.submit(
            "calls",
            script(
                [("read", {"name": CANARY, "fail": True})],
                [("hasty_read", {"name": CANARY, "gate": "never"})],
                [("write", {"name": CANARY})],
                final=CANARY,
            ),
        )
        assert calls.result(60).ending == "completed"
        broken = pump.submit("broken", script(fail="server", final=CANARY))
        assert broken.result(60).ending == "failed"
        late = pump.submit("late", script(gate="never", final=CANARY), limits={"timeout_s": 1.0})
        assert late.result(60).ending == "timed_out"
        stopped = pump.submit("stopped", script([("write", {"name": CANARY, "gate": "stop"})]))
        wait_until(lambda: notes("start", turn=stopped.turn_id), "the write runs")
        stopped.cancel(CANARY)
        assert stopped.result(60).ending == "cancelled"
        refused = app.send_task(names.TURN_SUBMIT, kwargs={CANARY: CANARY, "turn_id": "order-17"})
        wait_until(lambda: refused.id in _failed(events), "the refused submit is seen")
        assert lost.result(60).ending == "completed"
        open_gate("stop")
        open_gate("never")
        for turn in (calls, broken, late, stopped, lost):
            wait_until(lambda turn=turn: _is_over(turn), "all is over")
        wait_until(lambda: {"advance", "end"} & _ends(events, late.turn_id), "the end of the late turn is seen")
        wait_until(lambda: f"{stopped.turn_id}.c1-0.1" in _failed(events), "the end of the write is seen")
        wait_until(lambda: f"{calls.turn_id}.c3-0.1" in _succeeded(events), "the last event arrives")
        reserved = len(pump.waiting())
    failed = _failed(events)
    shown = {
        task.removeprefix(calls.turn_id): (_names(events).get(task), text)
        for task, text in failed.items()
        if task.startswith(calls.turn_id) and ".c" in task
    }
    assert shown == {
        ".c1-0.1": ("brainq.call.run:read", "CallFailed('ValueError')"),
        ".c2-0.1": ("brainq.call.run:hasty_read", "CallTimedOut()"),
    }
    assert failed[f"{lost.turn_id}.c1-0.1"] == failed[again.task_id] == "CallLost()"
    assert failed[f"{stopped.turn_id}.c1-0.1"] == "CallUnknown()"
    assert "TurnFailed('model_error')" in [t for task, t in failed.items() if task.startswith(broken.turn_id)]
    assert "TurnTimedOut('deadline')" in [t for task, t in failed.items() if task.startswith(late.turn_id)]
    assert not [task for task in failed if task.startswith(f"{stopped.turn_id}.advance")]
    assert failed[refused.id] == "SubmitRejected('InvalidInput')"
    assert {text for task, text in failed.items() if ".final.usage." in task} == {"StepFailed('RuntimeError')"}
    assert reserved == 0  # nothing failed was put back
    assert not [event for event in events.all if event["type"] in ("task-retried", "task-rejected")]
    assert CANARY not in str(events.all)
    assert CANARY not in caplog.text
    assert "raised expected" in caplog.text


def _failed(events: Events) -> dict[str, str]:
    return {event["uuid"]: event["exception"] for event in list(events.all) if event["type"] == "task-failed"}


def _ends(events: Events, turn_id: str) -> set[str]:
    """Which tasks of the turn failed, by the word behind its id."""
    return {task.split(".")[1] for task in _failed(events) if task.startswith(turn_id)}


def _succeeded(events: Events) -> set[str]:
    return {event["uuid"] for event in list(events.all) if event["type"] == "task-succeeded"}


def _names(events: Events) -> dict[str, str]:
    return {event["uuid"]: event["name"] for event in list(events.all) if event["type"] == "task-received"}


def _is_over(handle: TurnHandle) -> bool:
    snapshot = handle.snapshot()
    return snapshot is not None and snapshot.awaits == "nobody"
