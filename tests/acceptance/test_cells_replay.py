"""Recorded sessions of real models over two cells, while workers of both are killed and tenants move between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

import pytest

from brainq import Client
from brainq.app.devserver.local_fleet import POOLS
from brainq.client.connection import cells_of
from brainq.client.handle import TurnHandle
from brainq.contracts.cell import hashed_cell
from brainq.contrib.cells.move import TenantMover
from brainq.contrib.cells.placements import Directory, Moves
from brainq.contrib.cells.side import open_side
from examples.airline.checking import Played, check
from examples.airline.killing import Killer
from examples.airline.playing import RESULT_TIMEOUT_S, Report, replay
from examples.airline.recorded import RecordedSession, load_sessions, recorded_path
from examples.airline.replay import is_good
from tests.support.airline_cells import NAMES, CellsStage, two_airline_cells

RECORDED = recorded_path()
SESSIONS = 24
KILL_EVERY_S = 6.0
STALE_FRONTS = 3
pytestmark = pytest.mark.needs(RECORDED.is_file(), "recorded sessions")


def balanced(sessions: Sequence[RecordedSession], each: int) -> list[RecordedSession]:
    """The first so many of each cell. A session without a colon is a tenant of its own."""
    taken: Counter[str] = Counter()
    chosen: list[RecordedSession] = []
    for session in sessions:
        cell = hashed_cell(session.session_id, NAMES)
        if taken[cell] < each:
            taken[cell] += 1
            chosen.append(session)
    return chosen


def assert_each_in_its_cell(on: CellsStage, report: Report, sessions: Sequence[RecordedSession]) -> None:
    assert {checked.session.session_id: checked.problems for checked in report.mismatched} == {}
    assert report.doubled == 0
    assert report.turns == sum(len(session.turns) for session in sessions)
    for session in sessions:
        in_sql = {
            name: wiring.store.turns.get(session.turn_id(1)) is not None
            for name, wiring in cells_of(on.stage.client).each()
        }
        assert in_sql == {name: name == hashed_cell(session.session_id, NAMES) for name in NAMES}


@pytest.mark.full
@pytest.mark.timeout(900)
def test_recorded_sessions_end_as_recorded_over_two_cells() -> None:
    sessions = balanced(load_sessions(RECORDED), SESSIONS // 2)
    with two_airline_cells(RECORDED, kills=False) as on:
        report = replay(on.stage, sessions)
        assert_each_in_its_cell(on, report, sessions)
    assert report.unknown == 0


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_recorded_sessions_end_as_recorded_while_workers_of_both_cells_are_killed() -> None:
    sessions = balanced(load_sessions(RECORDED), SESSIONS * 4)
    with two_airline_cells(RECORDED, kills=True) as on:
        report = replay(on.stage, sessions, in_flight=16, kill_every_s=KILL_EVERY_S)
        # A free machine plays them all within a minute and a half; whom the killer takes is drawn.
        assert all(report.kills[pool] for pool in POOLS), report.kills
        assert sum(report.kills.values()) >= 2 * len(POOLS), report.kills
        assert is_good(report, KILL_EVERY_S)
        assert_each_in_its_cell(on, report, sessions)


def moved_in_the_middle(on: CellsStage, session_id: str) -> str:
    """Move the session's tenant to the other cell; the phase that it came to. Its live turn ends first."""
    there = next(name for name in NAMES if name != hashed_cell(session_id, NAMES))
    cells = cells_of(on.stage.client)
    home = cells.home.store.database
    return (
        TenantMover(
            directory=Directory(home),
            moves=Moves(home),
            open_side=lambda name: open_side(name, cells.of_name(name)),
            names=tuple(cells.names),
            owner=f"mover of {session_id}",
            wait_s=240.0,
        )
        .move(session_id, there)
        .phase
    )


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_tenants_move_in_the_middle_while_stale_fronts_go_on_submitting() -> None:
    """The later half of each session's turns is submitted during and after its move, by clients made before it."""
    sessions = [one for one in balanced(load_sessions(RECORDED), SESSIONS) if len(one.turns) > 3]
    with two_airline_cells(RECORDED, kills=True) as on, ExitStack() as stack:
        stale = [stack.enter_context(on.front()) for _ in range(STALE_FRONTS)]
        killer = stack.enter_context(Killer(on.stage.fleet, KILL_EVERY_S))
        with ThreadPoolExecutor(12) as threads:
            played = list(threads.map(partial(play_with_a_move, on, stale), enumerate(sessions)))
        for one in played:
            checked = check(one, on.stage.database, idempotent=True)
            assert checked.problems == [], one.session.session_id
            assert checked.doubled == 0
        assert sum(killer.kills.values()) >= 4
        for session in sessions:
            in_sql = {
                name: [
                    wiring.store.turns.get(session.turn_id(number)) is not None for number in (1, len(session.turns))
                ]
                for name, wiring in cells_of(on.stage.client).each()
            }
            assert in_sql[hashed_cell(session.session_id, NAMES)] == [False, False], "nothing is left where it was"
            assert sorted(in_sql.values()) == [[False, False], [True, True]]


def play_with_a_move(on: CellsStage, stale: Sequence[Client], numbered: tuple[int, RecordedSession]) -> Played:
    """Half of the turns, then the move, one turn while it is under way, and the rest behind it; by any front."""
    number, session = numbered
    half = len(session.turns) // 2

    def submit(which: int) -> TurnHandle:
        front = stale[(number + which) % len(stale)]
        return front.submit(session.session_id, session.turns[which - 1].user, turn_id=session.turn_id(which))

    handles = [submit(which) for which in range(1, half + 1)]
    with ThreadPoolExecutor(1) as mover:
        move = mover.submit(moved_in_the_middle, on, session.session_id)
        handles.append(submit(half + 1))
        assert move.result() == "done"
    handles += [submit(which) for which in range(half + 2, len(session.turns) + 1)]
    again = submit(half + 1)  # a request that is repeated after the move meets its first turn
    assert again.turn_id == handles[half].turn_id
    results = tuple(handle.result(RESULT_TIMEOUT_S) for handle in handles)
    snapshots = [handle.snapshot() for handle in handles]
    return Played(session, results, tuple(trace for seen in snapshots if seen is not None for trace in seen.trace))
