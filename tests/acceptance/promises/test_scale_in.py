"""A scale-in under load: a worker of each pool, stopped by SIGTERM, drains, exits with 0, and loses or doubles nothing.

These are the drain, probe and scale contracts that a chart and a unit file count on, with real processes. Leases are of
ten minutes here: what a stop lost would not be healed, and a slow machine repeats nothing.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from brainq.app.devserver.local_fleet import POOLS, LocalWorker
from brainq.client.handle import TurnHandle
from tests.support.brains import diary
from tests.support.brains.diary import notes, open_gate, order
from tests.support.brains.obedient import script
from tests.support.wait import wait_until
from tests.support.world import World

FEW, MANY = 6, 20
SAMPLED = ("coordinator", "serial")  # of `make test`; the others are full


@pytest.fixture(scope="module")
def patient_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(
        tmp_path_factory.mktemp("scaled"), workers=dict.fromkeys(POOLS, 2), pace={"lease_s": 600.0, "beat_s": 1.0}
    )
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture
def scaled(patient_world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv(diary.DIRECTORY, str(patient_world.directory))
    yield patient_world
    patient_world.launch_dead()


def load(world: World, sid: str, count: int) -> list[TurnHandle]:
    """Turns with a read and a write in their first step, and a write of another effect in their second."""
    steps = [[("read", {"name": "r"}), ("write", {"name": "w"})], [("send", {"name": "s"})]]
    return [world.client.submit(f"{sid}-{n}", script(*steps, final=f"done {n}")) for n in range(count)]


def hold_model(world: World, sid: str) -> tuple[TurnHandle, dict[str, Any]]:
    handle = world.client.submit(sid, script([("write", {"name": "w"})], final="held", gate=f"g-{sid}"))
    return handle, wait_until(lambda: notes("thinking", turn=handle.turn_id), "the model was asked")[0]


def hold_call(tool: str) -> Callable[[World, str], tuple[TurnHandle, dict[str, Any]]]:
    def hold(world: World, sid: str) -> tuple[TurnHandle, dict[str, Any]]:
        handle = world.client.submit(sid, script([(tool, {"name": "w", "gate": f"g-{sid}"})], final="held"))
        return handle, wait_until(lambda: notes("start", turn=handle.turn_id), "the call began")[0]

    return hold


def hold_step(world: World, sid: str) -> tuple[TurnHandle, dict[str, Any]]:
    order("extra.gate", f"g-{sid}")
    handle = world.client.submit(sid, script([("write", {"name": "w"})], final="held"))
    begun = wait_until(lambda: notes("extra", turn=handle.turn_id), "the step began")[0]
    order("extra.gate", "")
    return handle, begun


HOLDS = {
    "coordinator": hold_model,
    "parallel": hold_call("read"),
    "serial": hold_call("write"),
    "finalizer": hold_step,
}
"""Work of a pool that is not over before its gate is opened, and the diary's line of the process that has it."""


def both_consume(world: World) -> None:
    """Two workers of each pool consume, and have reported it; none is left of those that drained."""
    wait_until(lambda: all(each.is_ready for each in world.fleet.workers), "both workers of each pool consume")

    def reported() -> bool:
        return all((each.workers, each.draining) == (2, 0) for each in world.client.scale().pools)

    wait_until(reported, "both have reported it")


def stop_warmly(worker: LocalWorker) -> None:
    assert worker.process is not None
    worker.process.send_signal(signal.SIGTERM)


def ended(worker: LocalWorker) -> int:
    """Its exit code, once it is gone."""
    assert worker.process is not None
    code = worker.process.wait(60)
    worker.close_pipe()
    return code


def require_once(world: World, handle: TurnHandle, writes: int) -> None:
    """Every call began once, by its first attempt, and every model call and step of the chain was made once."""
    world.done(handle)
    noted = notes(turn=handle.turn_id)
    started = [row for row in noted if row["what"] == "start"]
    assert [row["attempt"] for row in started] == [1] * len(started)
    keys = [row["key"] for row in started if row["tool"] != "read"]
    assert len(keys) == len(set(keys)) == writes
    thought = [(row["step"], row["attempt"]) for row in noted if row["what"] == "thinking"]
    assert thought == [(number, 1) for number in range(1, len(thought) + 1)]
    for name in ("usage", "extra", "turn_end"):
        assert [row["what"] for row in noted].count(f"{name}.end") == 1, name
    world.all_events(handle)


@pytest.mark.parametrize(
    ("pool", "count"),
    [
        pytest.param(pool, count, marks=[] if count == FEW and pool in SAMPLED else [pytest.mark.full])
        for pool in POOLS
        for count in (FEW, MANY)
    ],
)
def test_a_worker_that_is_told_to_stop_drains_and_loses_nothing(scaled: World, sid: str, pool: str, count: int) -> None:
    both_consume(scaled)
    held, begun = HOLDS[pool](scaled, sid)
    (worker,) = [each for each in scaled.fleet.of_pool(pool) if each.process and each.process.pid == begun["pid"]]
    turns = load(scaled, f"{sid}-before", count)

    stop_warmly(worker)
    wait_until(lambda: not worker.ready_path.exists(), "the probe says at once that it is not ready")
    (scale,) = wait_until(
        lambda: [each for each in scaled.client.scale(pool).pools if each.draining], "it says that it drains"
    )
    assert (scale.workers, scale.draining) == (1, 1)
    first = scale.stop_first[0]
    assert (first.name.partition("@")[0], first.draining) == (worker.name, True)

    turns += load(scaled, f"{sid}-behind", count)
    for number, turn in enumerate(turns):
        assert turn.result(timeout_s=120).text == f"done {number % count}"
    assert worker.is_running, "what it runs is not over"
    assert not worker.ready_path.exists()
    open_gate(f"g-{sid}")
    assert ended(worker) == 0
    assert held.result(timeout_s=60).text == "held"
    wait_until(lambda: not scaled.client.scale(pool).pools[0].draining, "it is listed no more")
    for turn in turns:
        require_once(scaled, turn, writes=2)
    require_once(scaled, held, writes=0 if pool == "parallel" else 1)


@pytest.mark.full
def test_every_worker_is_replaced_while_turns_run(scaled: World, sid: str) -> None:
    both_consume(scaled)
    turns: list[TurnHandle] = []
    for worker in scaled.fleet.workers:
        turns += load(scaled, f"{sid}-{worker.name}", MANY)
        stop_warmly(worker)
        assert ended(worker) == 0
        worker.launch()
        wait_until(lambda worker=worker: worker.is_ready, "its successor consumes")
    for number, turn in enumerate(turns):
        assert turn.result(timeout_s=120).text == f"done {number % MANY}"
    for turn in turns:
        require_once(scaled, turn, writes=2)
