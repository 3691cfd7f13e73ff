"""Recorded sessions of real models, and the tools package's own tasks, through real worker pools."""

from __future__ import annotations

import gzip
import json
import threading
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from brainq.app.devserver.local_fleet import POOLS
from brainq.client.connection import wiring_of
from examples.airline.checking import Played, check
from examples.airline.database import AirlineDatabase, make_database
from examples.airline.playing import Report, Stage, replay, running_stage
from examples.airline.recorded import RecordedSession, load_sessions, place_of, recorded_path, save_sessions
from examples.airline.replay import is_good
from examples.airline.tasks import task_sessions
from tests.support.cluster import RedisCluster
from tests.support.wait import wait_until

RECORDED = recorded_path()
SAMPLE, CLUSTER_SAMPLE = 25, 8
needs_recording = pytest.mark.needs(RECORDED.is_file(), "recorded sessions")


@pytest.fixture(scope="module")
def tasks() -> list[RecordedSession]:
    return list(task_sessions())


@pytest.fixture
def short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in {"LEASE": "1.5", "BEAT": "0.4", "SWEEP": "0.2", "RERING": "1"}.items():
        monkeypatch.setenv(f"BRAINQ_{name}_S", seconds)


def assert_as_recorded(report: Report, sessions: Sequence[RecordedSession]) -> None:
    assert {checked.session.session_id: checked.problems for checked in report.mismatched} == {}
    assert [checked.session for checked in report.checked] == list(sessions)
    assert report.doubled == 0
    assert report.unknown == 0
    assert report.turns == sum(len(session.turns) for session in sessions)


def sample() -> list[RecordedSession]:
    """Sessions with many writes in one reply, and then some of every kind."""
    sessions = load_sessions(RECORDED)
    crowded = sorted(sessions, key=lambda session: -session.writes_together)[: SAMPLE // 2]
    return [*crowded, *[session for session in sessions[:: len(sessions) // SAMPLE] if session not in crowded]][:SAMPLE]


def kill(stage: Stage, pool: str) -> None:
    """Kill the pool's worker, and start another in its place."""
    (worker,) = stage.fleet.of_pool(pool)
    wait_until(lambda: worker.is_ready, f"the {pool} worker is ready", timeout_s=120.0)
    stage.fleet.kill(worker)
    worker.launch()


def kill_with_a_write_in_hand(stage: Stage) -> str:
    """Kill the serial worker between a write's commit and its report, and return that write's key."""

    def hit() -> str:
        before = stage.database.newest_key()
        wait_until(lambda: stage.database.newest_key() != before, "a write is done", timeout_s=120.0, every_s=0.001)
        kill(stage, "serial")
        key = stage.database.newest_key()
        turn_id, call_id = key.split(":")
        rows = wiring_of(stage.client).store.calls.of_turn(turn_id)
        return key if any(row.call_id == call_id and row.state == "intent" for row in rows) else ""

    return wait_until(hit, "the kill came before the report", timeout_s=200.0)


@pytest.mark.parametrize("honours_keys", [pytest.param(True, marks=pytest.mark.full), False])
def test_the_check_sees_a_write_that_was_done_twice(tmp_path: Path, honours_keys: bool) -> None:
    session = next(session for session in task_sessions() if len(session.writes) > 1)
    make_database(tmp_path / "airline.db")
    with closing(AirlineDatabase(tmp_path / "airline.db", honours_keys=honours_keys)) as database:
        for key, call in [*session.writes[:1], *session.writes]:
            database.write(session.session_id, key, call.tool, call.arguments)
        checked = check(Played(session, (), ()), database, idempotent=True)
    assert checked.doubled == (0 if honours_keys else 1)
    assert checked.repeats == (1 if honours_keys else 0)
    assert bool(checked.problems) is not honours_keys


def test_the_check_names_the_first_write_that_differs(tmp_path: Path) -> None:
    session = next(session for session in task_sessions() if session.writes)
    make_database(tmp_path / "airline.db")
    with closing(AirlineDatabase(tmp_path / "airline.db")) as database:
        checked = check(Played(session, (), ()), database, idempotent=True)
    key, call = session.writes[0]
    assert checked.problems[0].startswith(f"write 1 is nothing, recorded was {key} {call.tool}")
    assert "its database ends on" in checked.problems[1]


@pytest.mark.full
def test_the_50_tasks_end_as_when_their_calls_are_run_directly(tasks: list[RecordedSession], tmp_path: Path) -> None:
    save_sessions(tmp_path / "tasks.jsonl.gz", tasks)
    with running_stage(tmp_path / "tasks.jsonl.gz") as stage:
        report = replay(stage, tasks)
    assert len(tasks) == 50
    assert sum(len(session.writes) for session in tasks) == 49
    assert_as_recorded(report, tasks)


@needs_recording
def test_the_tasks_end_on_hashes_that_the_recording_names(tasks: list[RecordedSession]) -> None:
    named: dict[str, set[str | None]] = defaultdict(set)  # several a task: its calls were mended over time
    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            named[f"task {line['task_id']}"].add(line["expect"].get("gold_db_sha256"))
    assert [session.name for session in tasks if session.db_sha256 not in named[session.name]] == []


@needs_recording
def test_recorded_sessions_end_on_their_recorded_database() -> None:
    sessions = sample()
    assert max(session.writes_together for session in sessions) > 2
    with running_stage(RECORDED) as stage:
        report = replay(stage, sessions, in_flight=SAMPLE)
    assert_as_recorded(report, sessions)
    assert report.calls["local_write completed"] > SAMPLE


@needs_recording
def test_recorded_sessions_end_on_their_recorded_database_on_a_redis_cluster(whole: RedisCluster) -> None:
    sessions = sample()[:CLUSTER_SAMPLE]
    with running_stage(RECORDED, redis_url=whole.url) as stage:
        report = replay(stage, sessions, in_flight=SAMPLE)
    assert_as_recorded(report, sessions)


@needs_recording
@pytest.mark.usefixtures("short_leases")
@pytest.mark.parametrize("idempotent", [True, False])
def test_recorded_sessions_survive_the_death_of_a_worker_of_each_pool(idempotent: bool) -> None:
    sessions = [session for session in sample() if len(session.turns) < 10]
    reports: list[Report] = []
    with running_stage(RECORDED, idempotent=idempotent, pause_s=0.4) as stage:
        playing = threading.Thread(target=lambda: reports.append(replay(stage, sessions, in_flight=SAMPLE)))
        playing.start()
        try:
            key = kill_with_a_write_in_hand(stage)
            for pool in ("coordinator", "parallel", "finalizer"):
                assert playing.is_alive(), f"all was played before a {pool} worker could be killed"
                kill(stage, pool)
        finally:
            playing.join()
        session_id, _ = place_of(key.split(":")[0])
        (repeats,) = [write.repeats for write in stage.database.writes(session_id) if write.key == key]
    (report,) = reports
    if idempotent:
        assert_as_recorded(report, sessions)
        assert repeats >= 1, "the killed worker's write was to be asked for again"
    else:
        assert report.unknown >= 1, "the killed worker's write was to be unknown"
        assert repeats == 0
        assert report.mismatched == []
        assert report.doubled == 0


@needs_recording
@pytest.mark.full
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("idempotent", [True, False])
def test_all_recorded_sessions_while_workers_of_each_pool_are_killed(idempotent: bool) -> None:
    sessions = load_sessions(RECORDED)
    with running_stage(RECORDED, idempotent=idempotent, kills=True) as stage:
        report = replay(stage, sessions, kill_every_s=5.0)
    assert all(report.kills[pool] >= 2 for pool in POOLS), report.kills
    assert is_good(report, 5.0), [(checked.session.session_id, checked.problems) for checked in report.mismatched]
    assert idempotent is False or report.unknown == 0
    assert report.doubled == 0


@needs_recording
@pytest.mark.full
@pytest.mark.timeout(600)
def test_all_recorded_sessions() -> None:
    sessions = load_sessions(RECORDED)
    with running_stage(RECORDED) as stage:
        report = replay(stage, sessions, in_flight=128)
    assert_as_recorded(report, sessions)
