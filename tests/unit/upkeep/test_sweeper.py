"""A sweep is bounded, and what fails in it keeps nothing else from being done."""

from __future__ import annotations

import itertools
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from brainq.contracts.claim import CallRef
from brainq.contracts.sweep import Due, Look
from brainq.upkeep import sweeper as module
from brainq.upkeep.sweeper import Sweeper


class Index:
    """Turns that are due; `broken` ones cannot be looked at."""

    def __init__(self, turns: list[str]) -> None:
        self.turns = turns
        self.broken: set[str] = set()
        self.stepped = 0
        self.looked: list[str] = []
        self.actions: dict[str, tuple[tuple[str, ...], ...]] = {}
        self.again_at: dict[str, tuple[str, int]] = {}

    def due(self, most: int, hold_s: float) -> Due:
        taken, self.turns = self.turns[:most], self.turns[most:]
        return Due(tuple(("s", turn) for turn in taken), "m", self.stepped)

    def look(self, session_id: str, turn_id: str) -> Look:
        if turn_id in self.broken:
            raise ValueError("it cannot be read")
        self.looked.append(turn_id)
        return Look("LOOK", 5000, 1, self.actions.get(turn_id, ()))

    def again(self, session_id: str, turn_id: str, mark: str, after_ms: int) -> None:
        self.again_at[turn_id] = (mark, after_ms)

    def take_comparing(self, for_s: float) -> bool:
        return True


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
            return ("1", [CallRef("s", "t", "c1-0")]) if name == "lanes" else None

        return part


@pytest.fixture
def done() -> Done:
    return Done()


def sweeper(index: Index, done: Done) -> Sweeper:
    parts: dict[str, Any] = {
        "index": index,
        "lanes": SimpleNamespace(lapsed=done.of("lanes"), check=done.of("check")),
        "rescuer": SimpleNamespace(rescue=done.of("rescue")),
        "comparer": SimpleNamespace(compare=done.of("compare")),
        "advance": done.of("end"),
        "deliver": done.of("deliver"),
        "asides": SimpleNamespace(skip_opening=done.of("skip")),
        "judges": SimpleNamespace(ring=done.of("judges")),
        "parks": SimpleNamespace(expire=done.of("expire")),
        "children": SimpleNamespace(check_parent=done.of("parent")),
        "heal_inputs": done.of("heal"),
        "brakes": SimpleNamespace(heal=done.of("brakes")),
    }
    return Sweeper(every_s=0.01, **parts)


class Once:
    """A stop that lets one sweep happen."""

    def __init__(self, sweeps: int = 1) -> None:
        self.left = sweeps

    def wait(self, timeout: float) -> bool:
        self.left -= 1
        return self.left < 0


def test_turns_that_never_stop_being_due_do_not_starve_the_rest(
    done: Done, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.count(0.0, 0.3)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    index = Index([f"t{n}" for n in range(100_000)])
    sweeper(index, done).run(Once())  # type: ignore[arg-type]
    assert 0 < len(index.looked) <= 4 * module.TURNS_AT_ONCE
    assert done.did == ["lanes", "check", "compare", "brakes", "heal", "judges"]


@pytest.mark.parametrize("broken", ["lanes", "check", "compare", "brakes", "heal", "judges"])
def test_a_part_that_fails_keeps_no_other_from_being_done(
    done: Done, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "brainq.upkeep")
    index = Index(["t1"])
    done.broken = {broken}
    made = sweeper(index, done)
    made.run(Once(11))  # type: ignore[arg-type]
    assert index.looked == ["t1"]
    assert {"lanes", "compare", "brakes", "heal", "judges"} <= set(done.did)
    if broken != "check":  # of one lane: the others are looked at
        assert caplog.text.count(") failed, and is tried again") == 1
        done.broken = set()
        made.run(Once())  # type: ignore[arg-type]
        assert caplog.text.count(") works again") == 1


def test_a_turn_that_cannot_be_looked_at_hides_no_other(done: Done) -> None:
    index = Index(["t1", "t2", "t3"])
    index.broken = {"t1", "t2"}
    sweeper(index, done).sweep()
    assert index.looked == ["t3"]
    assert index.again_at == {"t3": ("m", 5000)}


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
    assert done.did[:1] == ["lanes"]


def test_a_clock_that_stepped_back_is_said(done: Done, caplog: pytest.LogCaptureFixture) -> None:
    index = Index(["t1"])
    index.stepped = 1
    sweeper(index, done).sweep()
    assert "Redis' clock stepped back" in caplog.text
