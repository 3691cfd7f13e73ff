"""Tenants take turns in the tools' queues: a call does not wait behind all those of another tenant, and none is lost or
done twice for that, whoever dies meanwhile (P2, P3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from brainq.adapters.celery.names import LOCAL_WRITE_QUEUE, READ_ONLY_QUEUE, TAKEN_IN_TURN, queue_key
from brainq.client.handle import TurnHandle
from brainq.contracts.status import Ending
from tests.support.brains.diary import notes, open_gate
from tests.support.brains.obedient import script
from tests.support.wait import wait_until
from tests.support.world import World

FLOOD = 80
READERS = 2  # threads of the parallel pool; the serial pool has one
PLACES = {READ_ONLY_QUEUE: 16, LOCAL_WRITE_QUEUE: 2}
TOOLS = {READ_ONLY_QUEUE: "read", LOCAL_WRITE_QUEUE: "write"}
AT_WORK = {READ_ONLY_QUEUE: READERS, LOCAL_WRITE_QUEUE: 1}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(
        tmp_path,
        threads={"parallel": READERS, "serial": 1},
        environment={"BRAINQ_MAX_LIVE_TURNS": str(2 * FLOOD), "BRAINQ_MAX_LIVE_TURNS_A_TENANT": str(2 * FLOOD)},
    )
    try:
        redis, keys = world.start().wiring.state.redis, world.wiring.state.keys
        wait_until(lambda: redis.hget(keys.room, "all") == str(2 * FLOOD), "a sweeper said how large the room is")
        yield world
    finally:
        world.stop()


def depth(world: World, queue: str) -> int:
    """How many calls wait in a queue, in its list and for a place there."""
    redis, settings = world.wiring.state.redis, world.settings
    waiting = redis.zcard(world.wiring.state.keys.tenant_queue(TAKEN_IN_TURN[queue]))
    return int(redis.llen(queue_key(settings, queue))) + int(waiting)


def begun(queue: str) -> list[str]:
    """The sessions whose calls began, in that order."""
    return [str(row["name"]) for row in notes("start", tool=TOOLS[queue])]


def flooded(world: World, queue: str, turns: int) -> list[TurnHandle]:
    """Turns of tenant `a`, whose calls keep all threads and wait behind them; and last one of `b`."""
    flood = []
    for session in [f"a:{number}" for number in range(turns)] + ["b:1"]:
        message = script([(TOOLS[queue], {"name": session, "gate": "go"})])
        if session == "b:1":
            wait_until(lambda: depth(world, queue) == turns - AT_WORK[queue], "the flood's calls wait", 60)
        flood.append(world.client.submit(session, message))
    wait_until(lambda: depth(world, queue) == turns + 1 - AT_WORK[queue], "the other's call waits", 60)
    wait_until(lambda: len(begun(queue)) == AT_WORK[queue], "the pool's threads are inside their calls", 60)
    return flood


@pytest.mark.parametrize(
    "queue", [READ_ONLY_QUEUE, *(pytest.param(q, marks=pytest.mark.full) for q in TOOLS if q != READ_ONLY_QUEUE)]
)
def test_a_call_does_not_wait_behind_all_of_another_tenants(world: World, queue: str) -> None:
    handles = flooded(world, queue, FLOOD)
    open_gate("go")
    for handle in handles:
        assert handle.result(timeout_s=120).ending is Ending.COMPLETED
    order = begun(queue)
    assert order.index("b:1") + 1 <= AT_WORK[queue] + PLACES[queue] + AT_WORK[queue] + 1
    assert sorted(order) == sorted(handle.session_id for handle in handles), "each call began once"
    assert world.wiring.state.redis.keys("*{read_only}*") + world.wiring.state.redis.keys("*{local_write}*") == []


def test_calls_that_wait_outlive_their_workers_and_their_doorbells(world: World) -> None:
    redis, key = world.wiring.state.redis, queue_key(world.settings, READ_ONLY_QUEUE)
    handles = flooded(world, READ_ONLY_QUEUE, 60)
    world.kill_all("parallel")
    assert redis.llen(key) == PLACES[READ_ONLY_QUEUE]
    redis.delete(key)
    open_gate("go")
    world.launch_dead()
    for handle in handles:
        assert handle.result(timeout_s=120).ending is Ending.COMPLETED
        assert world.status(handle) == "completed"
    order = begun(READ_ONLY_QUEUE)
    assert len(order) == len(handles) + READERS, "only those that ran as their worker died began twice"
    assert redis.keys("*{read_only}*") == []
