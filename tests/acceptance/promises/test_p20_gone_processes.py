"""P20: what a killed process held goes on long before its lease ends, and a lost connection is not a death.

Leases are of ten minutes here, so that nothing but the missing process can be what was noticed."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from brainq.cli.doctor.services import check_presence
from brainq.client.handle import TurnHandle
from brainq.contracts.fleet import FleetWorker
from brainq.contracts.ids import new_turn_id
from brainq.contracts.status import TraceStatus
from tests.acceptance.promises.test_p01_frozen_workers import freeze
from tests.support.brains import diary
from tests.support.brains.diary import notes, open_gate, order
from tests.support.brains.obedient import script
from tests.support.wait import insist, wait_until
from tests.support.world import World

POOLS = ("coordinator", "parallel", "serial", "finalizer")
RESETS = 10


@pytest.fixture(scope="module")
def patient_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(
        tmp_path_factory.mktemp("patient"), workers=dict.fromkeys(POOLS, 2), pace={"lease_s": 600.0, "beat_s": 1.0}
    )
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture
def patient(patient_world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv(diary.DIRECTORY, str(patient_world.directory))
    watched = sum(worker.is_running for worker in patient_world.fleet.workers)
    wait_until(lambda: len(seen(patient_world)) == watched, "every worker is watched")
    yield patient_world
    patient_world.wiring.state.redis.close()  # a test may have reset what it holds: the next one connects anew
    for path in patient_world.directory.glob("order-*"):
        path.unlink()
    patient_world.launch_dead()
    wait_until(lambda: len(seen(patient_world)) == len(POOLS) * 2, "the dead were replaced")


def seen(world: World) -> dict[str, str]:
    """The processes that are watched and were not missed at the last look, and what is noted of them."""
    noted: dict[str, str] = world.wiring.state.redis.hgetall(world.wiring.state.keys.presence)  # type: ignore[assignment]
    return {name: text for name, text in noted.items() if " " not in name and text.endswith(" 0")}


def looks(world: World, number: int) -> None:
    """Wait until so many looks were made from now on."""
    times: set[Any] = {looked_at(world)}

    def enough() -> bool:
        times.add(looked_at(world))
        return len(times) > number

    wait_until(enough, f"{number} looks were made")


def looked_at(world: World) -> Any:
    return world.wiring.state.redis.hget(world.wiring.state.keys.presence, " looked_at")


def test_the_turn_of_a_coordinator_that_died_goes_on(patient: World, sid: str) -> None:
    handle = patient.client.submit(sid, script(final="in spite of it", gate=f"m-{sid}"))
    first = wait_until(lambda: notes("thinking", turn=handle.turn_id), "the model was asked")[0]
    patient.kill_the("coordinator", first["pid"])
    open_gate(f"m-{sid}")
    assert handle.result(timeout_s=120).text == "in spite of it"
    assert [row["attempt"] for row in notes("thinking", turn=handle.turn_id)] == [1, 2]


def test_a_read_runs_again_and_a_write_that_began_is_unknown(patient: World, sid: str) -> None:
    calls = [("read", {"name": "r", "gate": f"r-{sid}"}), ("write", {"name": "w", "gate": f"w-{sid}"})]
    handle = patient.client.submit(sid, script(calls, final="$seen"))
    read = wait_until(lambda: notes("start", turn=handle.turn_id, name="r"), "the read began")[0]
    patient.kill_the("parallel", read["pid"])
    open_gate(f"r-{sid}")
    write = wait_until(lambda: notes("start", turn=handle.turn_id, name="w"), "the write began")[0]
    patient.kill_the("serial", write["pid"])
    shown = [message for message in json.loads(handle.result(timeout_s=120).text) if message["role"] == "tool"]
    assert shown[0]["text"] == "read r ok"
    assert "may or may not have taken effect" in shown[1]["text"]
    assert patient.status(handle, 1) == TraceStatus.UNKNOWN
    assert len(notes("start", turn=handle.turn_id, name="w")) == 1


def test_the_step_of_a_finalizer_that_died_runs_again(patient: World, sid: str) -> None:
    order("usage.gate", f"usage-{sid}")
    handle = patient.client.submit(sid, script())
    begun = wait_until(lambda: notes("usage", turn=handle.turn_id), "the callback was called")[0]
    patient.kill_the("finalizer", begun["pid"])
    open_gate(f"usage-{sid}")
    assert handle.result(timeout_s=120).text == "done"
    patient.done(handle)
    assert len(notes("usage", turn=handle.turn_id)) == 2


def test_the_fleet_no_longer_lists_a_worker_that_died(patient: World) -> None:
    (pid,) = {worker.process.pid for worker in patient.fleet.of_pool("parallel")[:1] if worker.process is not None}
    patient.kill_the("parallel", pid)
    wait_until(lambda: len(patient.wiring.state.workers.alive()) == len(POOLS) * 2 - 1, "one worker less is listed")


def test_processes_that_lost_their_connections_are_not_taken_for_dead(patient: World, sid: str) -> None:
    tools = {"read": f"{sid}-r", "write": f"{sid}-w"}
    turns = [
        patient.client.submit(session, script([(tool, {"name": session, "gate": session})]))
        for tool, session in tools.items()
    ]
    wait_until(lambda: len([note for turn in turns for note in notes("start", turn=turn.turn_id)]) == 2, "both began")
    for _ in range(RESETS):
        assert int(patient.redis.command("CLIENT", "KILL", "TYPE", "pubsub")[0]) >= len(POOLS) * 2, "the fault fired"
        patient.redis.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        looks(patient, 1)
    for session in tools.values():
        open_gate(session)
    for turn in turns:
        assert turn.result(timeout_s=120).text == "done"
        assert [row["attempt"] for row in notes("start", turn=turn.turn_id)] == [1]


@pytest.mark.parametrize("resets", [4, pytest.param(100, marks=pytest.mark.full)])
def test_no_call_is_rescued_whose_process_lives(patient: World, sid: str, resets: int) -> None:
    """Under load, so that connections break in the middle of every kind of script."""
    turns: list[TurnHandle] = []
    for number in range(resets):
        turns += [submitted(patient, f"{sid}-{number}-{other}") for other in range(2)]
        reset_all(patient)
        wait_until(partial(have_begun, number), "calls run")
    for turn in turns:
        ran_once(patient, turn)
    wait_until(lambda: len(seen(patient)) == len(POOLS) * 2, "all processes are heard again")


@pytest.mark.full
@pytest.mark.timeout(300)
def test_no_call_is_rescued_after_a_restart_of_redis(tmp_path: Path, sid: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, pace={"lease_s": 600.0, "beat_s": 1.0}, durable=True)
    monkeypatch.setenv(diary.DIRECTORY, str(tmp_path))
    try:
        world.start()
        turns: list[TurnHandle] = []
        for number in range(5):
            turns += [submitted(world, f"{sid}-{number}-{other}") for other in range(4)]
            wait_until(partial(have_begun, number), "calls run")
            world.redis.crash()
        for turn in turns:
            ran_once(world, turn)
    finally:
        world.stop()


def submitted(world: World, session_id: str) -> TurnHandle:
    """A turn of a read and a write."""
    calls = [[(tool, {"name": session_id, "sleep_s": 0.05})] for tool in ("read", "write")]
    return insist(partial(world.client.submit, session_id, script(*calls), turn_id=new_turn_id()))


def have_begun(number: int) -> bool:
    return len(notes("start")) > number


def ran_once(world: World, turn: TurnHandle) -> None:
    assert insist(partial(turn.result, timeout_s=120)).text == "done"
    assert [(call.status, call.attempt) for call in world.trace(turn)] == [(TraceStatus.COMPLETED, 1)] * 2
    assert len(notes("start", turn=turn.turn_id)) == 2


def reset_all(world: World) -> None:
    """Every connection but the one that says so, once processes listen again."""
    wait_until(lambda: int(world.redis.command("CLIENT", "KILL", "TYPE", "pubsub")[0]) > 0, "the fault fired")
    assert int(world.redis.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")[0]) > 0, "the fault fired"


def test_a_frozen_process_is_not_taken_for_dead(patient: World, sid: str) -> None:
    handle = patient.client.submit(sid, script(gate=f"m-{sid}"))
    first = wait_until(lambda: notes("thinking", turn=handle.turn_id), "the model was asked")[0]
    frozen = freeze(patient, "coordinator", first["pid"])
    try:
        looks(patient, 4)
        assert len(seen(patient)) == len(POOLS) * 2
    finally:
        patient.fleet.kill(frozen, signal.SIGCONT)
    open_gate(f"m-{sid}")
    assert handle.result(timeout_s=120).text == "done"
    assert len(notes("thinking", turn=handle.turn_id)) == 1


def test_doctor_says_whose_death_nobody_would_notice(patient: World) -> None:
    check = check_presence(patient.settings, patient.redis.url)
    assert (check.level, check.said) == ("ok", "the death of a worker would be noticed at once")
    unlisted = FleetWorker(name="serial@elsewhere", pool="serial", threads=1, busy=0)
    patient.wiring.state.workers.announce("serial@elsewhere-1", unlisted, for_s=60)
    try:
        check = check_presence(patient.settings, patient.redis.url)
        assert check.said.startswith("Redis sees no subscription of serial@elsewhere-1")
    finally:
        patient.wiring.state.workers.withdraw("serial@elsewhere-1")
