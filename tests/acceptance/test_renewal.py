"""Workers that are bound by turns are renewed under load: every pool's process changes, and no turn notices."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from brainq.app.devserver.local_fleet import POOLS, LocalFleet, run_celery
from lab.bench.soak import soak
from tests.support.brains import diary
from tests.support.brains.diary import notes
from tests.support.brains.obedient import script
from tests.support.wait import wait_until
from tests.support.world import World

POOL_OF = {"thinking": "coordinator", "extra": "finalizer"}


@pytest.fixture
def bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv(diary.DIRECTORY, str(tmp_path))
    world = World(tmp_path, pace={"lease_s": 600.0, "beat_s": 1.0}, environment={"BRAINQ_MAX_TURNS_A_WORKER": "4"})
    # A forked worker's own command line is this test's; a bound one is started again by its command line.
    world.fleet = LocalFleet(tmp_path / "workers", world.environment, concurrency={"coordinator": 4}, spawn=run_celery)
    try:
        yield world.start()
    finally:
        world.stop()


def pids(handles: list[str]) -> dict[str, set[int]]:
    """The processes that worked on these turns, by pool."""
    found: dict[str, set[int]] = {}
    for row in notes():
        if row.get("turn") in handles:
            pool = POOL_OF.get(row["what"]) or {"read": "parallel"}.get(row.get("tool", ""), "serial")
            if row["what"] in (*POOL_OF, "start"):
                found.setdefault(pool, set()).add(row["pid"])
    return found


@pytest.mark.full
def test_each_pool_is_renewed_under_load_and_no_turn_is_lost_or_doubled(bound: World) -> None:
    supervised = {worker.name: worker.process.pid for worker in bound.fleet.workers if worker.process}
    done: list[str] = []

    def renewed() -> bool:
        """Every pool has worked in two processes; as long as one has not, more turns come."""
        turns = [
            bound.client.submit(f"s{len(done) + n}", script([("read", {"name": "r"}), ("write", {"name": "w"})]))
            for n in range(3)
        ]
        for turn in turns:
            assert turn.result(timeout_s=120).ending == "completed"
        done.extend(turn.turn_id for turn in turns)
        assert all(worker.is_ready for worker in bound.fleet.workers), "to a probe none was ever away"
        return all(len(pids(done).get(pool, ())) >= 2 for pool in POOLS)

    wait_until(renewed, "every pool was renewed", 300)
    started = [row for row in notes("start") if row["turn"] in done]
    assert [row["attempt"] for row in started] == [1] * len(started)
    assert len(started) == 2 * len(done)
    assert {worker.name: worker.process.pid for worker in bound.fleet.workers if worker.process} == supervised
    assert not set().union(*pids(done).values()) & set(supervised.values()), "the supervised one only keeps"

    bound.fleet.stop(grace_s=30)
    assert [worker.exit_code for worker in bound.fleet.workers] == [0] * 4


@pytest.mark.full
def test_a_shortened_soak_finds_no_drift_while_workers_are_renewed(tmp_path: Path) -> None:
    found = soak(tmp_path, minutes=1.5, per_s=4.0, max_turns=60)
    assert found["turns"] == 360
    samples = found["samples"]
    assert samples[-1]["processes"] >= 2 * 2 * len(POOLS), "each pool's keeper and worker, and what followed"
    settled = samples[len(samples) // 2 :]
    # Keys of turns expire as fast as they come; connections are those of the workers that there are.
    assert max(each["keys"] for each in settled) <= 2 * min(each["keys"] for each in settled)
    assert max(each["connections"] for each in settled) <= 2 * min(each["connections"] for each in settled)
    assert set(found["drift_an_hour"]) >= {"keys", "connections", "p50_ms", "rss_mb redis", "rss_mb coordinator"}
