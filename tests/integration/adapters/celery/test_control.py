"""Remote control: workers answer what Flower asks, and obey nothing."""

from __future__ import annotations

from typing import Any, cast

from celery.worker.control import Panel
from flower.inspector import Inspector

from brainq.adapters.celery.app import make_app
from brainq.adapters.celery.celery57.consumer import ANSWERED
from brainq.adapters.celery.names import COORDINATOR_QUEUES, READ_ONLY_QUEUE, TURNS_QUEUE
from tests.integration.adapters.celery.worker import running, settings_for
from tests.support.wait import wait_until

COMMANDS: dict[str, dict[str, Any]] = {
    "shutdown": {},
    "pool_restart": {},
    "pool_shrink": {"n": 1},
    "revoke": {"task_id": "t1", "terminate": True},
    "add_consumer": {"queue": READ_ONLY_QUEUE},
    "cancel_consumer": {"queue": TURNS_QUEUE},
    "rate_limit": {"task_name": "brainq.turn.advance", "rate_limit": "1/h"},
}


def test_a_worker_answers_and_obeys_nothing(redis_url: str) -> None:
    app: Any = make_app(settings_for(redis_url), COORDINATOR_QUEUES)
    with running(app) as worker:
        asked = app.control.inspect(timeout=5.0, limit=1)
        wait_until(asked.ping, "it hears what it is asked")
        for question in Inspector.inspect_methods:
            answer = getattr(asked, question)()
            assert answer, question
            assert "error" not in next(iter(answer.values())), question
        for command, arguments in COMMANDS.items():
            (answer,) = app.control.broadcast(command, arguments=arguments, reply=True, timeout=5.0, limit=1)
            assert "error" in next(iter(answer.values())), command
        queues = [queue.name for queue in worker.consumer.task_consumer.queues]
        assert queues == list(COORDINATOR_QUEUES)
        assert app.control.inspect(timeout=5.0, limit=1).ping()


def test_what_is_answered_is_known_to_celery() -> None:
    assert set(cast("dict[str, object]", Panel.data)) > ANSWERED
