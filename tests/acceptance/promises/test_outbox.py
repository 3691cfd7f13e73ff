"""The same turns with a broker that is not the state's Redis: doorbells go through the outbox."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from brainq.contracts.status import TraceStatus
from tests.support.brains import diary
from tests.support.brains.diary import notes, open_gate
from tests.support.brains.obedient import script
from tests.support.wait import wait_until
from tests.support.world import World


@pytest.fixture(scope="module")
def outbox_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("outbox"), workers={"serial": 2}, broker_database=1)
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture
def world(outbox_world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv(diary.DIRECTORY, str(outbox_world.directory))
    return outbox_world


def test_turns_run_and_leave_no_bell_behind(world: World, sid: str) -> None:
    calls = [("read", {"name": "r1"}), ("read", {"name": "r2"}), ("write", {"name": "w"})]
    handles = [world.client.submit(f"{sid}-{n % 3}", script(calls, final=str(n))) for n in range(9)]
    assert [handle.result(timeout_s=60).text for handle in handles] == [str(n) for n in range(9)]
    for handle in handles:
        world.done(handle)
        world.all_events(handle)
    keys = world.redis.keys()
    assert not [key for key in keys if key.endswith(":outbox")]
    assert not [key for key in keys if key.startswith("bq:brainq.")]  # the queues are in the broker's database


def test_a_write_whose_worker_dies_is_unknown(world: World, sid: str) -> None:
    handle = world.client.submit(sid, script([("write", {"name": "w", "gate": sid})], final="told"))
    begun = wait_until(lambda: notes("start", turn=handle.turn_id), "the write started")[0]
    world.kill_the("serial", begun["pid"])
    open_gate(sid)
    assert handle.result(timeout_s=60).text == "told"
    assert world.status(handle) == TraceStatus.UNKNOWN
    assert len(notes("start", turn=handle.turn_id)) == 1
    world.launch_dead()
