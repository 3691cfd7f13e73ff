"""Postgres fails over under load, with workers killed beside it: turns end, and no write runs twice."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from brainq.client.handle import TurnHandle
from brainq.contracts.ids import new_turn_id
from brainq.contracts.status import Ending, TraceStatus
from tests.support.brains import diary
from tests.support.brains.diary import notes, open_gate
from tests.support.brains.obedient import script
from tests.support.postgres_pair import PostgresPair
from tests.support.wait import insist, wait_until
from tests.support.world import World

POOLS = ("coordinator", "parallel", "serial", "finalizer")


@pytest.fixture(scope="module")
def pair() -> Iterator[PostgresPair]:
    with PostgresPair(synchronous=True) as made:
        yield made


@pytest.fixture(scope="module")
def failing_world(tmp_path_factory: pytest.TempPathFactory, pair: PostgresPair) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("failing"), sql_url=pair.url(), workers=dict.fromkeys(POOLS, 2))
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture
def world(failing_world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv(diary.DIRECTORY, str(failing_world.directory))
    yield failing_world
    failing_world.launch_dead()


@contextmanager
def load(world: World, sid: str) -> Generator[list[TurnHandle]]:
    """Submit a turn with a read and a write all the time, each until it is accepted."""
    handles, over = list[TurnHandle](), threading.Event()
    message = script([("read", {"name": "r"})], [("write", {"name": "w"})], final="done")

    def submit() -> None:
        while not over.wait(0.1):
            turn = partial(world.client.submit, f"{sid}-{len(handles) % 4}", message, turn_id=new_turn_id())
            handles.append(insist(turn))

    producer = threading.Thread(target=submit)
    producer.start()
    try:
        yield handles
    finally:
        over.set()
        producer.join()


def ended(world: World, handles: list[TurnHandle]) -> None:
    """Wait until all turns completed; their writes ran at most once, and SQL has all rows of each."""
    for handle in handles:
        assert insist(lambda handle=handle: handle.result(timeout_s=90)).ending is Ending.COMPLETED
        writes = notes("start", turn=handle.turn_id, tool="write")
        status = world.trace(handle)[1].status
        assert len(writes) == (1 if status == TraceStatus.COMPLETED else min(1, len(writes)))
        assert status in (TraceStatus.COMPLETED, TraceStatus.UNKNOWN)
        insist(lambda handle=handle: world.done(handle))
        counts = world.row_counts(handle)
        assert (counts["messages"], counts["decisions"], counts["calls"] >= 1) == (2, 1, True)


def in_a_write(world: World, sid: str) -> tuple[TurnHandle, int]:
    """A turn whose write runs, and the process that runs it."""
    handle = world.client.submit(f"{sid}-held", script([("write", {"name": "w", "gate": f"w-{sid}"})]))
    begun = wait_until(lambda: notes("start", turn=handle.turn_id), "the write began")
    return handle, int(begun[0]["pid"])


def test_the_primary_and_a_worker_in_a_write_are_killed_under_load(world: World, pair: PostgresPair, sid: str) -> None:
    held, pid = in_a_write(world, sid)
    with load(world, sid) as handles:
        wait_until(lambda: len(handles) >= 5, "turns are submitted")
        world.kill_the("serial", pid)
        assert pair.fail_over() > 3
        open_gate(f"w-{sid}")
        seen = len(handles)
        wait_until(lambda: len(handles) >= seen + 5, "turns are accepted by the new primary")
    world.launch_dead()
    pair.follow()
    ended(world, handles)
    assert insist(lambda: held.result(timeout_s=90)).ending is Ending.COMPLETED
    assert world.status(held) == TraceStatus.UNKNOWN
    assert len(notes("start", turn=held.turn_id)) == 1


@pytest.mark.full
@pytest.mark.parametrize("pool", ["coordinator", "finalizer"])
def test_a_planned_switch_and_a_killed_worker_under_load(world: World, pair: PostgresPair, sid: str, pool: str) -> None:
    with load(world, sid) as handles:
        for nth in (1, 2, 3):
            wait_until(lambda enough=5 * nth: len(handles) >= enough, "turns are submitted")
            world.kill_all(pool)
            pair.switch()
            world.launch_dead()
    ended(world, handles)


@pytest.mark.full
def test_a_write_whose_intent_the_new_primary_lacks_does_not_run_twice(
    tmp_path_factory: pytest.TempPathFactory, sid: str
) -> None:
    """The standby is asynchronous and behind: it does not have the turn, nor the intent of its write."""
    with PostgresPair() as pair:
        world = World(tmp_path_factory.mktemp("behind"), sql_url=pair.url(), workers=dict.fromkeys(POOLS, 2))
        try:
            world.start()
            pair.until_followed()
            pair.primary.wal.freeze()
            held, pid = in_a_write(world, sid)
            old = pair.primary
            pair.fail_over()
            old.wal.thaw()
            world.kill_the("serial", pid)
            open_gate(f"w-{sid}")
            assert insist(lambda: held.result(timeout_s=90)).ending is Ending.COMPLETED, "Redis has the turn"
            assert world.status(held) == TraceStatus.UNKNOWN
            assert len(notes("start", turn=held.turn_id)) == 1
            assert world.wiring.store.turns.get(held.turn_id) is None, "its row is lost"
        finally:
            world.stop()
