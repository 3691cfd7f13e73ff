"""What monitors call the tasks of finalizer steps and judges."""

from __future__ import annotations

import json
from typing import Any

import pytest

from brainq.broker import names
from brainq.broker.celery57.transport import check_item
from brainq.broker.envelope import envelope


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
