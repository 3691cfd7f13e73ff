"""Workers that run out of something take their ready file away and consume nothing; they work again when it is back.

One fleet for all: its parallel worker logs to a disk that is full from the start.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from brainq.app.devserver.local_fleet import LocalWorker
from brainq.client.handle import TurnHandle
from tests.support.brains import diary
from tests.support.brains.diary import notes, open_gate
from tests.support.brains.obedient import script
from tests.support.wait import wait_until
from tests.support.world import World

pytestmark = pytest.mark.needs(hasattr(resource, "prlimit") and Path("/dev/full").exists(), "Linux")
FILES_LEFT = 4
BYTES_LEFT = 4_000_000


@pytest.fixture(scope="module")
def fleet_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("lifecycle"), threads={"coordinator": 4, "parallel": 2, "finalizer": 2})
    made.fleet.of_pool("parallel")[0].log_path = Path("/dev/full")
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture
def world(fleet_world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv(diary.DIRECTORY, str(fleet_world.directory))
    return fleet_world


def pid_of(worker: LocalWorker) -> int:
    assert worker.process is not None
    return worker.process.pid


def limit_files(worker: LocalWorker) -> Callable[[], object]:
    """Leave it a few descriptors. Returns what gives them back."""
    return _limit(worker, resource.RLIMIT_NOFILE, len(os.listdir(f"/proc/{pid_of(worker)}/fd")) + FILES_LEFT)


def limit_memory(worker: LocalWorker) -> Callable[[], object]:
    """Leave it too little address space for a thread's stack. Returns what gives it back."""
    pages = int(Path(f"/proc/{pid_of(worker)}/statm").read_text().split()[0])
    return _limit(worker, resource.RLIMIT_AS, pages * resource.getpagesize() + BYTES_LEFT)


def _limit(worker: LocalWorker, what: int, most: int) -> Callable[[], object]:
    before = resource.prlimit(pid_of(worker), what)
    resource.prlimit(pid_of(worker), what, (most, before[1]))
    return lambda: resource.prlimit(pid_of(worker), what, before)


def works(world: World, sid: str) -> TurnHandle:
    """One turn through all four pools."""
    handle = world.client.submit(sid, script([("read", {"name": "r"}), ("write", {"name": "w"})], final="done"))
    assert handle.result(timeout_s=120).text == "done"
    return handle


def test_workers_short_of_something_are_not_ready_take_nothing_and_come_back(world: World) -> None:
    sid = "short"
    serial, parallel = world.fleet.of_pool("serial")[0], world.fleet.of_pool("parallel")[0]
    pids = [pid_of(worker) for worker in world.fleet.workers]
    handle = world.client.submit(
        sid, script([("read", {"name": "r", "gate": f"g-{sid}"}), ("write", {"name": "w"})], final="in the end")
    )
    wait_until(lambda: notes("start", turn=handle.turn_id, name="r"), "the read runs")
    give_back = [limit_files(serial), limit_memory(parallel)]
    wait_until(lambda: not serial.is_ready and not parallel.is_ready, "neither is ready")
    assert "consumes no messages for now why='no file descriptors are left" in serial.log_path.read_text()

    def named() -> dict[str, str]:
        return {each.subject.partition("@")[0]: each.text for each in world.client.fleet().troubles}

    wait_until(lambda: {"serial", "parallel"} <= named().keys(), "the fleet names both, and what they lack")
    assert "cannot work: no file descriptors are left" in named()["serial"]
    open_gate(f"g-{sid}")
    wait_until(lambda: world.status(handle, 0) == "completed", "what ran has ended all the same")
    wait_until(lambda: world.status(handle, 1) == "dispatched", "the write waits in its queue")
    assert notes("start", turn=handle.turn_id, name="w") == []
    for each in give_back:
        each()
    assert handle.result(timeout_s=120).text == "in the end"
    wait_until(lambda: serial.is_ready and parallel.is_ready, "both are ready again")
    assert world.trace(handle)[1].attempt == 1, "nobody had taken it, and failed"
    assert "this worker can work again and consumes messages" in serial.log_path.read_text()
    assert [pid_of(worker) for worker in world.fleet.workers] == pids
    works(world, f"{sid}-after")


def test_a_worker_that_is_asked_to_stop_ends_with_0_also_with_a_full_log(world: World) -> None:
    works(world, "before-a-stop")
    parallel = world.fleet.of_pool("parallel")[0]
    world.fleet.kill(parallel, signal.SIGTERM)
    assert parallel.exit_code == 0
    assert not parallel.ready_path.exists()
    parallel.launch()
    wait_until(lambda: parallel.is_ready, "it starts again")
