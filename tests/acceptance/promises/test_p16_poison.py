"""P16: a turn whose work kills its process is found and quarantined; turns that shared the process go on."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from brainq.client.handle import TurnHandle
from brainq.contracts.status import Ending, StopReason
from tests.support.brains.diary import notes, open_gate
from tests.support.wait import wait_until
from tests.support.world import World

INNOCENTS = 6


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(
        tmp_path_factory.mktemp("poison"),
        environment={"BRAINQ_APP": "tests.support.brains.poison:brain"},
        threads={"finalizer": 6},  # four of its own steps at once, and the two that are left to results
    )
    try:
        yield made.start()
    finally:
        made.stop()


@contextmanager
def supervised(world: World) -> Generator[list[str]]:
    """Workers that die are started again; the list has their names."""
    over = threading.Event()
    died: list[str] = []

    def watch() -> None:
        while not over.wait(0.05):
            for worker in world.fleet.workers:
                if not worker.is_running:
                    died.append(worker.name)
                    worker.launch()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield died
    finally:
        over.set()
        watcher.join()


def submit(world: World, session: str, **orders: Any) -> TurnHandle:
    return world.client.submit(session, json.dumps(orders), limits={"timeout_s": 120})


@pytest.mark.full
def test_a_turn_that_kills_in_its_system_prompt_is_quarantined_and_its_neighbours_go_on(world: World) -> None:
    with supervised(world) as died:
        innocents = [submit(world, f"calm{n}", gate="together") for n in range(INNOCENTS)]
        poison = submit(world, "poison", gate="together", kill=True)
        for handle in (*innocents, poison):
            wait_until(lambda h=handle: notes("prompt", turn=h.turn_id), "all are at work", 30)
        open_gate("together")
        results = [handle.result(timeout_s=110) for handle in innocents]
        end = poison.result(timeout_s=110)
    assert [(result.ending, result.text) for result in results] == [(Ending.COMPLETED, "well")] * INNOCENTS
    assert (end.ending, end.stop_reason) == (Ending.FAILED, StopReason.LOST)
    assert end.error is not None
    assert "killed by signal 9, 2 times" in end.error
    assert len(notes("kill", turn=poison.turn_id)) <= 5, "two workers, its group, and twice by itself"
    assert died == ["coordinator"] * len(died)
    assert 1 <= len(died) <= 2


def test_a_read_that_kills_fails_and_its_neighbours_go_on(world: World) -> None:
    with supervised(world) as died:
        innocents = [submit(world, f"reads{n}", read={"gate": "reads"}) for n in range(INNOCENTS)]
        poison = submit(world, "poison-read", read={"gate": "reads", "kill": True})
        for handle in (*innocents, poison):
            wait_until(lambda h=handle: notes("look", turn=h.turn_id), "all are at work", 60)
        open_gate("reads")
        results = [handle.result(timeout_s=110) for handle in innocents]
        end = poison.result(timeout_s=110)
    assert [(r.ending, r.text) for r in results] == [(Ending.COMPLETED, "well looked")] * INNOCENTS
    assert end.ending is Ending.COMPLETED
    assert "exited with status 13" in (end.text or "")
    assert len(notes("kill", turn=poison.turn_id)) == 3
    assert died == ["parallel"] * 2


@pytest.mark.full
def test_a_finalizer_step_that_kills_runs_alone_and_its_neighbours_end(world: World) -> None:
    with supervised(world) as died:
        innocents = [submit(world, f"ends{n}", own={"gate": "own"}) for n in range(3)]
        poison = submit(world, "poison-own", own={"gate": "own", "kills": 4})
        for handle in (*innocents, poison):
            wait_until(lambda h=handle: notes("own", turn=h.turn_id), "all are at work", 60)
        open_gate("own")
        for handle in (*innocents, poison):
            wait_until(lambda h=handle: notes("own done", turn=h.turn_id), "all have ended", 110)
            world.done(handle)
    assert died == ["finalizer"] * 2
    assert len(notes("kill", turn=poison.turn_id)) == 4, "two of them were nobody else's end"
    (row,) = (row for row in world.wiring.store.steps.of_turn(poison.turn_id) if row.step == "own")
    assert (row.state, row.tries) == ("done", 5)
