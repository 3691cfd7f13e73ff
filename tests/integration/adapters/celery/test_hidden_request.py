"""The arguments of brainq.turn.submit are seen by the task and by nobody else."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from brainq.adapters.celery.app import make_app
from brainq.adapters.celery.names import COORDINATOR_QUEUES, TURN_SUBMIT
from tests.integration.adapters.celery.worker import running, settings_for, watching
from tests.support.wait import wait_until

CANARY = "canary-5b0c"


@pytest.mark.parametrize("fails", [False, True])
def test_a_canary_shows_up_in_no_event_log_or_inspection(
    redis_url: str, caplog: pytest.LogCaptureFixture, fails: bool
) -> None:
    app = make_app(settings_for(redis_url), COORDINATOR_QUEUES)
    started, go_on = threading.Event(), threading.Event()
    given: list[dict[str, Any]] = []

    def submit(*args: Any, **fields: Any) -> None:
        given.append({**fields, "args": args})
        started.set()
        assert go_on.wait(60)
        if fails:
            raise ValueError("refused")

    app.task(submit, name=TURN_SUBMIT, Request="brainq.adapters.celery.celery57.consumer:HiddenRequest")
    with running(app, concurrency=1, loglevel="DEBUG"), watching(app) as events:
        for task_id in ("t1", "t2"):
            # A foreign producer knows nothing of argsrepr and sends the texts of its arguments along.
            app.send_task(
                TURN_SUBMIT,
                (CANARY,),
                {"text": CANARY},
                task_id=task_id,
                argsrepr=repr((CANARY,)),
                kwargsrepr=repr({"text": CANARY}),
            )
        assert started.wait(60)
        inspect = app.control.inspect(timeout=0.5)
        active = wait_until(inspect.active, "the worker reports its active tasks")
        seen = [active, inspect.reserved(), inspect.query_task("t1", "t2")]
        go_on.set()
        wait_until(lambda: {"task-succeeded", "task-failed"} & events.keys(), "the task's last event arrives")
    assert given[0] == {"args": (CANARY,), "text": CANARY}
    assert "t1" in str(seen)
    assert events["task-received"]["args"] == "(hidden)"
    assert CANARY not in str(seen)
    assert CANARY not in str(events)
    assert "t1" in caplog.text
    assert CANARY not in caplog.text
