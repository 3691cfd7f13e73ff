"""Middleware on real workers: around the work of four pools, and called again where a worker was killed in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from brainq.client.handle import TurnHandle
from brainq.contracts.status import Ending, TraceStatus
from tests.support.brains import diary
from tests.support.brains.diary import notes, open_gate, order
from tests.support.brains.obedient import script
from tests.support.wait import wait_until
from tests.support.world import World

POOLS = ("coordinator", "parallel", "serial", "finalizer")
WRITE = [("write", {"name": "w"})]


@pytest.fixture(scope="module")
def middled_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    app = {"BRAINQ_APP": "tests.support.brains.middled:brain"}
    made = World(tmp_path_factory.mktemp("middled"), workers=dict.fromkeys(POOLS, 2), environment=app)
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture
def world(middled_world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv(diary.DIRECTORY, str(middled_world.directory))
    yield middled_world
    middled_world.launch_dead()


def called(turn: TurnHandle, method: str, fact: str = "by") -> list[Any]:
    return [row[fact] for row in notes(method, turn=turn.turn_id)]


def killed_in(world: World, pool: str, method: str, session: str) -> TurnHandle:
    """A turn with one write, whose worker is killed while `outer` waits in this method."""
    order(f"{method}.gate.{session}", session)
    turn = world.client.submit(session, script(WRITE, final="done"))
    waits = wait_until(lambda: notes(method, turn=turn.turn_id, by="outer"), f"{method} was called")[0]
    world.kill_the(pool, waits["pid"])
    open_gate(session)
    result = turn.result(timeout_s=60)
    assert (result.ending, result.text) == (Ending.COMPLETED, "done")
    world.done(turn)
    return turn


def test_two_are_called_around_the_work_of_all_pools(world: World) -> None:
    turn = world.client.submit("s-all", script([("read", {"name": "r"})], WRITE, final="done"))
    assert turn.result(timeout_s=60).text == "done"
    world.done(turn)
    for method in ("before_turn", "before_step", "before_call"):
        assert called(turn, method)[:2] == ["outer", "inner"]
    for method in ("after_step", "after_call", "after_turn", "after_final_step"):
        assert called(turn, method)[:2] == ["inner", "outer"]
    assert (len(called(turn, "before_step")), len(called(turn, "before_call"))) == (2 * 3, 2 * 2)
    pids = {
        row["pid"]
        for method in ("before_step", "before_call", "after_turn")
        for row in notes(method, turn=turn.turn_id)
    }
    assert len(pids) >= 4, "of a coordinator, a parallel, a serial and a finalizer worker"


@pytest.mark.parametrize("method", ["before_turn", "before_step", "after_step"])
def test_a_coordinator_that_is_killed_in_it_has_it_called_again(world: World, method: str) -> None:
    turn = killed_in(world, "coordinator", method, f"s-{method}")
    assert called(turn, method).count("outer") >= 2, "the next owner of the turn calls it"
    if method != "before_turn":
        attempts = [row["attempt"] for row in notes(method, turn=turn.turn_id, by="outer", step=1)]
        assert attempts == [1, 2], "as another attempt at the step"
    assert called(turn, "after_turn").count("outer") == 1


def test_a_call_that_is_killed_before_it_starts_is_made_once(world: World) -> None:
    """No intent was written: the next attempt may start it, and meets the middleware again."""
    turn = killed_in(world, "serial", "before_call", "s-before-call")
    assert [row["attempt"] for row in notes("before_call", turn=turn.turn_id, by="outer")] == [1, 2]
    assert [row["attempt"] for row in notes("start", turn=turn.turn_id)] == [2]
    assert world.status(turn) is TraceStatus.COMPLETED


def test_a_call_that_is_killed_behind_its_function_is_not_made_again(world: World) -> None:
    """Its outcome is in SQL already; the coordinator that reads it calls the middleware again, with the same key."""
    turn = killed_in(world, "serial", "after_call", "s-after-call")
    assert len(notes("start", turn=turn.turn_id)) == 1
    assert world.status(turn) is TraceStatus.COMPLETED
    keys = called(turn, "after_call", "key")
    assert len(keys) >= 3
    assert len(set(keys)) == 1
    assert {row["kind"] for row in notes("after_call", turn=turn.turn_id)} == {"success"}


def test_a_finalizer_that_is_killed_in_it_has_it_called_again(world: World) -> None:
    turn = killed_in(world, "finalizer", "after_turn", "s-after-turn")
    assert called(turn, "after_turn").count("outer") == 2
    assert len(set(called(turn, "after_turn", "key"))) == 1
