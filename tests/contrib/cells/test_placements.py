"""Where tenants are and where they moved to, on both databases."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from brainq.adapters.sql.engine import transaction
from brainq.adapters.sql.store import Store
from brainq.adapters.sql.tables.cell_tables import CELL_TABLES
from brainq.contracts.cell import Placement
from brainq.contrib.cells.placements import Directory, Moves, Tombstones


@pytest.fixture(autouse=True)
def _tables(store: Store) -> None:  # pyright: ignore[reportUnusedFunction]
    """Made by several at once, and empty."""
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(CELL_TABLES.make, [store.engine] * 4))
    with transaction(store.engine) as connection:
        for table in CELL_TABLES.metadata.sorted_tables:
            connection.execute(table.delete())


def test_of_fronts_that_place_a_tenant_at_once_one_wins(store: Store) -> None:
    directory = Directory(store.database)

    def place(number: int) -> Placement:
        return directory.settle("acme:", "ab"[number % 2])

    with ThreadPoolExecutor(8) as threads:
        placed = set(threads.map(place, range(16)))
    assert placed == {directory.placement("acme:")}
    cell = placed.pop().cell
    assert directory.counts() == {cell: 1}
    assert not directory.flip("acme:", "c", 3)
    assert directory.flip("acme:", "c", 2)
    assert not directory.flip("acme:", "d", 2)
    assert directory.all() == {"acme:": Placement("c", 2)}
    assert not directory.lived_here("acme:")


def test_a_tombstone_of_a_later_move_stays(store: Store) -> None:
    tombstones = Tombstones(store.database)
    tombstones.put("acme:", "b", 2)
    tombstones.put("acme:", "c", 4)
    tombstones.put("acme:", "b", 3)
    assert tombstones.of("acme:") == tombstones.all()["acme:"] == Placement("c", 4)
    assert tombstones.remove("acme:")
    assert not tombstones.remove("acme:")
    assert tombstones.of("acme:") is None


def test_a_move_is_gone_on_with_by_one_at_a_time_and_by_another_when_its_time_is_over(store: Store) -> None:
    moves = Moves(store.database)
    assert moves.begin("acme:", "a", "b", 2, "claimed", "p1", 60)
    assert not moves.begin("acme:", "a", "b", 2, "claimed", "p2", 60)
    assert not moves.take("acme:", "p2", 60)
    assert not moves.advance("acme:", "p2", "claimed", "waiting", {})
    assert moves.advance("acme:", "p1", "claimed", "waiting", {"turns": 3})
    assert not moves.advance("acme:", "p1", "claimed", "waiting", {})
    assert moves.take("acme:", "p1", -1)
    assert moves.take("acme:", "p2", 60)
    assert not moves.remove("acme:", "p1")
    (move,) = moves.all()
    assert (move.phase, dict(move.counts), move.owner, move.to_cell) == ("waiting", {"turns": 3}, "p2", "b")
    assert move == moves.get("acme:")
    assert moves.remove("acme:", "p2")
    assert moves.get("acme:") is None
