"""The sweeper, its walks through rows, and the capacity that it publishes."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from brainq.contracts.claim import CallRef
from brainq.contracts.fleet import ComparedPage, DueTurns, SweepResult
from brainq.engine.upkeep import due_checks as module
from brainq.engine.upkeep import sweeper as row_walks_module
from brainq.engine.upkeep.due_checks import TURNS_AT_ONCE, DueChecks
from brainq.engine.upkeep.sweeper import (
    VISIBLE_AFTER_S,
    CapacityPublisher,
    RowWalk,
    Sweeper,
    SweepPart,
    TurnCapacity,
    turn_capacity,
)
from tests.support.stand_in import stand_in

# A sweep is bounded, and what fails in it keeps nothing else from being done.


class Index:
    """Turns that are due; `broken` ones cannot be looked at."""

    def __init__(self, turns: list[str]) -> None:
        self.turns = turns
        self.broken: set[str] = set()
        self.stepped = 0
        self.seen: list[str] = []
        self.actions: dict[str, tuple[tuple[str, ...], ...]] = {}
        self.dropped: list[str] = []
        self.epochs: Iterator[str] = itertools.repeat("1")
        self.lapse_gone: Any = tuple

    def due(self, most: int, hold_s: float) -> DueTurns:
        taken, self.turns = self.turns[:most], self.turns[most:]
        return DueTurns(tuple(("s", turn) for turn in taken), self.stepped)

    def look(self, turns: Sequence[tuple[str, str]]) -> list[SweepResult | Exception]:
        return [self._look(turn_id) for _, turn_id in turns]

    def _look(self, turn_id: str) -> SweepResult | Exception:
        if turn_id in self.broken:
            return ValueError("it cannot be read")
        self.seen.append(turn_id)
        return SweepResult(1, self.actions.get(turn_id, ()))

    def drop(self, turn: tuple[str, str]) -> None:
        self.dropped.append(turn[1])

    def take_comparing(self, for_s: float) -> bool:
        return True

    def epoch(self) -> str:
        return next(self.epochs)


class Done:
    """Notes which parts of a sweep were done; those in `broken` fail."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.broken: set[str] = set()

    def of(self, name: str) -> Any:
        def part(*_: Any) -> Any:
            self.did.append(name)
            if name in self.broken:
                raise ConnectionError("it is away")
            replies = {
                "lanes": ("1", [CallRef("s", "t", "c1-0")]),
                "gone": (),
                "readmit": False,
                "expire": ("NONE", ""),
            }
            return replies.get(name)

        return part


@pytest.fixture
def done() -> Done:
    return Done()


ROUND = ("stops", "compare", "brakes")
DUE_WORK = ("judges", "schedules")


def sweeper(index: Index, done: Done) -> Sweeper:
    index.lapse_gone = done.of("gone")
    checks: dict[str, Any] = {
        "state": index,
        "calls": SimpleNamespace(lapsed_lanes=done.of("lanes"), check_lanes=done.of("check"), expire=done.of("expire")),
        "rescuer": SimpleNamespace(rescue=done.of("rescue")),
        "lost_turns": SimpleNamespace(readmit=done.of("readmit")),
        "coordinator": SimpleNamespace(advance=done.of("end")),
        "turns": SimpleNamespace(end_wait=done.of("waited"), skip_opening=done.of("skip")),
        "finalizer": SimpleNamespace(deliver=done.of("deliver")),
        "children": SimpleNamespace(check_parent=done.of("parent")),
    }
    return Sweeper(
        every_s=0.01,
        state=stand_in(index),
        checks=DueChecks(every_s=0.01, **checks),
        comparisons=[SweepPart(name, done.of(name)) for name in ROUND],
        due_work=[SweepPart(name, done.of(name)) for name in DUE_WORK],
    )


class Once:
    """A stop that lets one sweep happen."""

    def __init__(self, sweeps: int = 1) -> None:
        self.left = sweeps

    def wait(self, timeout: float) -> bool:
        self.left -= 1
        return self.left < 0


def test_turns_that_never_stop_being_due_do_not_starve_the_rest(done: Done, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(0.0, 0.3)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    index = Index([f"t{n}" for n in range(100_000)])
    sweeper(index, done).run(Once())  # type: ignore[arg-type]
    assert 0 < len(index.seen) <= 4 * TURNS_AT_ONCE
    assert done.did == ["gone", "lanes", "check", *ROUND, *DUE_WORK]


@pytest.mark.parametrize("broken", ["lanes", "check", "stops", "compare", "brakes", "judges", "schedules"])
def test_a_part_that_fails_keeps_no_other_from_being_done(
    done: Done, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "brainq.upkeep")
    index = Index(["t1"])
    done.broken = {broken}
    made = sweeper(index, done)
    made.run(Once(11))  # type: ignore[arg-type]
    assert index.seen == ["t1"]
    assert {"lanes", *ROUND, *DUE_WORK} <= set(done.did)
    if broken != "check":  # of one lane: the others are looked at
        assert caplog.text.count(") failed and will be tried again") == 1
        done.broken = set()
        made.run(Once())  # type: ignore[arg-type]
        assert caplog.text.count(") works again") == 1


def test_a_turn_that_cannot_be_looked_at_hides_no_other(done: Done) -> None:
    index = Index(["t1", "t2", "t3"])
    index.broken = {"t1", "t2"}
    index.actions = {"t3": (("deliver",),)}
    sweeper(index, done).sweep()
    assert index.seen == ["t3"]
    assert "deliver" in done.did


def test_a_turn_that_neither_redis_nor_sql_knows_is_looked_at_no_more(done: Done) -> None:
    index = Index(["t1", "t2"])
    index.actions = {"t1": (("readmit",),)}
    sweeper(index, done).sweep()
    assert index.dropped == ["t1"]


def test_while_sql_cannot_say_whether_it_knows_a_turn_that_is_looked_at_again(done: Done) -> None:
    index = Index(["t1"])
    index.actions = {"t1": (("readmit",),)}
    done.broken = {"readmit"}
    sweeper(index, done).sweep()
    assert not index.dropped


def test_each_part_of_a_round_gets_the_epoch_of_redis(done: Done) -> None:
    index, epochs = Index([]), list[str]()
    made = sweeper(index, done)
    made.comparisons = [SweepPart("compare", epochs.append)]
    index.epochs = iter(["1", "2"])
    made.run(Once(10))  # type: ignore[arg-type]
    assert epochs == ["1", "2"]


def test_an_action_that_fails_keeps_no_other_from_being_done(done: Done) -> None:
    index = Index(["t1", "t2"])
    index.actions = {"t1": (("rescue", "c1-0", "1"), ("deliver",)), "t2": (("end",),)}
    done.broken = {"rescue", "end"}
    sweeper(index, done).sweep()
    assert [word for word in done.did if word in ("rescue", "deliver", "end")] == ["rescue", "deliver", "end"]


def test_where_every_look_fails_redis_is_away_and_the_pass_ends(done: Done) -> None:
    index = Index([f"t{n}" for n in range(50)])
    index.broken = set(index.turns)
    made = sweeper(index, done)
    made.sweep()
    assert done.did[:2] == ["gone", "lanes"]


def test_a_clock_that_stepped_back_is_said(done: Done, caplog: pytest.LogCaptureFixture) -> None:
    index = Index(["t1"])
    index.stepped = 1
    sweeper(index, done).sweep()
    assert "Redis' clock was set back" in caplog.text


# Which rows are compared, and when.


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
    monkeypatch.setattr(row_walks_module, "time", clock)
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


# How large the fleet's room is.


@pytest.mark.parametrize(
    ("threads", "most", "a_tenant", "size"),
    [
        (100, None, None, TurnCapacity(125, 88)),
        (300, None, None, TurnCapacity(375, 263)),
        (1, None, None, TurnCapacity(2, 2)),
        (0, None, None, TurnCapacity(125, 88)),
        (100, 50, None, TurnCapacity(50, 35)),
        (100, 1, None, TurnCapacity(1, 1)),
        (100, 50, 50, TurnCapacity(50, 50)),
        (100, None, 10, TurnCapacity(125, 10)),
        (100, 5, 10, TurnCapacity(5, 5)),
    ],
)
def test_one_tenant_keeps_most_threads_busy_and_some_are_for_others(
    threads: int, most: int | None, a_tenant: int | None, size: TurnCapacity
) -> None:
    assert turn_capacity(threads, most, a_tenant) == size


def test_a_keeper_says_what_the_coordinators_that_are_alive_can_work_on() -> None:
    said: list[object] = []

    class Room:
        def set_capacity(self, size: int, share: int, own: Mapping[str, int], caps: Mapping[str, int]) -> int:
            said.append((size, share, dict(own), dict(caps)))
            return 0

    alive = [4]
    publisher = CapacityPublisher(
        state=stand_in(Room()),
        threads=lambda: sum(alive),
        max_turns=None,
        max_turns_a_tenant=None,
        own={"acme:": 1},
        caps={"lab": 2},
        cap=None,
    )
    publisher.apply()
    alive.append(4)
    publisher.apply()
    assert said == [(5, 4, {"acme:": 1}, {"lab": 2}), (10, 7, {"acme:": 1}, {"lab": 2})]


@pytest.mark.parametrize(
    ("cap", "size"), [(2, TurnCapacity(2, 2)), (100, TurnCapacity(100, 88)), (200, TurnCapacity(125, 88))]
)
def test_the_cap_of_the_only_brain_is_a_room_that_one_tenant_may_have(cap: int, size: TurnCapacity) -> None:
    assert turn_capacity(100, None, None, cap) == size
