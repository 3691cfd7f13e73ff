"""What `brainq doctor` says of several cells."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import SecretStr

from brainq.adapters.sql.store import Store
from brainq.adapters.sql.tables.cell_tables import CELL_TABLES
from brainq.contracts.cell import Cell, Move
from brainq.contracts.status import Effect
from brainq.contrib.cells.doctor import (
    check_directory,
    check_held,
    check_own_cell,
    lanes_between_tenants,
    left_moves,
)
from brainq.contrib.cells.placements import Directory, Moves
from brainq.engine.brain.brain import Brain

NOW = datetime(2026, 11, 27, tzinfo=UTC)


def brain() -> Brain:
    made = Brain("shop", "offline:rules")

    @made.tool(effect=Effect.LOCAL_WRITE)
    def own() -> str:
        """Its session's."""
        return ""

    @made.tool(effect=Effect.LOCAL_WRITE, resources=("cart:{session}",))
    def cart() -> str:
        """Its session's, by name."""
        return ""

    @made.tool(effect=Effect.LOCAL_WRITE, resources=("note:{path}",))
    def note(path: str) -> str:
        """Whose path that is nobody knows."""
        return path

    @made.tool(effect=Effect.DESTRUCTIVE, lane="global", lane_scope="cell")
    def drop() -> str:
        """A cell's lane is enough."""
        return ""

    @made.tool(effect=Effect.READ_ONLY, resources=("note:{path}",))
    def look(path: str) -> str:
        """Holds no lane."""
        return path

    return made


def test_a_lane_that_tenants_share_is_named_unless_a_cells_is_enough() -> None:
    assert lanes_between_tenants(brain()) == {"shop.note": ("note:{path}",)}


def test_a_cell_that_lacks_what_operators_set_for_all_is_named() -> None:
    everything = frozenset({"stop of tool refund", "budget all 20 a day"})
    assert check_held({}).level == check_held({"a": everything, "b": everything}).level == "ok"
    check = check_held({"a": everything, "b": frozenset({"stop of tool refund"})})
    assert (check.level, check.said) == ("warn", "b has no budget all 20 a day")


def test_it_says_which_cell_a_worker_here_would_serve() -> None:
    cells = [Cell(name, SecretStr(f"redis://{name}"), SecretStr(f"sqlite:///{name}")) for name in "ab"]
    assert "'b'" in check_own_cell("b", cells).said
    assert "BRAINQ_CELL" in check_own_cell("", cells).said


def move(tenant: str, lease_until: datetime) -> Move:
    return Move(tenant, "a", "b", 2, "copying", "w1", lease_until, NOW, NOW)


def test_a_move_that_nobody_goes_on_with_is_found() -> None:
    moves = [move("acme:", NOW - timedelta(seconds=1)), move("beta:", NOW + timedelta(seconds=1))]
    assert [left.tenant for left in left_moves(moves, NOW)] == ["acme:"]


def test_the_directory_is_counted_and_a_move_that_was_left_named(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    home = Cell("a", SecretStr("redis://a"), SecretStr(url))
    with Store.open(url) as store:
        assert "empty" in check_directory(home).said
        CELL_TABLES.make(store.engine)
        directory = Directory(store.database)
        directory.settle("acme:", "a")
        directory.settle("beta:", "b")
        assert check_directory(home).said == "a 1 tenant, b 1 tenant"
        Moves(store.database).begin("acme:", "a", "b", 2, "copying", "w1", -1.0)
    check = check_directory(home)
    assert check.level == "warn"
    assert "brainq move acme: --to b" in check.remedy
