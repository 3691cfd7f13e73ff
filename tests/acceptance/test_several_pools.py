"""One worker process of all four pools, beside workers of other sets: turns, what people see, a stop, and a death."""

from __future__ import annotations

import itertools
import json
import signal
from collections.abc import Iterator

import pytest

from brainq.adapters.celery import names
from brainq.adapters.celery.app import make_app
from brainq.app.devserver.local_fleet import POOLS, LocalWorker
from brainq.client.handle import TurnHandle
from brainq.contracts.status import Ending, TraceStatus
from tests.support.brains import diary
from tests.support.brains.diary import notes, open_gate
from tests.support.brains.obedient import script
from tests.support.commands import commands
from tests.support.wait import wait_until
from tests.support.watch import parked, tool_texts
from tests.support.world import World

MOST = 40  # turns until one of them runs in a certain worker
SETS = ("all", "coordinator,finalizer", "parallel", "serial")
_sessions = itertools.count(1)


@pytest.fixture(scope="module")
def mixed_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    app = {"BRAINQ_APP": "tests.support.brains.people:brain"}
    made = World(tmp_path_factory.mktemp("mixed"), pools=SETS, threads={"serial": 2}, environment=app)
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture
def world(mixed_world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv(diary.DIRECTORY, str(mixed_world.directory))
    yield mixed_world
    mixed_world.launch_dead()
    wait_until(lambda: all(worker.is_ready for worker in mixed_world.fleet.workers), "every worker is ready again")


@pytest.fixture
def sid() -> str:
    return f"s{next(_sessions)}"


def pid_of(worker: LocalWorker) -> int:
    assert worker.process is not None
    return worker.process.pid


def the_all_worker(world: World) -> LocalWorker:
    return world.fleet.of_pool("all")[0]


def held_in(world: World, worker: LocalWorker, sid: str, tool: str) -> list[TurnHandle]:
    """Submit turns whose call waits at the gate of `sid`, until one of those runs in this worker."""
    turns: list[TurnHandle] = []
    for number in range(MOST):
        message = script([(tool, {"name": "n", "gate": sid})], final="$seen")
        turns.append(world.client.submit(f"{sid}-{number}", message))
        (row,) = wait_until(lambda turn=turns[-1]: notes("start", turn=turn.turn_id), "it runs, or waits for a thread")
        if row["pid"] == pid_of(worker):
            return turns
    raise AssertionError(f"none of {MOST} turns had its call in {worker.name}")


def runs_elsewhere(world: World, worker: LocalWorker, sid: str) -> bool:
    """Whether a turn leaves no trace in this worker."""
    turn = world.client.submit(f"{sid}-{next(_sessions)}", script([("read", {"name": "z"})], final="done"))
    assert turn.result(timeout_s=60).text == "done"
    return pid_of(worker) not in {row["pid"] for row in notes(turn=turn.turn_id)}


def test_a_turn_of_reads_writes_and_an_approval(world: World, sid: str) -> None:
    reads = [("read", {"name": "a"}), ("read", {"name": "b"})]
    steps = [reads, [("write", {"name": "c"})], [("sign", {"name": "d"})]]
    turn = world.client.submit(sid, script(*steps, final="$seen"))
    parked(turn)
    world.client.approve(turn.approvals()[0].id, by="mia")
    result = turn.result(timeout_s=60)
    assert tool_texts(result.text) == ["read a ok", "read b ok", "write c ok", "sign d ok"]
    world.done(turn)
    world.all_events(turn)
    assert [entry.status for entry in world.trace(turn)] == [TraceStatus.COMPLETED] * 4


def test_its_pools_are_seen_as_pools(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet = world.client.fleet()
    workers = {pool.name: sorted(worker.name.partition("@")[0] for worker in pool.workers) for pool in fleet.pools}
    assert workers == {
        "coordinator": ["all", "coordinator-finalizer"],
        "parallel": ["all", "parallel"],
        "serial": ["all", "serial"],
        "finalizer": ["all", "coordinator-finalizer"],
    }
    wait_until(lambda: not world.client.fleet().troubles, "nothing is wrong with the fleet", 60)
    for name, value in world.environment.items():
        monkeypatch.setenv(name, value)
    run = commands(monkeypatch, capsys)
    shown = json.loads(run("fleet", "--json").out)
    threads = {pool["name"]: sum(worker["threads"] for worker in pool["workers"]) for pool in shown["pools"]}
    assert threads == dict(zip(POOLS, (32, 16, 4, 8), strict=True))
    assert [line for pool in POOLS for line in run("fleet").out.splitlines() if line.strip().startswith(pool)]
    for pool in POOLS:
        assert run("scale", "--pool", pool).code == 0


def test_celery_inspect_and_flower_see_one_worker_with_all_queues(world: World) -> None:
    asked = make_app(world.settings).control.inspect(timeout=5.0, limit=len(SETS))
    queues = {worker: {queue["name"] for queue in each} for worker, each in asked.active_queues().items()}
    by_name = {worker.partition("@")[0]: read for worker, read in queues.items()}
    assert by_name["all"] == set(names.ALL_QUEUES)
    assert by_name["coordinator-finalizer"] == {*names.COORDINATOR_QUEUES, *names.FINALIZER_QUEUES}
    threads = {worker.partition("@")[0]: each["pool"]["max-concurrency"] for worker, each in asked.stats().items()}
    assert threads == {"all": 30, "coordinator-finalizer": 20, "parallel": 8, "serial": 2}


def test_a_stop_lets_the_work_of_every_pool_end_and_takes_no_more(world: World, sid: str) -> None:
    worker = the_all_worker(world)
    turns = held_in(world, worker, f"{sid}-read", "read") + held_in(world, worker, f"{sid}-write", "write")
    assert worker.process is not None
    worker.process.send_signal(signal.SIGTERM)
    wait_until(lambda: not worker.ready_path.exists(), "it is not ready")
    wait_until(
        lambda: all(len(pool.workers) == 1 for pool in world.client.fleet().pools), "each pool has one worker left"
    )
    draining = wait_until(world.wiring.state.workers.draining, "it drains")
    assert {each.pool for each in draining} <= set(POOLS)
    wait_until(lambda: runs_elsewhere(world, worker, sid), "it takes no more")
    assert all(runs_elsewhere(world, worker, sid) for _ in range(4))
    for gate in (f"{sid}-read", f"{sid}-write"):
        open_gate(gate)
    for turn in turns:
        assert turn.result(timeout_s=60).ending is Ending.COMPLETED
        assert [row["attempt"] for row in notes("start", turn=turn.turn_id)] == [1]
    assert worker.process.wait(60) == 0
    worker.close_pipe()
    wait_until(lambda: not world.wiring.state.workers.draining(), "it has gone from the fleet")


def test_a_death_is_healed_by_workers_of_other_sets(world: World, sid: str) -> None:
    worker = the_all_worker(world)
    reads = held_in(world, worker, f"{sid}-read", "read")
    writes = held_in(world, worker, f"{sid}-write", "write")
    thinking = [world.client.submit(f"{sid}-think-{n}", script(gate=f"{sid}-think", final="done")) for n in range(4)]
    for turn in thinking:
        wait_until(lambda turn=turn: notes("thinking", turn=turn.turn_id), "the model is asked")
    dead = pid_of(worker)
    world.fleet.kill(worker)
    for gate in (f"{sid}-read", f"{sid}-write", f"{sid}-think"):
        open_gate(gate)
    for turn in reads:
        assert tool_texts(turn.result(timeout_s=60).text) == ["read n ok"]
    for turn in writes:
        (begun,) = notes("start", turn=turn.turn_id)
        (text,) = tool_texts(turn.result(timeout_s=60).text)
        assert ("may or may not have taken effect" in text) is (begun["pid"] == dead)
        assert len(notes("start", turn=turn.turn_id)) == 1
    for turn in thinking:
        assert turn.result(timeout_s=60).text == "done"
    assert [row["attempt"] for row in notes("start", turn=reads[-1].turn_id)] == [1, 2]
    for turn in (*reads, *writes, *thinking):
        world.done(turn)
        world.all_events(turn)
