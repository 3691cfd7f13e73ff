"""Which rows are compared, and when."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from brainq.contracts.fleet import ComparedPage
from brainq.engine.upkeep import sweeper as module
from brainq.engine.upkeep.sweeper import VISIBLE_AFTER_S, RowWalk

PAGE = 10


class Table:
    """Rows 1 to `last`, and which were compared since `compared` was cleared."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.compared: list[int] = []

    def heal(self, after_row: int) -> ComparedPage:
        rows = range(after_row + 1, min(after_row + PAGE, self.last) + 1)
        self.compared += rows
        return ComparedPage(rows[-1] if rows else after_row, more=len(rows) == PAGE, healed=len(rows))

    def walked(self, walk: RowWalk) -> list[int]:
        self.compared.clear()
        walk.walk(limit_s=1000.0)
        return self.compared


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(module, "time", clock)
    return clock


def settled(table: Table, clock: SimpleNamespace) -> RowWalk:
    """A walk that has compared all rows, a while ago."""
    walk = RowWalk(table.heal)
    assert table.walked(walk) == list(range(1, table.last + 1))
    clock.now += VISIBLE_AFTER_S
    table.walked(walk)
    return walk


def test_old_rows_are_compared_a_page_at_a_time_and_new_ones_each_time(clock: SimpleNamespace) -> None:
    table = Table(35)
    walk = settled(table, clock)
    table.last = 38
    new = [36, 37, 38]
    assert table.walked(walk) == [*new, *range(11, 21)], "settling has compared the first page"
    assert table.walked(walk) == [*new, *range(21, 31)]
    assert table.walked(walk) == [*new, *range(31, 39)]
    assert table.walked(walk) == [*new, *range(1, 11)]


def test_a_row_that_comes_in_sight_after_a_higher_one_is_new(clock: SimpleNamespace) -> None:
    table = Table(5)
    walk = settled(table, clock)
    table.last = 9
    table.walked(walk)
    clock.now += VISIBLE_AFTER_S - 1
    assert {6, 7, 8, 9} <= set(table.walked(walk))


def test_all_are_compared_anew_when_redis_may_have_lost_data(clock: SimpleNamespace) -> None:
    table = Table(35)
    walk = settled(table, clock)
    walk.run("1")
    clock.now += VISIBLE_AFTER_S
    walk.run("1")
    for epoch, compared in (("1", list(range(11, 21))), ("2", list(range(1, 36)))):
        table.compared.clear()
        walk.run(epoch)
        assert table.compared == compared


def test_what_takes_too_long_goes_on_where_it_stood(clock: SimpleNamespace) -> None:
    table = Table(35)

    def slowly(after_row: int) -> ComparedPage:
        clock.now += 0.6
        return table.heal(after_row)

    walk = RowWalk(slowly)
    assert walk.walk(limit_s=1.0) == 20
    assert walk.walk(limit_s=1.0) == 15
    assert table.compared == list(range(1, 36))


def test_what_fails_is_compared_the_next_time(clock: SimpleNamespace) -> None:
    table = Table(15)
    away = [True]

    def heal(after_row: int) -> ComparedPage:
        if after_row and away:
            away.clear()
            raise ConnectionError("it is away")
        return table.heal(after_row)

    walk = RowWalk(heal)
    with pytest.raises(ConnectionError):
        walk.walk(limit_s=1.0)
    walk.walk(limit_s=1.0)
    assert table.compared == list(range(1, 16))
