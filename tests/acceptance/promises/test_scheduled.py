"""Schedules over a real fleet: two coordinators sweep, each is killed in its turn, and each due instant is one turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from brainq.contracts.status import Ending
from tests.support.wait import wait_until
from tests.support.world import World

COUNT = 12


@pytest.mark.full
@pytest.mark.timeout(300)
def test_each_due_instant_is_one_turn_while_sweepers_are_killed(tmp_path: Path) -> None:
    world = World(
        tmp_path,
        workers={"coordinator": 2, "parallel": 0, "serial": 0},
        environment={"BRAINQ_APP": "tests.support.brains.plain:brain"},
    )
    try:
        world.start()
        client = world.client
        for number in range(COUNT):
            client.schedule(f"one-{number}", f"s-{number}", "hi", in_s=number / 4)
        for worker in world.fleet.of_pool("coordinator"):
            assert worker.process is not None
            wait_until(lambda: client.turns(limit=100) != (), "one has begun", 60)
            world.kill_the("coordinator", worker.process.pid)
            world.launch_dead()
        wait_until(lambda: all(one.next_at is None for one in client.schedules()), "all were due", 120)
        turns = [client.handle(one.last_turn_id) for one in client.schedules()]
        assert len(client.turns(limit=100)) == COUNT
        results = [turn.result(timeout_s=60) for turn in turns]
        assert {(result.ending, result.error) for result in results} == {(Ending.COMPLETED, None)}
    finally:
        world.stop()
