"""Tenants take turns for little room while coordinators are killed: nobody waits for ever, and no room is lost (P2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from brainq.contracts.status import Ending
from tests.support.brains import diary
from tests.support.brains.diary import notes
from tests.support.brains.obedient import script
from tests.support.wait import wait_until
from tests.support.world import World

FLOOD, OTHERS, KILLS, ROOM = 40, 5, 3, 4


@pytest.mark.full
@pytest.mark.parametrize("broker_database", [0, 1], ids=["transactional", "outbox"])
def test_a_flood_and_another_tenant_while_coordinators_die(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broker_database: int
) -> None:
    world = World(
        tmp_path,
        workers={"coordinator": 2},
        threads={"coordinator": ROOM},
        environment={"BRAINQ_MAX_LIVE_TURNS": str(ROOM)},
        broker_database=broker_database,
    )
    monkeypatch.setenv(diary.DIRECTORY, str(tmp_path))
    room, keys = world.wiring.state.redis, world.wiring.state.keys
    try:
        world.start()
        wait_until(lambda: room.hget(keys.room, "all") == str(ROOM), "a sweeper said how large the room is")
        message = script([("read", {"name": "a"})], words_s=0.05, final="one two three four")
        flood = [world.client.submit(f"a:{n}", message) for n in range(FLOOD)]
        others = [world.client.submit(f"b:{n}", message) for n in range(OTHERS)]
        assert room.zcard(keys.room_live) <= ROOM
        killed: set[int] = set()
        for _ in range(KILLS):
            alive = {worker.process.pid for worker in world.fleet.of_pool("coordinator") if worker.process}
            begun = len(notes("thinking"))

            def fresh(alive: set[int] = alive, begun: int = begun) -> list[int]:
                return [row["pid"] for row in notes("thinking")[begun:] if row["pid"] in alive]

            victim = wait_until(fresh, "a coordinator thinks")[-1]
            world.kill_the("coordinator", victim)
            killed.add(victim)
            world.launch_dead()
        assert len(killed) == KILLS
        for handle in [*flood, *others]:
            assert handle.result(timeout_s=120).ending is Ending.COMPLETED
        order = list(dict.fromkeys(row["turn"] for row in notes("thinking") if row["step"] == 1))
        last = max(order.index(handle.turn_id) for handle in others)
        assert last <= ROOM + 2 * OTHERS + 2 * ROOM, "they took turns with the flood"
        for handle in [*flood, *others]:
            world.done(handle)
        assert [key for key in room.keys("*{room}*") if key != keys.room] == []
    finally:
        world.stop()
