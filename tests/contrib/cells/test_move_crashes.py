"""A move dies after each of its acts, and is run again: one owner at every moment, nothing lost, nothing doubled."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from brainq.contracts.cell import MoveStep, Placement
from brainq.contrib.cells.move import LEASE_S, TenantMover
from brainq.contrib.cells.side import MoveSide
from brainq.errors import MoveFailed, TenantMoved
from tests.contrib.cells.test_move import go_on
from tests.contrib.cells.two import TENANT, TwoCells, parked_tenant

ACTS = frozenset(
    {
        *("put", "replace", "remove_turns", "remove_rest", "remove_jobs", "hide", "show", "copy_to", "remove"),
        *("copy_outside", "remove_outside", "have_rows_compared", "put_back", "restore", "pause", "resume"),
        *("advance", "begin", "flip", "arrive", "forget_counter"),
    }
)
PARTS = ("rows", "keys", "words", "tombstones", "sessions", "budgets")


class Died(BaseException):
    """The process is gone: nothing catches it."""


class Deaths:
    """Counts what is done, and dies once after act `at`; or does `instead`, and goes on."""

    def __init__(self, at: int, instead: Callable[[], None] | None = None) -> None:
        self.at = at
        self.instead = instead
        self.count = 0
        self.last = ""

    def watched(self, what: Any) -> Any:
        return _Watched(what, self)

    def done(self, name: str) -> None:
        self.count += 1
        if self.count == self.at:
            self.last = name
            if self.instead is None:
                raise Died(name)
            self.instead()


class _Watched:
    def __init__(self, what: Any, deaths: Deaths) -> None:
        self._what = what
        self._deaths = deaths

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._what, name)
        if name not in ACTS:
            return found

        def act(*args: Any, **given: Any) -> Any:
            plain = [arg._what if isinstance(arg, _Watched) else arg for arg in args]
            result = found(*plain, **given)
            self._deaths.done(name)
            return result

        return act


def dying_mover(two: TwoCells, deaths: Deaths, **options: Any) -> TenantMover:
    def watched(side: MoveSide) -> MoveSide:
        return replace(side, **{part: deaths.watched(getattr(side, part)) for part in PARTS})

    mover = two.mover(side=watched, **options)
    return replace(mover, moves=deaths.watched(two.moves), directory=deaths.watched(two.directory))


def submit(two: TwoCells, cell: str, number: int) -> str:
    """As a front does that has last heard of this cell, and follows."""
    key = f"new-{number}"
    try:
        return two.submit(cell, f"acme:{key}", "hello", request_key=key).turn_id
    except TenantMoved as moved:
        return two.submit(moved.cell, f"acme:{key}", "hello", request_key=key).turn_id


def assert_one_owner(two: TwoCells, turns: dict[str, str]) -> None:
    """Turns of the tenant begin in one cell at most, and those that wait are in one alone."""
    row = two.moves.get(TENANT)
    if row is not None and row.phase not in ("claimed", "waiting"):  # it never was in b before
        assert not all(two.side(name).is_open_for(TENANT) for name in "ab")
    for session_id, turn_id in ((f"acme:{at}", turns[what]) for at, what in ((2, "approval"), (3, "token"))):
        assert None in [two.state(name, session_id, turn_id) for name in "ab"]


def move_with_deaths(two: TwoCells, most: int = 500) -> int:
    """Move to and fro, each time with a death after the next act; how many acts a move has."""
    made = parked_tenant(two)
    here, there, epoch, at = "a", "b", 1, 0
    new: list[str] = []
    while at < most:
        at += 1
        deaths = Deaths(at)
        try:
            dying_mover(two, deaths).move(TENANT, there)
        except Died:
            assert_one_owner(two, made)
            new.append(submit(two, here, at))
            two.pumps[here].drain()  # before it is about to move its turns begin, and end
        epoch += 1
        two.mover().move(TENANT, there)
        two.assert_gone_from(here, there, epoch)
        two.assert_here(there, epoch)
        if new and deaths.last:
            assert submit(two, here, at) == new[-1]
            two.finish(there, new[-1])
        here, there = there, here
        if not deaths.last:
            break
    results = two.finish(here, *new)
    assert [result.text for result in results] == ["done hello"] * len(new)
    go_on(two, here, made)
    assert two.rows(here)["turns"] == len(made) + len(new)
    return at


def test_a_move_that_died_after_each_of_its_acts_is_taken_up_again(two: TwoCells) -> None:
    assert move_with_deaths(two) > 40


def undo_with_deaths(two: TwoCells) -> None:
    made = parked_tenant(two)
    busy = two.submit("a", "acme:9", "hello").turn_id
    before, at = two.rows("a"), 0
    while True:
        at += 1
        deaths = Deaths(at)
        try:
            dying_mover(two, deaths, wait_s=0.0).move(TENANT, "b")
        except Died:
            assert_one_owner(two, made)
        except MoveFailed:
            pass
        with pytest.raises(MoveFailed, match="did not end or park"):
            two.mover(wait_s=0.0).move(TENANT, "b")
        two.assert_here("a", 1)
        assert two.rows("a") == before
        assert (two.rows("b"), two.keys("b")) == ({}, [])
        assert two.side("b").tombstones.of(TENANT) == two.side("b").words.of(TENANT) == Placement("a", 1)
        if not deaths.last:
            break
    go_on(two, "a", made)
    two.finish("a", busy)


def test_an_undo_that_died_after_each_of_its_acts_is_done_to_its_end(two: TwoCells) -> None:
    undo_with_deaths(two)


def test_a_frozen_mover_that_goes_on_when_another_has_moved_the_tenant_takes_nothing_away(
    two: TwoCells, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = two.submit("a", "acme:1", "hello").turn_id
    two.finish("a", made)
    moved: list[Any] = []

    def freeze(step: MoveStep) -> None:
        if step.phase == "copying":
            two.moves.take(TENANT, "mover", 0.0)
            two.mover(owner="other").move(TENANT, "b")
            moved.append((two.rows("b"), two.keys("b")))
            later = SimpleNamespace(monotonic=lambda: time.monotonic() + 2 * LEASE_S, sleep=time.sleep)
            monkeypatch.setattr("brainq.contrib.cells.move.time", later)

    with pytest.raises(MoveFailed, match="another process"):
        replace(two.mover(), watch=freeze).move(TENANT, "b")
    assert (two.rows("b"), two.keys("b")) == moved[0]
    two.assert_gone_from("a", "b", 2)
    two.assert_here("b", 2)


def test_who_takes_a_move_over_goes_on_from_where_it_is_by_then(two: TwoCells) -> None:
    two.moves.begin(TENANT, "a", "b", 2, "copying", "gone", 0.0)

    class Advanced:
        def __getattr__(self, name: str) -> Any:
            return getattr(two.moves, name)

        def take(self, tenant: str, owner: str, lease_s: float) -> bool:
            two.moves.advance(TENANT, "gone", "copying", "undoing", {})
            return two.moves.take(tenant, owner, lease_s)

    moves: Any = Advanced()
    assert replace(two.mover(), moves=moves).move(TENANT, "b").phase == "done"
    two.assert_here("b", 2)


def all_of(two: TwoCells) -> dict[str, object]:
    """What the two cells have of the tenant, and say of it."""
    sides = {name: two.side(name) for name in "ab"}
    found: dict[str, object] = {
        name: (two.rows(name), two.keys(name), side.tombstones.of(TENANT), side.words.of(TENANT))
        for name, side in sides.items()
    }
    return found | {"placed": two.placed(), "move": two.moves.get(TENANT)}


@pytest.mark.parametrize(
    ("wait_s", "goes_back"),
    [(0.0, False), pytest.param(5.0, False, marks=pytest.mark.full), pytest.param(5.0, True, marks=pytest.mark.full)],
)
def test_a_mover_that_was_frozen_after_any_of_its_acts_changes_nothing_of_what_another_did(
    two: TwoCells, monkeypatch: pytest.MonkeyPatch, wait_s: float, *, goes_back: bool
) -> None:
    """Another moves the tenant, or undoes the move; then it thaws."""
    parked_tenant(two)
    if not wait_s:
        two.submit("a", "acme:9", "hello")
    way, changed, now = ["a", "b"], list[str](), dict[str, object]()

    def freeze() -> None:
        two.moves.take(TENANT, "mover", 0.0)
        with suppress(MoveFailed):
            two.mover(owner="other", wait_s=wait_s).move(TENANT, way[1])
        if goes_back:
            two.mover(owner="other", wait_s=wait_s).move(TENANT, way[0])
        now.update(all_of(two))
        later = SimpleNamespace(monotonic=lambda: time.monotonic() + 2 * LEASE_S, sleep=time.sleep)
        monkeypatch.setattr("brainq.contrib.cells.move.time", later)

    for at in count(1):
        deaths = Deaths(at, freeze)
        with suppress(MoveFailed):
            dying_mover(two, deaths, wait_s=wait_s).move(TENANT, way[1])
        monkeypatch.undo()
        if not deaths.last:
            break
        if (found := all_of(two)) != now:
            changed.append(f"{at} {deaths.last}: {found} was {now}")
        if wait_s and not goes_back:
            way.reverse()
    assert changed == []
