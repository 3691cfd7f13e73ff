"""What a worker does about its readiness at each look: decided from what is found, and done again until it is so."""

from __future__ import annotations

import os
import threading
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from brainq.adapters.celery import worker_health
from brainq.adapters.celery.worker_health import PoolNeeds, WorkerHealth, WorkerState, due_actions
from brainq.errors import Unreachable
from tests.support.wait import wait_until

WORKS = WorkerState(consumes=True, is_marked=True)
SOME = frozenset({"coordinator", "serial"})


@pytest.mark.parametrize(
    ("state", "actions"),
    [
        (WORKS, ()),
        (WorkerState(consumes=True, is_marked=False), ("mark",)),
        (WorkerState(consumes=False, is_marked=False), ("consume",)),
        (WorkerState(consumes=False, is_marked=True), ("consume", "unmark")),
        (WorkerState(lacks="SQL", consumes=True, is_marked=True), ("pause", "unmark")),
        (WorkerState(lacks="SQL", consumes=False, is_marked=False), ()),
        (WorkerState(gap="SQL", consumes=True, is_marked=True), ("unmark",)),
        (WorkerState(gap="SQL", consumes=True, is_marked=False), ()),
        (WorkerState(consumes=True, is_marked=None), ()),
        (WorkerState(lacks="SQL", consumes=True, is_marked=None), ("pause",)),
        (WorkerState(consumes=True, is_marked=True, idle=SOME), ("consume", "unmark")),
        (WorkerState(consumes=True, is_marked=False, idle=SOME, paused=SOME), ()),
        (WorkerState(consumes=True, is_marked=False, paused=SOME), ("consume",)),
        (WorkerState(consumes=False, is_marked=False, idle=SOME), ("consume",)),
        (WorkerState(lacks="Redis", consumes=True, is_marked=False, idle=SOME, paused=SOME), ("pause",)),
        (WorkerState(is_draining=True, consumes=True, is_marked=True), ("unmark",)),
        (WorkerState(is_draining=True, consumes=True, is_marked=False), ()),
    ],
)
def test_what_is_due(state: WorkerState, actions: tuple[str, ...]) -> None:
    assert due_actions(state) == actions


def test_from_every_state_the_worker_gets_where_it_should_be() -> None:
    for lacks, gap, (consumes, marked, draining) in product(("", "x"), ("", "x"), product((True, False), repeat=3)):
        state = WorkerState(lacks, gap, consumes, marked, draining)
        for _ in range(3):
            for action in due_actions(state):
                consumes = {"consume": True, "pause": False}.get(action, consumes)
                marked = {"mark": True, "unmark": False}.get(action, marked)
            state = WorkerState(lacks, gap, consumes, marked, draining)
        assert due_actions(state) == ()
        assert marked == (not (lacks or gap or draining))
        assert draining or consumes == (not lacks)


class Consumer:
    """One that does at once what it is to do."""

    def __init__(self) -> None:
        self.consumes = True
        self.paused_pools: frozenset[str] = frozenset()

    def consume_if(self, may_consume: bool, idle: frozenset[str]) -> None:
        self.consumes = may_consume
        self.paused_pools = idle if may_consume else frozenset()


def ignore(may_consume: bool, idle: frozenset[str]) -> None: ...


class Service:
    def __init__(self) -> None:
        self.is_away = False

    def look(self) -> None:
        if self.is_away:
            raise Unreachable("it is away")


@pytest.fixture
def ready(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The ready file, in a directory that is not there: nobody can write it."""
    path = tmp_path / "run" / "ready"
    monkeypatch.setenv("BRAINQ_READY_FILE", str(path))
    return path


def watched(service: Any, **more: Any) -> tuple[Any, Consumer]:
    health: Any = WorkerHealth(bool, {"SQL": service.look}, **more)
    consumer = Consumer()
    health.follow(consumer)
    return health, consumer


def looked(health: Any) -> None:
    for looks in (health._needs, health._some, health._wants):
        looks.run()
    for _ in range(2):  # the second finds what the first has done
        health.compare()


def test_a_worker_whose_ready_file_cannot_be_written_consumes_and_writes_it_when_it_can(ready: Path) -> None:
    service = Service()
    health, consumer = watched(service)
    service.is_away = True
    looked(health)
    assert not consumer.consumes
    service.is_away = False
    looked(health)
    assert (consumer.consumes, ready.exists()) == (True, False)
    ready.parent.mkdir()
    looked(health)
    assert ready.read_text() == str(os.getpid())


def test_a_ready_file_that_somebody_took_away_is_written_again(ready: Path) -> None:
    ready.parent.mkdir()
    health, _ = watched(Service())
    looked(health)
    ready.unlink()
    looked(health)
    assert ready.exists()


def test_a_worker_that_does_not_consume_is_not_ready(ready: Path) -> None:
    ready.parent.mkdir()
    health, consumer = watched(Service())
    looked(health)
    consumer.consume_if = ignore  # its loop does not come to it
    consumer.consumes = False
    looked(health)
    assert not ready.exists()


def test_without_what_it_only_wants_it_is_not_ready_and_consumes(
    ready: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ready.parent.mkdir()
    service = Service()
    health, consumer = watched(Service(), wants={"SQL": service.look})
    health.compare()
    assert not ready.exists(), "nothing was looked at yet"
    looked(health)
    assert ready.exists()
    service.is_away = True
    looked(health)
    assert (consumer.consumes, ready.exists()) == (True, False)
    assert caplog.text == "", "it may close by itself"
    monkeypatch.setattr(worker_health, "GAP_REPORT_S", -1.0)
    looked(health)
    assert caplog.text.count("consumes messages but is not ready why=it is away") == 1
    service.is_away = False
    looked(health)
    assert caplog.text.count("is ready again") == 1


def test_a_ready_file_that_cannot_be_removed_leaves_out_nothing_of_the_stop_and_is_removed_later(
    ready: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready.parent.mkdir()
    health, _ = watched(Service())
    looked(health)

    def refuse() -> None:
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as broken:
        broken.setattr(worker_health, "mark_unready", refuse)
        health.drain()
        looked(health)
    assert (health.is_draining, ready.exists()) == (True, True)
    looked(health)
    assert not ready.exists()


def test_it_can_work_again_once_it_consumes(caplog: pytest.LogCaptureFixture) -> None:
    service = Service()
    health, consumer = watched(service, wants={"more": bool})
    service.is_away = True
    looked(health)
    assert "cannot work, so it consumes no messages for now why=it is away" in caplog.text
    service.is_away, consumer.consumes = False, False
    health._needs.run()
    consumer.consume_if = ignore  # it is not connected yet
    health.compare()
    assert "can work again" not in caplog.text
    consumer.consumes = True
    health.compare()
    assert caplog.text.count("this worker can work again and consumes messages") == 1


def test_a_look_that_lasts_too_long_is_an_answer(ready: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ready.parent.mkdir()
    monkeypatch.setattr(worker_health, "LOOK_LIMIT_S", 0.0)
    answers, stopping = threading.Event(), threading.Event()
    health, consumer = watched(SimpleNamespace(look=answers.wait))
    looking = threading.Thread(target=health.look, args=(stopping,))
    looking.start()
    try:
        wait_until(lambda: "SQL has not answered" in health._needs.wrong, "the look is under way")
        health.compare()
        assert not consumer.consumes
    finally:
        stopping.set()
        answers.set()
        looking.join(60)
    looked(health)
    assert (consumer.consumes, ready.exists()) == (True, True)


def test_while_something_is_missing_a_change_is_a_reason_to_look() -> None:
    service = Service()
    health, _ = watched(service)
    health.note_change()
    assert not health._doubted.is_set()
    service.is_away = True
    looked(health)
    health.note_change()
    assert health._doubted.is_set()


def test_a_process_short_of_something_waits_with_its_start_and_any_other_fault_ends_it() -> None:
    failures: list[Exception] = [OSError(24, "Too many open files"), MemoryError()]

    def prepare() -> None:
        if failures:
            raise failures.pop()

    health = WorkerHealth(prepare, {})
    health.wait_fit(lambda: None)
    assert failures == []
    failures.append(KeyError("a bug"))
    with pytest.raises(KeyError):
        health.wait_fit(lambda: None)


def test_what_only_some_pools_need_pauses_those_and_the_worker_is_not_ready(ready: Path) -> None:
    ready.parent.mkdir()
    service = Service()
    health: Any = WorkerHealth(bool, {}, some=PoolNeeds(SOME, {"SQL": service.look}))
    consumer = Consumer()
    health.follow(consumer)
    looked(health)
    assert ready.exists()
    service.is_away = True
    looked(health)
    assert (consumer.consumes, consumer.paused_pools, ready.exists()) == (True, SOME, False)
    assert [health.lacks_of(pool) for pool in ("serial", "parallel")] == ["it is away", ""]
    service.is_away = False
    looked(health)
    assert (consumer.consumes, consumer.paused_pools, ready.exists()) == (True, frozenset(), True)


def test_a_worker_begins_once_each_of_its_pools_can_work() -> None:
    service, gave_up = Service(), threading.Event()
    health = WorkerHealth(bool, {}, some=PoolNeeds(SOME, {"SQL": service.look}))
    service.is_away = True

    def mend() -> None:
        gave_up.set()
        service.is_away = False

    health.wait_fit(mend)
    assert gave_up.is_set()
