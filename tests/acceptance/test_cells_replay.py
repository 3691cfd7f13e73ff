"""Recorded sessions of real models over two cells, while workers of both are killed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from brainq.client.connection import cells_of
from brainq.contracts.cell import hashed_cell
from brainq.devserver.local_fleet import POOLS
from examples.airline.playing import Report, replay
from examples.airline.recorded import RecordedSession, load_sessions, recorded_path
from examples.airline.replay import is_good
from tests.support.airline_cells import NAMES, CellsStage, two_airline_cells

RECORDED = recorded_path()
SESSIONS = 24
KILL_EVERY_S = 6.0
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
    sessions = balanced(load_sessions(RECORDED), SESSIONS * 2)
    with two_airline_cells(RECORDED, kills=True) as on:
        report = replay(on.stage, sessions, in_flight=16, kill_every_s=KILL_EVERY_S)
        assert all(report.kills[pool] >= 2 for pool in POOLS), report.kills  # one of each cell
        assert is_good(report, KILL_EVERY_S)
        assert_each_in_its_cell(on, report, sessions)
