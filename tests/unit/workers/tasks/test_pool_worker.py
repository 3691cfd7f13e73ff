"""A pool's worker: what it needs, and its start and stop, of which each step is by itself."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from brainq.adapters.celery import names
from brainq.adapters.celery.app import make_app
from brainq.errors import SetupError
from brainq.runtime.settings.deployment import load_settings
from brainq.workers.tasks import pool_app
from brainq.workers.tasks.pool_app import PoolWorker, chosen_pools, queues_of, worker_name


def made(*pools: str) -> Any:
    app = make_app(load_settings(redis_url="redis://127.0.0.1:1/0"), queues_of(pools, ""))

    def no_wiring() -> Any:
        raise AssertionError("nothing is asked of Redis or SQL")

    return PoolWorker(pools, app, no_wiring)


def refuse(*_: object) -> None:
    raise RuntimeError("can't start new thread")


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(pool_app, "_collect_and_freeze", bool)
    return made("parallel")


def test_a_step_of_the_start_that_fails_leaves_out_no_other_and_is_done_at_the_next_look(
    worker: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begun: list[object] = []
    monkeypatch.setattr(worker._announcer, "begin", begun.append)
    with pytest.raises(SetupError, match="does not consume yet"):
        worker._finish_start()
    with monkeypatch.context() as short:
        short.setattr(pool_app, "start_metrics", refuse)
        worker._ready(sender="celery")
        assert begun == ["celery"]
        assert "start failed and will be tried again step=sending metrics" in caplog.text
        with pytest.raises(SetupError, match=r"sending metrics failed \(RuntimeError\)"):
            worker._finish_start()
    worker._finish_start()
    worker._finish_start()
    assert len(worker._stop_telemetry) == 1, "what was done is not done again"
    assert begun == ["celery"]


def test_a_stop_goes_on_when_a_step_of_it_fails(worker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker._health, "drain", refuse)
    worker._drain()
    assert worker._announcer._draining.is_set()
    stopped: list[str] = []
    worker._stop_telemetry = [lambda: stopped.append("sent")]
    for name in ("end", "flush"):
        monkeypatch.setattr(worker._announcer, name, refuse)
    worker._stopped(sender=SimpleNamespace(app=worker._app))
    assert stopped == ["sent"]


def test_who_is_not_known_to_the_fleet_is_not_ready(worker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SetupError, match="could not be announced"):
        worker._look_at_fleet()

    def yes(_: object) -> bool:
        return True

    monkeypatch.setattr(worker._announcer, "_write", yes)

    def stop_after_one() -> None:
        worker._announcer._thread.stopping.set()

    monkeypatch.setattr(worker._announcer, "flush", stop_after_one)
    monkeypatch.setattr(worker._announcer, "_owner", lambda: "this")
    worker._announcer.begin(SimpleNamespace(pool=SimpleNamespace(limit=1), hostname="w"))
    worker._announcer.end()
    worker._look_at_fleet()


def test_a_thread_that_does_not_work_is_a_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    pool_app.look_at_threads()
    monkeypatch.setattr(pool_app, "thread_problems", lambda: ["thread brainq-beats could not be started"])
    with pytest.raises(SetupError, match="thread brainq-beats could not be started"):
        pool_app.look_at_threads()


def test_a_shortage_is_a_lack(worker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    worker._look_at_machine()

    def short(_: object) -> str:
        return "no memory is left"

    monkeypatch.setattr(pool_app, "find_shortage", short)
    with pytest.raises(SetupError, match="no memory is left"):
        worker._look_at_machine()


@pytest.mark.parametrize(
    ("pool", "needs", "wants"),
    [("coordinator", True, False), ("serial", True, False), ("finalizer", False, True), ("parallel", False, False)],
)
def test_which_pool_needs_sql_and_which_wants_it(pool: str, needs: bool, wants: bool) -> None:
    health = made(pool)._health
    assert ("SQL" in health._needs.by_name, "SQL" in health._wants.by_name) == (needs, wants)
    assert [*health._needs.by_name][:3] == ["the machine", "its threads", "Redis"]


def test_what_only_some_pools_of_a_worker_need_leaves_the_others_at_work() -> None:
    health = made("coordinator", "parallel", "serial", "finalizer")._health
    assert "SQL" not in health._needs.by_name
    assert (health._some_pools, [*health._some.by_name]) == ({"coordinator", "serial"}, ["SQL"])
    both = made("coordinator", "serial")._health
    assert ("SQL" in both._needs.by_name, both._some_pools) == (True, frozenset())
    reads = made("parallel", "finalizer")._health
    assert (reads._some_pools, [*reads._some.by_name]) == (frozenset(), [])


def test_a_worker_has_the_tasks_of_its_pools_each_once() -> None:
    ours = {name for name in made("parallel", "serial")._app.tasks if name.startswith(names.TASK_PREFIX)}
    assert ours == {names.CALL_RUN}
    ours = {name for name in made("serial", "finalizer")._app.tasks if name.startswith(names.TASK_PREFIX)}
    assert ours == {names.CALL_RUN, names.FINALIZE_STEP, names.JUDGE_RUN}


def test_pools_are_chosen_by_name_in_the_order_of_a_turn() -> None:
    assert chosen_pools("") == tuple(names.POOL_QUEUES)
    assert chosen_pools(" Finalizer,coordinator ") == ("coordinator", "finalizer")
    with pytest.raises(SetupError, match=r"BRAINQ_POOLS: writers is not one of coordinator, .*; for all of them"):
        chosen_pools("coordinator,writers")


def test_a_worker_reads_the_queues_of_its_pools_and_some_of_the_serial_ones() -> None:
    assert queues_of(("parallel", "finalizer"), "") == (*names.PARALLEL_QUEUES, *names.FINALIZER_QUEUES)
    assert queues_of(("parallel", "serial"), "network") == (*names.PARALLEL_QUEUES, names.NETWORK_QUEUE)
    with pytest.raises(SetupError, match="BRAINQ_EFFECTS: read_only is not one of local_write"):
        queues_of(("serial",), "read_only")


def test_a_worker_is_named_for_its_pools() -> None:
    assert worker_name(("serial",)) == "serial"
    assert worker_name(("coordinator", "finalizer")) == "coordinator-finalizer"
    assert worker_name(tuple(names.POOL_QUEUES)) == "all"


def test_each_part_of_a_heartbeat_is_by_itself(
    worker: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "brainq.tasks")
    beats: list[str] = []

    def flush(_: object) -> None:
        beats.append("metrics")

    state = SimpleNamespace(presence=SimpleNamespace(join=refuse), metrics=SimpleNamespace(flush=flush))
    monkeypatch.setattr(worker, "_wiring", SimpleNamespace(state=state))
    monkeypatch.setattr(worker, "_announce_builds", lambda: beats.append("builds"))
    worker._announcer.flush()
    assert beats == ["metrics", "builds"]
    assert "metrics were not flushed" in caplog.text
