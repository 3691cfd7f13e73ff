"""A sweep is bounded, and what fails in it keeps nothing else from being done."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from brainq.contracts.claim import CallRef
from brainq.contracts.fleet import ComparedPage, DueTurns, SweepResult
from brainq.engine.upkeep import sweeper as module
from brainq.engine.upkeep.sweeper import RowWalk, Sweeper


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


NO_ROWS = ComparedPage(0, more=False)


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
                "facts": None,
                "judges": (),
                "steps": (),
                "input": False,
                "expire": ("NONE", ""),
            }
            return replies.get(name, NO_ROWS)

        return part


@pytest.fixture
def done() -> Done:
    return Done()


def sweeper(index: Index, done: Done) -> Sweeper:
    index.lapse_gone = done.of("gone")
    parts: dict[str, Any] = {
        "state": index,
        "calls": SimpleNamespace(lapsed_lanes=done.of("lanes"), check_lanes=done.of("check"), expire=done.of("expire")),
        "rescuer": SimpleNamespace(rescue=done.of("rescue")),
        "lost_turns": SimpleNamespace(bring_in=done.of("come"), compare=done.of("compare"), readmit=done.of("readmit")),
        "coordinator": SimpleNamespace(advance=done.of("end")),
        "turns": SimpleNamespace(end_wait=done.of("waited"), skip_opening=done.of("skip")),
        "finalizer": SimpleNamespace(deliver=done.of("deliver")),
        "judgements": SimpleNamespace(due=done.of("judges")),
        "step_jobs": SimpleNamespace(due=done.of("steps")),
        "finals": SimpleNamespace(ring_judge=None, ring_step=None),
        "children": SimpleNamespace(check_parent=done.of("parent")),
        "inputs": SimpleNamespace(heal=done.of("heal"), bring_in=done.of("input")),
        "tenants": SimpleNamespace(restore=lambda: 0, arrivals=lambda: {"acme:": -1}),
        "approvals": SimpleNamespace(heal=done.of("approvals")),
        "brakes": SimpleNamespace(heal=done.of("brakes")),
        "stops": SimpleNamespace(heal=done.of("stops")),
        "schedules": SimpleNamespace(run=done.of("schedules")),
        "capacity": SimpleNamespace(apply=done.of("room")),
    }
    return Sweeper(every_s=0.01, **parts)


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
    assert 0 < len(index.seen) <= 4 * module.TURNS_AT_ONCE
    compared = ["compare", "brakes", "heal", "approvals"]
    last = ["judges", "steps", "schedules"]
    assert done.did == ["gone", "lanes", "check", "stops", "room", "come", "input", *compared, *last]


@pytest.mark.parametrize(
    "broken", ["lanes", "check", "come", "compare", "brakes", "heal", "approvals", "judges", "steps", "schedules"]
)
def test_a_part_that_fails_keeps_no_other_from_being_done(
    done: Done, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "brainq.upkeep")
    index = Index(["t1"])
    done.broken = {broken}
    made = sweeper(index, done)
    made.run(Once(11))  # type: ignore[arg-type]
    assert index.seen == ["t1"]
    assert {"lanes", "compare", "brakes", "heal", "approvals", "judges"} <= set(done.did)
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


def test_all_rows_are_compared_again_when_redis_may_have_lost_data(done: Done) -> None:
    index = Index([])
    made = sweeper(index, done)
    began: list[int] = []

    def compare(after_row: int) -> ComparedPage:
        began.append(after_row)
        return ComparedPage(after_row + 500, more=after_row < 1000)

    made._walks = {"compare SQL with Redis": RowWalk(compare)}  # pyright: ignore[reportPrivateUsage]
    index.epochs = iter(["1", "1", "2"])
    made.run(Once(11))  # type: ignore[arg-type]
    assert began == [0, 500, 1000, 0, 500, 1000, 0, 500, 1000]


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
