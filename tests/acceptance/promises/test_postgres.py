"""The promises that rest on SQL, on Postgres."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from brainq.contracts.status import TraceStatus
from tests.support.brains import diary
from tests.support.brains.diary import notes, open_gate
from tests.support.brains.obedient import script
from tests.support.postgres import postgres_url
from tests.support.wait import wait_until
from tests.support.world import World


@pytest.fixture(scope="module")
def postgres_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with postgres_url() as url:
        made = World(tmp_path_factory.mktemp("postgres"), sql_url=url, workers={"serial": 2})
        try:
            yield made.start()
        finally:
            made.stop()


@pytest.fixture
def world(postgres_world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv(diary.DIRECTORY, str(postgres_world.directory))
    return postgres_world


def test_turns_run_and_are_recorded_once(world: World, sid: str) -> None:
    handles = [
        world.client.submit(f"{sid}-{n % 4}", script([("write", {"name": str(n)})], final=str(n)))
        for n in range(12)
    ]
    assert [handle.result(timeout_s=60).text for handle in handles] == [str(n) for n in range(12)]
    for handle in handles:
        world.done(handle)
        world.all_events(handle)
        assert world.row_counts(handle) == {"messages": 2, "decisions": 1, "calls": 1}


def test_p3_a_write_whose_worker_dies_is_unknown(world: World, sid: str) -> None:
    handle = world.client.submit(sid, script([("write", {"name": "w", "gate": sid})], final="$seen"))
    begun = wait_until(lambda: notes("start", turn=handle.turn_id), "the write started")[0]
    world.kill_the("serial", begun["pid"])
    open_gate(sid)
    (told,) = [m for m in json.loads(handle.result(timeout_s=60).text) if m["role"] == "tool"]
    assert "may or may not have taken effect" in told["text"]
    assert world.status(handle) == TraceStatus.UNKNOWN
    assert len(notes("start", turn=handle.turn_id)) == 1
