"""P11: the wall clocks of the workers are hours and days apart; Redis TIME decides every lease and deadline."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from brainq.contracts.status import Ending, StopReason, TraceStatus
from tests.support.brains import diary
from tests.support.brains.diary import notes, open_gate
from tests.support.brains.obedient import script
from tests.support.brains.shifted import OFF
from tests.support.wait import wait_until
from tests.support.world import World

HOUR_S, DAY_S = 3600, 86_400
OFF_S = {
    "coordinator1": DAY_S,
    "coordinator2": -DAY_S,
    "parallel": HOUR_S,
    "serial1": -HOUR_S,
    "serial2": DAY_S,
    "finalizer": -DAY_S,
}


@pytest.fixture(scope="module")
def apart_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(
        tmp_path_factory.mktemp("apart"),
        workers={"coordinator": 2, "serial": 2},
        environment={"BRAINQ_APP": "tests.support.brains.shifted:brain"},
    )
    for worker in made.fleet.workers:
        worker.environment = {**worker.environment, OFF: str(OFF_S[worker.name])}
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture
def apart(apart_world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv(diary.DIRECTORY, str(apart_world.directory))
    said = [row["says"] for row in notes("clock")]
    assert max(said) - min(said) > 2 * DAY_S - HOUR_S, "the clocks are apart"
    yield apart_world
    apart_world.launch_dead()


def test_turns_run_as_if_all_clocks_were_right(apart: World, sid: str) -> None:
    message = script([("read", {"name": "a"}), ("write", {"name": "b"})], final="done")
    handles = [apart.client.submit(f"{sid}-{n}", message, limits={"timeout_s": 60}) for n in range(8)]
    for handle in handles:
        result = handle.result(timeout_s=60)
        assert (result.ending, result.text) == (Ending.COMPLETED, "done")
        assert 0 <= result.elapsed_ms < 60_000
        assert [entry.status for entry in apart.trace(handle)] == [TraceStatus.COMPLETED] * 2
        apart.done(handle)
        apart.all_events(handle)
        steps = apart.client.handle(handle.turn_id).events(timeout_s=60)
        assert [event.data["attempt"] for event in steps if event.kind == "step.started"] == [1, 1]


@pytest.mark.full
def test_a_deadline_comes_when_redis_says_so(apart: World, sid: str) -> None:
    handle = apart.client.submit(sid, script([("write", {"name": "w", "gate": sid})]), limits={"timeout_s": 3})
    result = handle.result(timeout_s=60)
    open_gate(sid)
    assert (result.ending, result.stop_reason) == (Ending.TIMED_OUT, StopReason.DEADLINE)
    assert 3_000 <= result.elapsed_ms < 33_000


def test_a_lease_lapses_when_redis_says_so(apart: World, sid: str) -> None:
    """Not before its worker died, which is a day ahead or behind, and soon after."""
    handle = apart.client.submit(sid, script([("read", {"name": "r"})], final="healed", gate=f"m-{sid}"))
    first = wait_until(lambda: notes("thinking", turn=handle.turn_id), "the model was asked")[0]
    lease_s = apart.settings.lease_s
    wait_until(lambda: diary.now() - first["at"] > 2 * lease_s, "it would have lapsed without its beats")
    assert len(notes("thinking", turn=handle.turn_id)) == 1
    apart.kill_the("coordinator", first["pid"])
    open_gate(f"m-{sid}")
    assert handle.result(timeout_s=60).text == "healed"
    attempts = [(row["step"], row["attempt"]) for row in notes("thinking", turn=handle.turn_id)]
    assert attempts == [(1, 1), (1, 2), (2, 1)]
