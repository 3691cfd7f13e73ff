"""Celery's worker options: each is accepted or refused on purpose, and a refusal names what to do instead."""

from __future__ import annotations

from typing import Any

import pytest
from celery.bin.worker import worker
from celery.concurrency import prefork, solo, thread

from brainq.adapters.celery import names
from brainq.adapters.celery.app import make_app
from brainq.adapters.celery.celery57.thread_pool import TaskPool
from brainq.adapters.celery.celery57.worker import POOLS
from brainq.adapters.celery.worker_health import SETUP_EXIT
from brainq.adapters.celery.worker_options import ACCEPTED, REFUSED, find_refusals
from brainq.runtime.settings.deployment import load_settings

OWN = names.PARALLEL_QUEUES


def test_every_option_of_celerys_is_in_one_of_the_lists() -> None:
    known: set[str] = {str(each.name) for each in worker.params}
    assert known <= ACCEPTED | REFUSED.keys()
    assert ACCEPTED & REFUSED.keys() == set()
    assert REFUSED.keys() <= known
    assert all(" is not supported: " in option.message and "; " in option.message for option in REFUSED.values())


@pytest.mark.parametrize(
    ("name", "value", "is_refused"),
    [
        ("autoscale", (4, 1), True),
        ("beat", True, True),
        ("beat", False, False),
        ("scheduler", "x", True),
        ("queues", [names.TURNS_QUEUE], True),
        ("queues", [*OWN, names.TURNS_QUEUE], True),
        ("queues", ["no.such"], True),
        ("queues", [OWN[0]], False),
        ("exclude_queues", [*OWN], True),
        ("exclude_queues", [names.TURNS_QUEUE], False),
        ("include", ["my.tasks"], True),
        ("max_tasks_per_child", 100, True),
        ("max_memory_per_child", 100_000, True),
        ("time_limit", 30.0, True),
        ("soft_time_limit", 30.0, True),
        ("prefetch_multiplier", 1, False),
        ("prefetch_multiplier", 4, True),
        ("disable_prefetch", True, True),
        ("disable_prefetch", False, False),
        ("purge", True, True),
        ("statedb", "/tmp/state", True),
        ("pool_start_method", "spawn", True),
        ("pool_start_method", "fork", False),
        ("concurrency", "auto", True),
        ("concurrency", 8, False),
        ("pool", TaskPool, False),
        ("pool", thread.TaskPool, False),
        ("pool", prefork.TaskPool, True),
        ("pool", solo.TaskPool, True),
        ("optimization", "fair", False),
        ("without_gossip", True, False),
        ("without_mingle", True, False),
        ("without_heartbeat", True, False),
    ],
)
def test_what_is_refused(name: str, value: object, is_refused: bool) -> None:
    found = find_refusals({name: value}, OWN, POOLS)
    assert found == ([REFUSED[name].message] if is_refused else [])


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        ({"concurrency": 8}, "-c is not supported: each pool of this worker has threads of its own"),
        ({"concurrency": "auto"}, "-c auto is not supported"),
        ({"concurrency": None}, ""),
        ({"queues": [names.TURNS_QUEUE, names.READ_ONLY_QUEUE]}, ""),
        ({"queues": [names.TURNS_QUEUE]}, "-Q, --queues is not supported"),
        ({"queues": list(names.SERIAL_QUEUES)}, "-Q, --queues is not supported"),
        ({"exclude_queues": [names.TURNS_QUEUE]}, "-X, --exclude-queues is not supported"),
    ],
)
def test_what_is_refused_of_several_pools(options: dict[str, Any], refused: str) -> None:
    found = find_refusals(options, (*names.COORDINATOR_QUEUES, *names.PARALLEL_QUEUES), POOLS)
    assert [each.startswith(refused) for each in found] == [True] * bool(refused)


def test_one_queue_of_a_pool_may_be_left_out() -> None:
    assert find_refusals({"exclude_queues": [names.NETWORK_QUEUE]}, names.SERIAL_QUEUES, POOLS) == []


def test_all_that_is_wrong_is_named_at_once() -> None:
    assert len(find_refusals({"autoscale": (4, 1), "purge": True}, OWN, POOLS)) == 2


@pytest.mark.parametrize("options", [{"autoscale": (4, 1)}, {"queues": [names.TURNS_QUEUE]}])
def test_a_worker_with_such_an_option_ends_before_it_consumes(
    options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    app: Any = make_app(load_settings(redis_url="redis://127.0.0.1:1/0"), OWN)
    with pytest.raises(SystemExit) as ended:
        app.Worker(**options)
    assert ended.value.code == SETUP_EXIT
    assert REFUSED[next(iter(options))].remedy in caplog.text


def test_prefetching_that_the_environment_switched_off_is_refused_too(caplog: pytest.LogCaptureFixture) -> None:
    app: Any = make_app(load_settings(redis_url="redis://127.0.0.1:1/0"), OWN)
    app.conf.worker_disable_prefetch = True
    with pytest.raises(SystemExit):
        app.Worker()
    assert "--disable-prefetch is not supported" in caplog.text
