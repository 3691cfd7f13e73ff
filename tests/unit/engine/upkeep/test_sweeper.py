"""A sweep is bounded, and what fails in it keeps nothing else from being done."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from brainq.contracts.claim import CallRef
from brainq.contracts.fleet import DueTurns, SweepResult
from brainq.engine.upkeep import due_checks as module
from brainq.engine.upkeep.due_checks import TURNS_AT_ONCE, DueChecks
from brainq.engine.upkeep.sweeper import Sweeper, SweepPart
from tests.support.stand_in import stand_in


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
