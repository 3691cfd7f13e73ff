"""The directory as a front knows it: asked once, asked again when it may be old, and done without while it is away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from sqlite3 import OperationalError

import pytest

from brainq.adapters.sql.store import Store
from brainq.adapters.sql.tables.cell_tables import CELL_TABLES
from brainq.contracts.cell import Placement, hashed_cell
from brainq.contrib.cells.directory import FRESH_S, RETRY_S, KnownTenants
from brainq.contrib.cells.placements import Directory
from brainq.errors import CellUnreachable
from tests.integration.adapters.sql.examples import schedule

NAMES = ("a", "b")


class Front(KnownTenants):
    """One front, whose clock and whose way to home a test has in its hands."""

    def __init__(self, directory: Directory) -> None:
        self.now, self.asked, self.is_away = 0.0, 0, False
        self._directory = directory
        super().__init__(self._open_it, NAMES, lambda: self.now)

    def _open_it(self) -> Directory:
        self.asked += 1
        if self.is_away:
            raise OperationalError("away")
        return self._directory


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path / 'home.db'}") as store:
        CELL_TABLES.make(store.engine)
        CELL_TABLES.make(store.engine)  # as two processes do
        yield store


@pytest.fixture
def directory(store: Store) -> Directory:
    return Directory(store.database)


def test_a_read_writes_nothing_down_and_a_submit_does_once(directory: Directory) -> None:
    front, other = Front(directory), Front(directory)
    by_hash = hashed_cell("acme:", NAMES)
    assert front.cell_of("acme:") == by_hash
    assert directory.all() == {}
    assert front.settle("acme:") == other.settle("acme:") == by_hash
    assert directory.all() == {"acme:": Placement(by_hash, 1)}
    assert directory.counts() == {by_hash: 1}


def test_whoever_writes_first_wins(directory: Directory) -> None:
    assert directory.settle("acme:", "b") == Placement("b", 1)
    assert directory.settle("acme:", "a") == Placement("b", 1)
    assert Front(directory).settle("acme:") == "b"


def test_tenants_of_the_time_before_there_were_cells_stay_at_home(store: Store, directory: Directory) -> None:
    away = next(f"t{n}:" for n in range(100) if hashed_cell(f"t{n}:", NAMES) == "b")
    alone = next(f"s{n}" for n in range(100) if hashed_cell(f"s{n}", NAMES) == "b")
    row = schedule(f"{away}1")
    assert store.schedules.put(row.model_copy(update={"session_id": f"{away}1"}), 0)
    assert store.schedules.put(schedule("x").model_copy(update={"session_id": alone}), 0)
    front = Front(directory)
    assert [front.cell_of(away), front.settle(away), front.settle(alone)] == ["a"] * 3
    assert front.cell_of(f"{alone}0") == hashed_cell(f"{alone}0", NAMES)


def test_known_tenants_go_on_while_the_directory_is_away_and_unknown_ones_are_told(directory: Directory) -> None:
    front = Front(directory)
    cell = front.settle("acme:")
    front.is_away, front.now = True, FRESH_S + 1
    for _ in range(3):
        assert (front.settle("acme:"), front.cell_of("acme:")) == (cell, cell)
    assert front.asked == 2  # and is not asked at each of them
    with pytest.raises(CellUnreachable, match="directory") as away:
        front.settle("other:")
    assert away.value.cell == ""
    front.is_away, front.now = False, front.now + RETRY_S
    directory.settle("other:", "b")
    assert front.settle("other:") == "b"


def test_a_move_is_seen_soon_and_an_old_word_does_not_undo_a_new_one(directory: Directory) -> None:
    front = Front(directory)
    directory.settle("acme:", "a")
    assert front.settle("acme:") == "a"
    assert not directory.flip("acme:", "b", 3)
    assert directory.flip("acme:", "b", 2)
    assert not directory.flip("acme:", "b", 2)
    assert front.cell_of("acme:") == "a"
    assert front.look_again("acme:")
    assert not front.look_again("acme:")
    front.learn("acme:", Placement("a", 1))
    assert front.cell_of("acme:") == "b"
    assert directory.flip("acme:", "a", 3)
    front.now += FRESH_S
    assert front.cell_of("acme:") == "a"


def test_a_tenant_that_was_erased_is_placed_anew_by_every_front(directory: Directory) -> None:
    front, home = Front(directory), hashed_cell("acme:", NAMES)
    other = next(name for name in NAMES if name != home)
    directory.settle("acme:", other)
    assert front.settle("acme:") == other
    directory.forget("acme:")
    front.now += FRESH_S
    assert front.settle("acme:") == Front(directory).settle("acme:") == home


def test_what_only_the_old_cell_says_is_hearsay_until_the_directory_or_the_new_cell_says_it(
    directory: Directory,
) -> None:
    front = Front(directory)
    directory.settle("acme:", "a")
    assert (front.settle("acme:"), front.is_hearsay("acme:")) == ("a", False)
    for _ in range(2):
        front.learn("acme:", Placement("b", 2))
        assert front.is_hearsay("acme:")
    assert not front.look_again("acme:"), "the directory knows less"
    assert (front.cell_of("acme:"), front.is_hearsay("acme:")) == ("b", True)
    directory.flip("acme:", "b", 2)
    assert not front.look_again("acme:")
    assert not front.is_hearsay("acme:")
    front.learn("acme:", Placement("b", 2))
    assert not front.is_hearsay("acme:"), "what is known for certain stays so"
    front.learn("acme:", Placement("a", 3))
    front.confirm("acme:")
    assert not front.is_hearsay("acme:")
    assert not front.is_hearsay("other:")


def test_of_very_many_tenants_the_one_that_was_asked_of_longest_ago_is_forgotten(
    directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brainq.contrib.cells.directory.MOST_KNOWN", 2)
    front = Front(directory)
    for tenant in ("a:", "b:", "a:", "c:"):
        front.settle(tenant)
        front.look_again(tenant)
    asked = front.asked
    for tenant in ("a:", "c:"):
        front.cell_of(tenant)
    assert front.asked == asked
    front.cell_of("b:")
    assert front.asked == asked + 1
