"""Which lists workers read, and in which order."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery

from brainq.adapters.celery import names
from brainq.adapters.celery.celery57.consumer import HIDDEN, HiddenRequest
from brainq.adapters.celery.celery57.transport import check_item
from brainq.adapters.celery.envelope import envelope
from brainq.adapters.celery.names import COORDINATOR_QUEUES, FINALIZE_QUEUE, JUDGES_QUEUE, TURNS_QUEUE, read_order


def test_every_priority_of_celerys_is_read_where_foreign_producers_send() -> None:
    assert read_order(COORDINATOR_QUEUES) == [
        TURNS_QUEUE,
        *(f"{TURNS_QUEUE}\x06\x16{priority}" for priority in range(1, 10)),
    ]


def test_a_queues_later_list_is_read_behind_every_queues_first() -> None:
    assert read_order([JUDGES_QUEUE, FINALIZE_QUEUE]) == [
        JUDGES_QUEUE,
        FINALIZE_QUEUE,
        f"{JUDGES_QUEUE}\x06\x166",
        f"{FINALIZE_QUEUE}\x06\x166",
    ]


# What monitors call the tasks of finalizer steps and judges.


def shown(task: str, args: list[Any] | str, shadow: object = None) -> object:
    queue = names.FINALIZE_QUEUE
    message = json.loads(envelope(task, ("s1", "t1", "log"), "t1.x", queue, "t1"))
    message["headers"]["shadow"] = shadow
    message["body"] = args if isinstance(args, str) else json.dumps([args, {}, {}])
    return check_item(json.dumps(message), queue)["headers"]["shadow"]


@pytest.mark.parametrize(
    ("task", "name", "told"),
    [
        (names.FINALIZE_STEP, "memory", "brainq.finalize.step:memory"),
        (names.JUDGE_RUN, "relevance", "brainq.judge.run:relevance"),
        (names.FINALIZE_STEP, "a label {of} anything", None),
        (names.FINALIZE_STEP, "x" * 65, None),
        (names.JUDGE_RUN, 7, None),
        (names.TURN_ADVANCE, "memory", None),
    ],
)
def test_a_step_and_a_judgement_are_shown_by_what_they_run(task: str, name: object, told: object) -> None:
    assert shown(task, ["s1", "t1", name], "another.name") == told


@pytest.mark.parametrize("body", ["no json", "[]", "7", "[[]]", "[" * 100_000])
def test_arguments_that_are_none_are_shown_by_the_task_alone(body: str) -> None:
    assert shown(names.FINALIZE_STEP, body) is None


# HiddenRequest against the request Celery would make.


def work(text: str) -> None: ...


def test_neither_report_nor_repr_shows_the_arguments() -> None:
    app = Celery("t", set_as_current=False)
    task = app.task(work, name="t", shared=False)
    headers = {"task": "t", "id": "i", "argsrepr": "secret", "kwargsrepr": "secret"}
    body = [[], {"text": "secret"}, {}]
    message = SimpleNamespace(
        headers=headers, body="x", payload=body, delivery_info={}, properties={}, content_type="", content_encoding=""
    )
    request: Any = HiddenRequest(message, app=app, task=task)
    for safe in (True, False):
        info = request.info(safe=safe)
        assert "secret" not in str({**info, "delivery_info": None})
        assert info["args"] == info["kwargs"] == HIDDEN
    assert "secret" not in repr(request)
    assert request.kwargs == {"text": "secret"}
