"""Results wait for no step behind other turns' results, however long those take (P9)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from brainq.contracts.status import Ending
from tests.support.brains.diary import notes, open_gate, order
from tests.support.brains.obedient import script
from tests.support.wait import wait_until
from tests.support.world import World

THREADS, SLOW = 4, 8
LEFT_FREE = 2


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path, threads={"finalizer": THREADS})
    try:
        yield world.start()
    finally:
        world.stop()


def held(without: int = 0) -> int:
    """How many threads are at the step behind the result, those of a process that is dead aside."""
    return len([note for note in notes("extra") if note["pid"] != without]) - len(notes("extra.end"))


def test_a_result_waits_for_no_step_behind_other_results(world: World) -> None:
    order("extra.gate", "slow")
    slow = [world.client.submit(f"a:{number}", script()) for number in range(SLOW)]
    for handle in slow:
        assert handle.result(timeout_s=30).ending is Ending.COMPLETED
    wait_until(lambda: held() == THREADS - LEFT_FREE, "as many threads as may are at slow steps")
    for number in range(THREADS):  # and more of them come to wait
        assert world.client.run(f"b:{number}", script(), timeout_s=30).ending is Ending.COMPLETED
    assert held() == THREADS - LEFT_FREE
    open_gate("slow")
    wait_until(lambda: len(notes("extra.end")) == SLOW + THREADS, "all of them came to their end")
    for handle in slow:
        world.done(handle)


def test_a_worker_that_finds_many_of_them_takes_no_more_than_it_may(world: World) -> None:
    order("extra.gate", "slow")
    slow = [world.client.submit(f"a:{number}", script()) for number in range(SLOW)]
    for handle in slow:
        assert handle.result(timeout_s=30).ending is Ending.COMPLETED
    wait_until(lambda: held() == THREADS - LEFT_FREE, "as many threads as may are at slow steps")
    dead = notes("extra")[0]["pid"]
    world.kill_the("finalizer", dead)
    world.launch_dead()
    wait_until(lambda: held(dead) == THREADS - LEFT_FREE, "the next worker is at slow steps, too")
    assert world.client.run("b:1", script(), timeout_s=30).ending is Ending.COMPLETED
    assert held(dead) == THREADS - LEFT_FREE
    open_gate("slow")
    ended = len(slow) + 1
    wait_until(lambda: len({note["turn"] for note in notes("extra.end")}) == ended, "all of them came to their end")
